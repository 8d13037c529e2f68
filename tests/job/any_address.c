/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments EVERYTHING: any memory of another rank is accessible. Each round every rank maps memory
 * of some kind at an address that its neighbours know, which they read and write; then it is
 * unmapped in one of several ways, so that the next round's memory is different memory at the same
 * addresses. usage: any_address [rounds] */
#include "config.h"

#include "job.h"

#include <gasnet_mk.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most = 3 << 20, page = 4096 };
enum kind { PRIVATE, SHARED, CONSTANT, kinds };

static const size_t sizes[] = {1, 8, 100, 4000, 70000, 300001, 1500003, most - 2 * page};

static char *place_of(gex_Rank_t rank)
{
    return (char *)UINT64_C(0x300000000000) + ((uint64_t)rank << 36);
}

static void check_queries(void)
{
    gasnet_seginfo_t info;
    void *address;
    uintptr_t size;

    CHECK(gasnet_getMaxLocalSegmentSize() == UINTPTR_MAX);
    CHECK(gasnet_getMaxGlobalSegmentSize() == UINTPTR_MAX);
    CHECK(gasnet_getSegmentInfo(&info, 1) == GASNET_OK);
    CHECK(info.addr == NULL && info.size == UINTPTR_MAX);
    CHECK(gex_EP_QuerySegment(job.ep) == GEX_SEGMENT_INVALID);
    CHECK(gex_Segment_QueryBound(job.tm, 0, &address, NULL, &size) != 0);
}

/* An address does not say whose memory it is. */
static void no_memory_kinds(void)
{
    gex_MK_t kind = GEX_MK_INVALID;
    gex_MK_Create_args_t args;

    memset(&args, 0, sizeof args);
    args.gex_class = GEX_MK_CLASS_CUDA_UVA;
    gex_System_SetVerboseErrors(0);
    CHECK(gex_MK_Create(&kind, job.client, &args, 0) == GASNET_ERR_BAD_ARG);
    CHECK(kind == GEX_MK_INVALID);
#if defined(GASNET_HAVE_MK_CLASS_CUDA_UVA) || defined(GASNET_HAVE_MK_CLASS_HIP) ||                 \
    defined(GASNET_HAVE_MK_CLASS_ZE) || defined(GASNET_HAVE_MK_CLASS_MULTIPLE)
#    error "item 70: a feature macro that says what is not true"
#endif
}

static void map_block(enum kind kind, uint64_t seed)
{
    int flags = kind == SHARED ? MAP_SHARED : MAP_PRIVATE;
    char *block = mmap(place_of(job.rank), most, PROT_READ | PROT_WRITE,
                       flags | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    CHECK(block == place_of(job.rank));
    job_fill(block, most, seed);
    if (kind == CONSTANT)
        CHECK(mprotect(block, most, PROT_READ) == 0);
}

static void lose_block(unsigned how)
{
    char *block = place_of(job.rank);
    size_t half = most / 2 / page * page;

    if (how == 0) {
        CHECK(munmap(block + half, most - half) == 0);
        CHECK(munmap(block, half) == 0);
        return;
    }
    if (how == 1) {
        block =
            mremap(block, most, most, MREMAP_MAYMOVE | MREMAP_FIXED, place_of(job.rank) + 2 * most);
        CHECK(block != MAP_FAILED);
    }
    CHECK(munmap(block, most) == 0);
}

/* Only the last rank touches the end of the block. */
static void visit(gex_Rank_t rank, enum kind kind, uint64_t seed, uint64_t news)
{
    char *there = place_of(rank) + 5, *mine = job_memory(most), *copy = job_memory(most);

    job_fill(mine, most, seed);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = sizes[i];

        memset(copy, 0, size);
        gex_RMA_GetBlocking(job.tm, copy, rank, there, size, 0);
        CHECK(memcmp(copy, mine + 5, size) == 0, "%zu bytes", size);
    }
    if (kind != CONSTANT) {
        job_fill(mine, most, news);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            gex_RMA_PutBlocking(job.tm, rank, there, mine, sizes[i], 0);
    }
    free(mine);
    free(copy);
}

int main(int argc, char **argv)
{
    long rounds;

    job_start(&argc, &argv, page);
    rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 9;
    check_queries();
    no_memory_kinds();
    for (long i = 0; i < rounds; i++) {
        gex_Rank_t next = (job.rank + 1) % job.size, before = (job.rank + job.size - 1) % job.size;
        enum kind kind = (enum kind)(i % kinds);
        uint64_t news = job_mix(0xbeef, (uint64_t)i);

        job_phase("round %ld", i);
        map_block(kind, job_mix((uint64_t)i, job.rank));
        job_barrier();
        visit(next, kind, job_mix((uint64_t)i, next), news + job.rank);
        job_barrier();
        if (kind != CONSTANT)
            CHECK_PATTERN(place_of(job.rank) + 5, sizes[7], news + before);
        lose_block((unsigned)(i / kinds % 3));
    }
    job_end();
}
