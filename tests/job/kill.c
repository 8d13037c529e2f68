/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kill HOW [MICROSECONDS]: rank 1 dies by SIGKILL in a chosen place, or so many microseconds after
 * its start if it lives so long. All others need it, and none of them would end otherwise. Memory
 * that faults marks places inside the library: the victim's own handler of SIGSEGV kills it there.
 * Takes no lock. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

enum { VICTIM = 1, PAGES = 16, LATE = 20000 /* microseconds */, SEGMENT = 4 << 20 };

/* In the segments of rank 0 and of the last, where no put goes. */
struct words {
    volatile int pid; /* of the rank to be killed */
    volatile int is_dead;
};

static gex_AM_Index_t take_index, late_index, ask_index, answer_index, read_index;
static volatile int answers;

/* Neighbours only: their segments are mapped. */
static struct words *words_of(gex_Rank_t rank)
{
    void *owner, *local;
    CHECK(gex_Segment_QueryBound(job.tm, rank, &owner, &local, NULL) == 0 && local);
    return local;
}

static struct words *told; /* written by the rank that dies */

static void die(int number)
{
    (void)number;
    if (told)
        told->is_dead = 1;
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* ---- handlers */

static void on_take(gex_Token_t token, void *memory, size_t size)
{
    (void)token, (void)memory, (void)size;
    CHECK(0, "a message came whose sender died over it");
}

static void on_read(gex_Token_t token, void *memory, size_t size)
{
    (void)token, (void)memory, (void)size;
}

static void on_late(gex_Token_t token)
{
    (void)token;
    CHECK(0, "a message came past the slot that the dead one held");
}

static void on_ask(gex_Token_t token)
{
    (void)token;
    die(0);
}

static void on_answer(gex_Token_t token)
{
    (void)token;
    answers++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_take, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_late, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_read, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    };
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 5) == GASNET_OK);
    take_index = table[0].gex_index;
    late_index = table[1].gex_index;
    ask_index = table[2].gex_index;
    answer_index = table[3].gex_index;
    read_index = table[4].gex_index;
}

/* ---- waiting for what never comes */

static void wait_blocked(void)
{
    gasnet_set_waitmode(GASNET_WAIT_BLOCK);
    GASNET_BLOCKUNTIL(answers > 0);
}

static void wait_polling(void)
{
    while (answers == 0)
        gasnet_AMPoll();
}

/* Without the library. */
static void wait_busy(void)
{
    for (;;)
        pause();
}

/* ---- deaths */

/* Readable pages, followed by pages that fault. */
static char *trap(void)
{
    size_t page = GASNET_PAGESIZE;
    char *memory =
        mmap(NULL, 2 * PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memset(memory, 1, PAGES * page);
    CHECK(mprotect(memory + PAGES * page, PAGES * page, PROT_NONE) == 0);
    return memory + (PAGES - 1) * page;
}

/* The message is in rank 0's ring in part; its remainder never arrives. */
static void in_a_slot(void)
{
    if (job.rank == VICTIM) {
        told = words_of(job.size - 1);
        gex_AM_RequestMedium0(job.tm, 0, take_index, trap(), 2 * GASNET_PAGESIZE, GEX_EVENT_NOW, 0);
    }
    if (job.rank == job.size - 1) {
        while (!words_of(job.rank)->is_dead)
            usleep(100);
        gex_AM_RequestShort0(job.tm, 0, late_index, 0);
    }
    wait_polling();
}

static void in_a_put(void)
{
    if (job.rank == VICTIM)
        gex_RMA_PutBlocking(job.tm, 0, job_remote(0, 0), trap(), 2 * GASNET_PAGESIZE, 0);
    wait_polling();
}

static void in_a_long(void)
{
    if (job.rank == VICTIM)
        gex_AM_RequestLong0(job.tm, 0, take_index, trap(), 2 * GASNET_PAGESIZE, job_remote(0, 0),
                            GEX_EVENT_NOW, 0);
    wait_polling();
}

/* Rank 0 kills the victim some time after it went to wait, then waits with the others. */
static void killed_while(void (*waits)(void))
{
    struct words *words = words_of(0);
    if (job.rank == VICTIM) {
        words->pid = getpid();
        waits();
    }
    if (job.rank == 0) {
        while (!words->pid)
            usleep(100);
        usleep(LATE);
        CHECK(kill(words->pid, SIGKILL) == 0);
    }
    for (;;) /* one wait may end by what the victim sent before */
        job_barrier();
}

static void in_a_barrier(void)
{
    killed_while(job_barrier);
}

static void asleep(void)
{
    killed_while(wait_blocked);
}

static void asked(void)
{
    if (job.rank != VICTIM)
        gex_AM_RequestShort0(job.tm, VICTIM, ask_index, 0);
    GASNET_BLOCKUNTIL(answers > 0);
}

static void among_polling(void)
{
    if (job.rank == VICTIM)
        die(0);
    wait_polling();
}

static void among_busy(void)
{
    if (job.rank == VICTIM)
        die(0);
    wait_busy();
}

static void by_exit(void)
{
    if (job.rank == VICTIM)
        _exit(0);
    wait_busy();
}

/* By a signal that the library sees. */
static void of_a_fault(void)
{
    if (job.rank == VICTIM)
        raise(SIGFPE);
    wait_busy();
}

/* GASNET_CATCH_EXIT=0: the victim leaves in order, and the others go on, longer than any death
 * would stay unnoticed. */
static void leave(void)
{
    if (job.rank == VICTIM)
        exit(0);
    usleep(2500000);
}

static void in_order(void)
{
    leave();
    exit(0);
}

/* From then on the rank behind it is watched. */
static void after_it(void)
{
    leave();
    if (job.rank == VICTIM + 1)
        die(0);
    wait_busy();
}

/* ---- at any time */

/* job_start() uses the alarm clock. */
static void die_within(long microseconds)
{
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    const struct itimerspec when = {.it_value = {.tv_nsec = 1000 * microseconds}};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &how, &timer) == 0);
    CHECK(timer_settime(timer, 0, &when, NULL) == 0);
}

/* Always has operations in flight. */
static void in_traffic(void)
{
    static char memory[30000];
    for (uint64_t i = 0;; i++) {
        gex_Rank_t to = (gex_Rank_t)(job_mix(i, job.rank) % job.size);
        size_t size = job_mix(i, 7) % sizeof memory;
        gex_AM_RequestMedium0(job.tm, to, read_index, memory, size, GEX_EVENT_NOW, 0);
        gex_RMA_PutBlocking(job.tm, to, job_remote(to, 64), memory, size, 0);
        if (i % 100 == 0)
            job_barrier();
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} deaths[] = {
    {"slot", in_a_slot},  {"put", in_a_put},     {"long", in_a_long},     {"barrier", in_a_barrier},
    {"asleep", asleep},   {"asked", asked},      {"poll", among_polling}, {"busy", among_busy},
    {"_exit", by_exit},   {"fault", of_a_fault}, {"traffic", in_traffic}, {"left", in_order},
    {"behind", after_it},
};

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    long moment = argc > 2 ? atol(argv[2]) : 0;
    signal(SIGSEGV, die);
    if (moment && job_number("PMIX_RANK", 0) == VICTIM)
        die_within(moment); /* perhaps before there is a job */
    job_start(&argc, &argv, SEGMENT);
    register_handlers();
    job_barrier();
    job_phase("%s", how);
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++)
        if (!strcmp(how, deaths[i].name))
            deaths[i].run();
    CHECK(0, "it did not end, or '%s' is no way to", how);
}
