/* SPDX-License-Identifier: BSD-3-Clause */
/* Short histories of one word: all ranks act at once and record when each operation began, when it
 * was complete, and which value it found. Rank 0 searches for an order of all of them that agrees
 * with the clock, which ranks of one host share, and explains each result by the operations before
 * it. */
#include "config.h"

#include "atomics.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OPS_MAX = 18, EACH_MAX = 5, STEPS_MAX = 4 << 20 };

struct act {
    uint64_t begin, end; /* ns */
    uint64_t op;
    uint64_t a, b, found;
};

static gex_AD_t of_u64, of_u32;
static unsigned acts_each;
static struct act all[OPS_MAX + EACH_MAX];
static unsigned all_count, steps;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *word(bool is_wide)
{
    return job_remote(job.size - 1, WORDS + (is_wide ? 4096 : 8192));
}

/* Called with constants, so that neighbours execute it inline. */
static gex_Event_t start_wide(struct act *act)
{
    gex_Rank_t to = job.size - 1;
    switch (act->op) {
    case GEX_OP_FADD:
        return gex_AD_OpNB_U64(of_u64, &act->found, to, word(true), GEX_OP_FADD, act->a, 0, 0);
    case GEX_OP_INC:
        return gex_AD_OpNB_U64(of_u64, NULL, to, word(true), GEX_OP_INC, 0, 0, 0);
    case GEX_OP_FCAS:
        return gex_AD_OpNB_U64(of_u64, &act->found, to, word(true), GEX_OP_FCAS, act->a, act->b, 0);
    default:
        return gex_AD_OpNB_U64(of_u64, &act->found, to, word(true), GEX_OP_GET, 0, 0, 0);
    }
}

static gex_Event_t start_narrow(struct act *act, uint32_t *found)
{
    gex_Rank_t to = job.size - 1;
    uint32_t a = (uint32_t)act->a;
    switch (act->op) {
    case GEX_OP_SWAP:
        return gex_AD_OpNB_U32(of_u32, found, to, word(false), GEX_OP_SWAP, a, 0, 0);
    case GEX_OP_SET:
        return gex_AD_OpNB_U32(of_u32, NULL, to, word(false), GEX_OP_SET, a, 0, 0);
    case GEX_OP_FMAX:
        return gex_AD_OpNB_U32(of_u32, found, to, word(false), GEX_OP_FMAX, a, 0, 0);
    default:
        return gex_AD_OpNB_U32(of_u32, found, to, word(false), GEX_OP_GET, 0, 0, 0);
    }
}

static void perform(struct act *act, bool is_wide)
{
    uint32_t found = 0;
    act->begin = now();
    gex_Event_t event = is_wide ? start_wide(act) : start_narrow(act, &found);
    finish_event(event);
    act->end = now();
    if (!is_wide)
        act->found = found;
}

static void act_out(struct act *mine, bool is_wide, uint64_t *seed)
{
    static const gex_OP_t wide[] = {GEX_OP_FADD, GEX_OP_INC, GEX_OP_FCAS, GEX_OP_GET};
    static const gex_OP_t narrow[] = {GEX_OP_SWAP, GEX_OP_SET, GEX_OP_FMAX, GEX_OP_GET};
    for (unsigned i = 0; i < acts_each; i++) {
        uint64_t random = job_random(seed);
        mine[i] = (struct act){.op = (is_wide ? wide : narrow)[random % 4],
                               .a = (random >> 8) % 5,
                               .b = (random >> 16) % 5};
        perform(&mine[i], is_wide);
    }
}

/* Applies an operation to the model's word; false: the operation can't have found this value. */
static bool follow(const struct act *act, uint64_t *value)
{
    uint64_t was = *value;
    switch (act->op) {
    case GEX_OP_FADD:
        *value += act->a;
        break;
    case GEX_OP_INC:
        *value += 1;
        return true;
    case GEX_OP_FCAS:
        *value = was == act->a ? act->b : was;
        break;
    case GEX_OP_SWAP:
        *value = act->a;
        break;
    case GEX_OP_SET:
        *value = act->a;
        return true;
    case GEX_OP_FMAX:
        *value = act->a > was ? act->a : was;
        break;
    }
    return act->found == was;
}

static bool has_order(uint32_t done, uint64_t value)
{
    uint64_t first_end = UINT64_MAX;
    if (done == (1u << all_count) - 1)
        return true;
    CHECK(++steps < STEPS_MAX, "the search is too long");
    for (unsigned i = 0; i < all_count; i++)
        if (!(done >> i & 1) && all[i].end < first_end)
            first_end = all[i].end;
    for (unsigned i = 0; i < all_count; i++) {
        uint64_t after = value;
        if (!(done >> i & 1) && all[i].begin <= first_end && follow(&all[i], &after) &&
            has_order(done | 1u << i, after))
            return true;
    }
    return false;
}

static void print_history(void)
{
    for (unsigned i = 0; i < all_count; i++)
        fprintf(stderr, "rank %u: %llu..%llu operation 0x%llx of %llu, %llu found %llu\n",
                i / acts_each, (unsigned long long)(all[i].begin - all[0].begin),
                (unsigned long long)(all[i].end - all[0].begin), (unsigned long long)all[i].op,
                (unsigned long long)all[i].a, (unsigned long long)all[i].b,
                (unsigned long long)all[i].found);
}

static void check_history(unsigned round)
{
    steps = 0;
    if (has_order(0, 0))
        return;
    print_history();
    CHECK(0, "round %u: no order explains the history above", round);
}

static void one_round(unsigned round, gex_Rank_t actors, uint64_t *seed)
{
    bool is_wide = round % 2;
    struct act mine[EACH_MAX];
    size_t size = acts_each * sizeof *mine;
    if (job.rank == job.size - 1)
        memset(job.base + WORDS + (is_wide ? 4096 : 8192), 0, 8);
    job_barrier();
    if (job.rank < actors) {
        act_out(mine, is_wide, seed);
        CHECK(gex_RMA_PutBlocking(job.tm, 0, job_remote(0, HISTORY + job.rank * size), mine, size,
                                  0) == 0);
    }
    job_barrier();
    if (job.rank == 0) {
        memcpy(all, job.base + HISTORY, actors * size);
        check_history(round);
    }
}

void check_histories(unsigned rounds)
{
    uint64_t seed = 5 * job.rank + 3;
    gex_Rank_t actors = job.size < 6 ? job.size : 6;
    acts_each = OPS_MAX / actors < EACH_MAX ? OPS_MAX / actors : EACH_MAX;
    all_count = acts_each * actors;
    job_phase("histories of %u operations", all_count);
    gex_AD_Create(&of_u64, job.tm, GEX_DT_U64, DEVICE_OPS, GEX_FLAG_AD_FAVOR_REMOTE);
    gex_AD_Create(&of_u32, job.tm, GEX_DT_U32, GEX_OP_SWAP | GEX_OP_SET | GEX_OP_FMAX | GEX_OP_GET,
                  0);
    for (unsigned round = 0; round < rounds; round++)
        one_round(round, actors, &seed);
    job_barrier();
    gex_AD_Destroy(of_u64);
    gex_AD_Destroy(of_u32);
}
