/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote atomics over the network, compared with raw verbs: done by the device and, to show the
 * difference, by the target's CPU, which answers messages. Takes the place of cases.c. */
#include "config.h"

#include <gasnet_ratomic.h>

#include "bench.h"

static gex_AD_t by_device, by_message;

/* Created at the first operation, which both ranks reach. With SET in it, a domain does not use the
 * device.
 */
static void open_domains(void)
{
    gex_OP_t ops = GEX_OP_FADD | GEX_OP_FCAS;
    if (by_device)
        return;
    gex_AD_Create(&by_device, bench_job.tm, GEX_DT_U64, ops, GEX_FLAG_AD_FAVOR_REMOTE);
    gex_AD_Create(&by_message, bench_job.tm, GEX_DT_U64, ops | GEX_OP_SET, 0);
}

static uint64_t *result(void)
{
    return (uint64_t *)(void *)(bench_job.mine + BENCH_SOURCE);
}

static gex_Event_t fetch_add_nb(void)
{
    return gex_AD_OpNB_U64(by_device, result(), bench_job.peer, bench_job.theirs + BENCH_TARGET,
                           GEX_OP_FADD, 1, 0, 0);
}

static void fetch_add(size_t nbytes, long count)
{
    (void)nbytes;
    open_domains();
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_Event_Wait(fetch_add_nb());
}

static void compare_swap(size_t nbytes, long count)
{
    (void)nbytes;
    open_domains();
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_Event_Wait(gex_AD_OpNB_U64(by_device, result(), bench_job.peer,
                                       bench_job.theirs + BENCH_TARGET, GEX_OP_FCAS, 1, 1, 0));
}

static void fetch_add_window(size_t nbytes, long count)
{
    gex_Event_t events[bench_window];
    (void)nbytes;
    open_domains();
    for (int i = 0; i < bench_window; i++)
        events[i] = GEX_EVENT_INVALID;
    for (long i = 0; bench_job.me == 0 && i < count; i++) {
        gex_Event_Wait(events[i % bench_window]);
        events[i % bench_window] = fetch_add_nb();
    }
    gex_Event_WaitAll(events, bench_window, 0);
}

/* Rank 1 serves in the barrier that follows. */
static void fetch_add_by_message(size_t nbytes, long count)
{
    (void)nbytes;
    open_domains();
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_Event_Wait(gex_AD_OpNB_U64(by_message, result(), bench_job.peer,
                                       bench_job.theirs + BENCH_TARGET, GEX_OP_FADD, 1, 0, 0));
}

struct bench_case bench_cases[bench_cases_max];

static const struct bench_case cases[] = {
    {"fetch-add", "fetch-add", fetch_add, bench_raw_fetch_add, BENCH_US, 8, 1.3, 0},
    {"compare-swap", "cmp-swap", compare_swap, bench_raw_compare_swap, BENCH_US, 8, 1.3, 0},
    {"fetch-add flood", "fetch-add", fetch_add_window, bench_raw_fetch_add_window, BENCH_KOPS, 8, 0,
     0},
    {"fetch-add by message", "fetch-add", fetch_add_by_message, bench_raw_fetch_add, BENCH_US, 8, 0,
     0},
};

int bench_cases_fill(void)
{
    int count = sizeof(cases) / sizeof(*cases);
    for (int i = 0; i < count; i++)
        bench_cases[i] = cases[i];
    return count;
}
