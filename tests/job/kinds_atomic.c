/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote atomics on memory of a device, by HCAs: each rank adds to words of each rank, its own too,
 * and moves amounts by compare-and-swap. No change is lost, and the owner reads the right sums
 * through the driver. Results lie in host memory.
 *
 * Usage: kinds_atomic [turns]; KINDS_REFUSED: the case that must be refused with one line. */
#include "config.h"

#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "accelerator.h"
#include "gasnet_mk.h"
#include "gasnet_ratomic.h"

enum { SIZE = 1 << 16, RANKS = 8 };

static gex_EP_t ep;
static gex_TM_t team;
static char *bases[RANKS];

static void make_team(void)
{
    gex_MK_t kind;
    gex_Segment_t segment;
    const gex_MK_Create_args_t args = acc_args(0);
    gex_EP_Location_t ends[RANKS];
    static const char zeros[SIZE];
    CHECK(gex_MK_Create(&kind, job.client, &args, 0) == GASNET_OK);
    CHECK(gex_Segment_Create(&segment, job.client, NULL, SIZE, kind, 0) == GASNET_OK);
    CHECK(gex_EP_Create(&ep, job.client, GEX_EP_CAPABILITY_ALL, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(ep, segment, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &ep, 1, 0) == GASNET_OK);
    acc_write(0, gex_Segment_QueryAddr(segment), zeros, SIZE);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        void *base;
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(job.ep, 1), r, &base, NULL, NULL, 0));
        bases[r] = base;
        ends[r] = (gex_EP_Location_t){r, 1};
    }
    gex_TM_Create(&team, 1, job.tm, ends, job.size, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    job_barrier();
}

/* Word 0 counts by ADD; word 1 by FINC, whose results differ within a rank; word 2 by
 * compare-and-swap; word 3 by DBL. */
static void change(gex_AD_t u64, gex_AD_t dbl, gex_Rank_t r)
{
    uint64_t was, before = UINT64_MAX, seen = 0;
    double old = 0, now;
    gex_AD_OpNBI_U64(u64, NULL, r, bases[r], GEX_OP_ADD, job.rank + 1, 0, 0);
    gex_Event_Wait(gex_AD_OpNB_U64(u64, &was, r, bases[r] + 8, GEX_OP_FINC, 0, 0, 0));
    while (seen != before) {
        before = seen;
        gex_Event_Wait(
            gex_AD_OpNB_U64(u64, &seen, r, bases[r] + 16, GEX_OP_FCAS, before, before + 3, 0));
    }
    for (;;) {
        gex_Event_Wait(
            gex_AD_OpNB_DBL(dbl, &now, r, bases[r] + 24, GEX_OP_FCAS, old, old + 0.5, 0));
        if (memcmp(&now, &old, sizeof(now)) == 0)
            break;
        old = now;
    }
}

static void check_sums(uint64_t turns)
{
    uint64_t words[3];
    double half;
    const uint64_t changes = turns * job.size;
    acc_read(0, words, bases[job.rank], sizeof(words));
    acc_read(0, &half, bases[job.rank] + 24, sizeof(half));
    CHECK(words[0] == turns * job.size * (job.size + 1) / 2, "%llu", (unsigned long long)words[0]);
    CHECK(words[1] == changes, "%llu", (unsigned long long)words[1]);
    CHECK(words[2] == 3 * changes, "%llu", (unsigned long long)words[2]);
    CHECK(half == 0.5 * (double)changes, "%f", half);
}

static void refused(const char *what)
{
    gex_AD_t ad;
    gex_Rank_t other = (job.rank + 1) % job.size;
    uint32_t was;
    job_phase("refusing %s", what);
    if (!strcmp(what, "type")) {
        gex_AD_Create(&ad, team, GEX_DT_U32, GEX_OP_FADD, 0);
        gex_AD_OpNB_U32(ad, &was, other, bases[other], GEX_OP_FADD, 1, 0, 0);
    } else {
        gex_AD_Create(&ad, team, GEX_DT_U64, GEX_OP_ADD, 0);
        gex_AD_OpNB_U64(ad, NULL, strcmp(what, "own") ? other : job.rank,
                        bases[strcmp(what, "own") ? other : job.rank], GEX_OP_ADD, 1, 0, 0);
    }
    CHECK(0, "%s was not refused", what);
}

int main(int argc, char **argv)
{
    gex_AD_t u64, dbl;
    job_start(&argc, &argv, GASNET_PAGESIZE);
    int turns = argc > 1 ? atoi(argv[1]) : 50;
    CHECK(job.size <= RANKS);
    acc_open();
    make_team();
    if (getenv("KINDS_REFUSED"))
        refused(getenv("KINDS_REFUSED"));
    gex_AD_Create(&u64, team, GEX_DT_U64, GEX_OP_ADD | GEX_OP_FINC | GEX_OP_FCAS,
                  GEX_FLAG_AD_FAVOR_REMOTE);
    gex_AD_Create(&dbl, team, GEX_DT_DBL, GEX_OP_FCAS, GEX_FLAG_AD_FAVOR_REMOTE);
    for (int i = 0; i < turns; i++)
        for (gex_Rank_t r = 0; r < job.size; r++)
            change(u64, dbl, r);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    job_barrier();
    check_sums((uint64_t)turns);
    job_barrier();
    gex_AD_Destroy(u64);
    gex_AD_Destroy(dbl);
    job_end();
}
