/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching that fails on some ranks: the others must neither hang nor continue without them, and
 * all may try again. Also the flags, names, threads and memory kinds that start-up accepts and
 * reports. Owned by the one client thread.
 *
 * Usage: attach [never]: with "never" no segment is attached at all (item 52). */
#include "config.h"

#include "job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "gasnet_mk.h"

static unsigned pings, pongs;
static gex_AM_Index_t pong;

static void on_ping(gex_Token_t token, void *buffer, size_t nbytes)
{
    pings++;
    gex_AM_ReplyMedium0(token, pong, buffer, nbytes, GEX_EVENT_NOW, 0);
}

static void on_pong(gex_Token_t token, void *buffer, size_t nbytes)
{
    (void)token;
    CHECK(nbytes == 6 && !memcmp(buffer, "hello", 6));
    pongs++;
}

/* Messages and barriers need no segment. */
static void item_52_messages_without_a_segment(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_ping, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_pong, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    pong = table[1].gex_index;
    job_barrier();
    for (gex_Rank_t r = 0; r < job.size; r++)
        gex_AM_RequestMedium0(job.tm, r, table[0].gex_index, "hello", 6, GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(pongs == job.size && pings == job.size);
    job_barrier();
}

static void no_rank_has_a_segment(void)
{
    CHECK(gex_EP_QuerySegment(job.ep) == GEX_SEGMENT_INVALID);
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK(gex_Segment_QueryBound(job.tm, r, NULL, NULL, NULL) != 0, "rank %u has", r);
}

/* Only the last rank asks for too much. */
static void one_asks_for_too_much(void)
{
    bool mine = job.rank == job.size - 1;
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    uintptr_t size = mine ? gasnet_getMaxLocalSegmentSize() + GASNET_PAGESIZE : GASNET_PAGESIZE;

    CHECK(gex_Segment_Attach(&segment, job.tm, size) ==
          (mine ? GASNET_ERR_BAD_ARG : GASNET_ERR_RESOURCE));
    CHECK(segment == GEX_SEGMENT_INVALID);
    no_rank_has_a_segment();
}

/* The first rank has no file descriptor left for its memory. */
static void one_has_no_means(void)
{
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    struct rlimit files, none;

    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    none = files;
    none.rlim_cur = 3;
    if (job.rank == 0)
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(gex_Segment_Attach(&segment, job.tm, GASNET_PAGESIZE) == GASNET_ERR_RESOURCE);
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    no_rank_has_a_segment();
}

/* Attaches all memory that a limit allows: the library must not use a part of it for other
 * purposes. All pages up to the last can be used. */
static void item_42_the_largest_segment(void)
{
    uintptr_t most = gasnet_getMaxLocalSegmentSize();
    gex_Rank_t next = (job.rank + 1) % job.size;
    char word[8] = "largest", back[8] = "";

    if (!getenv("GASNET_MAX_SEGSIZE")) {
        job_attach(4 * GASNET_PAGESIZE);
        return;
    }
    job_attach(most);
    CHECK(gex_RMA_PutBlocking(job.tm, next, job_remote(next, most - 8), word, 8, 0) == 0);
    CHECK(gex_RMA_GetBlocking(job.tm, back, next, job_remote(next, most - 8), 8, 0) == 0);
    CHECK(!memcmp(word, back, 8));
    job_barrier();
    CHECK(!memcmp(word, job.base + most - 8, 8));
}

static void item_50_any_name_and_all_flags(void)
{
    gex_Client_t client = GEX_CLIENT_INVALID;
    gex_EP_t ep;
    gex_TM_t tm;

    gex_System_SetVerboseErrors(0);
    CHECK(gex_Client_Init(&client, &ep, &tm, "X", NULL, NULL, 1u << 20) == GASNET_ERR_BAD_ARG);
    CHECK(gex_Client_Init(&client, &ep, NULL, "X", NULL, NULL, 0) == GASNET_ERR_BAD_ARG);
    CHECK(client == GEX_CLIENT_INVALID);
    gex_System_SetVerboseErrors(1);
    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "lower-case ok?", NULL, NULL,
                          GEX_FLAG_USES_GASNET1 | GEX_FLAG_DEFER_THREADS) == GASNET_OK);
    CHECK(!strcmp(gex_Client_QueryName(job.client), "lower-case ok?"));
    CHECK(gex_Client_QueryFlags(job.client) == (GEX_FLAG_USES_GASNET1 | GEX_FLAG_DEFER_THREADS));
    job.rank = gex_TM_QueryRank(job.tm);
    job.size = gex_TM_QuerySize(job.tm);
}

