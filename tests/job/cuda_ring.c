/* SPDX-License-Identifier: BSD-3-Clause */
/* An allgather around a ring, on memory of CUDA devices, as a user writes it: documented calls of
 * CUDA's driver API and of GASNet-EX alone, nothing of this tree's tests. Each rank has a block;
 * in each step it puts the block that came last into its neighbour's buffer, device to device.
 * usage: cuda_ring [BYTES OF A BLOCK]. Prints "ring: ok" once, or what is wrong and exits 1. */
#include <cuda.h>
#include <gasnetex.h>
#include <gasnet_mk.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gex_Rank_t me, ranks;

static void die(const char *call, const char *why)
{
    fprintf(stderr, "rank %u: %s: %s\n", (unsigned)me, call, why);
    gasnet_exit(1);
}

#define CU(call) cu_must(call, #call)
static void cu_must(CUresult result, const char *call)
{
    const char *why = NULL;
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorString(result, &why);
    die(call, why ? why : "unknown error");
}

#define GEX(call) gex_must(call, #call)
static void gex_must(int result, const char *call)
{
    if (result != GASNET_OK)
        die(call, gasnet_ErrorDesc(result));
}

/* A kernel would; a fill says which rank and which word of the block. */
static uint32_t word_of(gex_Rank_t rank, int half)
{
    return 0x10000u * (unsigned)(half + 1) + (unsigned)rank;
}

static void fill(CUdeviceptr block, size_t words)
{
    CU(cuMemsetD32(block, word_of(me, 0), words / 2));
    CU(cuMemsetD32(block + words / 2 * 4, word_of(me, 1), words - words / 2));
    CU(cuCtxSynchronize());
}

static void check(CUdeviceptr buffer, size_t words)
{
    uint32_t *host = malloc(words * 4);
    if (!host)
        die("malloc", "no memory");
    for (gex_Rank_t r = 0; r < ranks; r++) {
        CU(cuMemcpyDtoH(host, buffer + r * words * 4, words * 4));
        for (size_t i = 0; i < words; i++)
            if (host[i] != word_of(r, i >= words / 2))
                die("check", "a word of a block is wrong");
    }
    free(host);
}

static void barrier(gex_TM_t team)
{
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
}

/* The endpoints have the same index on all ranks, as all create theirs in the same order. */
static void ring(gex_TM_t team, gex_EP_t ep, CUdeviceptr buffer, size_t block)
{
    gex_Rank_t next = (me + 1) % ranks;
    gex_TM_t pair = gex_TM_Pair(ep, gex_EP_QueryIndex(ep));
    void *theirs, *local;
    uintptr_t size;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, next, &theirs, &local, &size, 0));
    if (local || size < block * ranks)
        die("gex_EP_QueryBoundSegmentNB", "the neighbour's segment is too small, or mapped");
    for (gex_Rank_t step = 0; step + 1 < ranks; step++) {
        size_t at = (me + ranks - step) % ranks * block;
        gex_Event_Wait(gex_RMA_PutNB(pair, next, (char *)theirs + at,
                                     (void *)(uintptr_t)(buffer + at), block, GEX_EVENT_DEFER, 0));
        barrier(team);
    }
}

/* Back by gets: what the neighbour holds of us is what we sent, and lands in a second buffer. */
static void fetch(gex_EP_t ep, CUdeviceptr buffer, size_t block)
{
    gex_Rank_t next = (me + 1) % ranks;
    gex_TM_t pair = gex_TM_Pair(ep, gex_EP_QueryIndex(ep));
    void *theirs, *local;
    uintptr_t size;
    CU(cuMemsetD8(buffer, 0, block * ranks));
    CU(cuCtxSynchronize());
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, next, &theirs, &local, &size, 0));
    for (gex_Rank_t r = 0; r < ranks; r++)
        gex_RMA_GetNBI(pair, (void *)(uintptr_t)(buffer + r * block), next,
                       (char *)theirs + block * ranks + r * block, block, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t first, ep;
    gex_TM_t team;
    gex_MK_t kind;
    gex_MK_Create_args_t args;
    gex_Segment_t segment;
    CUdevice device;
    CUcontext context, current;
    CUdeviceptr buffer;
    int devices;
    GEX(gex_Client_Init(&client, &first, &team, "cuda_ring", &argc, &argv, 0));
    size_t block = argc > 1 ? strtoul(argv[1], NULL, 10) & ~(size_t)3 : 1 << 20;
    me = gex_TM_QueryRank(team);
    ranks = gex_TM_QuerySize(team);

    CU(cuInit(0));
    CU(cuDeviceGetCount(&devices));
    CU(cuDeviceGet(&device, (int)me % devices));
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuMemAlloc(&buffer, 2 * block * ranks)); /* in front what is gathered, then a copy */

    memset(&args, 0, sizeof args);
    args.gex_class = GEX_MK_CLASS_CUDA_UVA;
    args.gex_args.gex_class_cuda_uva.gex_CUdevice = device;
    GEX(gex_MK_Create(&kind, client, &args, 0));
    GEX(gex_Segment_Create(&segment, client, (void *)(uintptr_t)buffer, 2 * block * ranks, kind,
                           0));
    GEX(gex_EP_Create(&ep, client, GEX_EP_CAPABILITY_RMA, 0));
    GEX(gex_EP_BindSegment(ep, segment, 0));
    GEX(gex_EP_PublishBoundSegment(team, &ep, 1, 0));

    fill(buffer + me * block, block / 4);
    barrier(team);
    ring(team, ep, buffer, block);
    check(buffer, block / 4);
    CU(cuMemcpyDtoD(buffer + block * ranks, buffer, block * ranks));
    CU(cuCtxSynchronize());
    barrier(team);
    fetch(ep, buffer, block);
    check(buffer, block / 4);
    CU(cuCtxGetCurrent(&current));
    if (current != context)
        die("cuCtxGetCurrent", "the context is another one");

    barrier(team);
    gex_Segment_Destroy(segment, 0);
    gex_MK_Destroy(kind, 0);
    CU(cuMemFree(buffer));
    CU(cuDevicePrimaryCtxRelease(device));
    if (me == 0)
        printf("ring: ok, %u ranks, %d devices, blocks of %zu\n", (unsigned)ranks, devices, block);
    barrier(team);
    gasnet_exit(0);
    return 0;
}