static void no_threads_to_start(void)
{
    unsigned count = 77;
    const gex_ProgressThreadInfo_t *info = NULL;

    CHECK(gex_System_QueryProgressThreads(job.client, NULL, &info, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_System_QueryProgressThreads(job.client, &count, NULL, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_System_QueryProgressThreads(job.client, &count, &info, 1) == GASNET_ERR_BAD_ARG);
    CHECK(count == 77);
    CHECK(gex_System_QueryProgressThreads(job.client, &count, &info, 0) == GASNET_OK);
    CHECK(count == 0 && info); /* none was asked for */
}

/* The machines of this test have no accelerator. */
static void no_memory_kinds_without_a_device(void)
{
    gex_MK_t kind = GEX_MK_INVALID;
    gex_MK_Create_args_t args;
    int codes[] = {GASNET_ERR_BAD_ARG, GASNET_ERR_BAD_ARG, GASNET_ERR_BAD_ARG, GASNET_ERR_BAD_ARG};

#ifdef GASNET_HAVE_MK_CLASS_CUDA_UVA
    codes[GEX_MK_CLASS_CUDA_UVA] = GASNET_ERR_RESOURCE;
#endif
#ifdef GASNET_HAVE_MK_CLASS_HIP
    codes[GEX_MK_CLASS_HIP] = GASNET_ERR_RESOURCE;
#endif
    memset(&args, 0, sizeof args);
    for (int c = GEX_MK_CLASS_HOST; c <= GEX_MK_CLASS_ZE; c++) {
        args.gex_class = (gex_MK_Class_t)c;
        CHECK(gex_MK_Create(&kind, job.client, &args, 0) == codes[c], "class %d", c);
    }
    CHECK(kind == GEX_MK_INVALID && GEX_MK_HOST != GEX_MK_INVALID);
#if defined(GASNET_HAVE_MK_CLASS_CUDA_UVA) != defined(TRUNKLINE_KIND_CUDA_UVA) ||                  \
    defined(GASNET_HAVE_MK_CLASS_HIP) != defined(TRUNKLINE_KIND_HIP) ||                            \
    defined(GASNET_HAVE_MK_CLASS_ZE) != defined(TRUNKLINE_KIND_ZE) || !GASNET_HAVE_MK_CLASS_HOST
#    error "item 70: a feature macro that says what is not true"
#endif
#if defined(GASNET_HAVE_MK_CLASS_MULTIPLE) !=                                                      \
    (defined(GASNET_HAVE_MK_CLASS_CUDA_UVA) || defined(GASNET_HAVE_MK_CLASS_HIP) ||                \
     defined(GASNET_HAVE_MK_CLASS_ZE))
#    error "item 70: a feature macro that says what is not true"
#endif
#if GASNET_PSHM != 1 || GASNETI_PSHM_ENABLED != 1 ||                                               \
    GASNETC_IBV_MAX_HCAS_CONFIGURE != GASNET_IBV_MAX_HCAS
#    error "item 70: memory is shared"
#endif
    CHECK(GEX_OP_TO_FETCHING(GEX_OP_ADD | GEX_OP_CAS) == (GEX_OP_FADD | GEX_OP_FCAS));
    CHECK(GEX_OP_TO_NONFETCHING(GEX_OP_SWAP) == GEX_OP_SET);
    CHECK(gasneti_mynode == job.rank && gasneti_nodes == job.size);
}

int main(int argc, char **argv)
{
    item_50_any_name_and_all_flags();
    gex_System_SetVerboseErrors(argc > 1);
    no_memory_kinds_without_a_device();
    no_threads_to_start();
    if (argc == 1) {
        one_asks_for_too_much();
        one_has_no_means();
        item_42_the_largest_segment();
    }
    item_52_messages_without_a_segment();
    job_end();
}
