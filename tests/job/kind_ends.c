/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rank destroys its last kind while a device that only the library chose still copies for it:
 * the put goes from host memory to a neighbour's device, by IPC and a device of the initiator. The
 * put arrives, and the device is given back after it.
 *
 * Usage: kind_ends, by two neighbours, with slow copies (SOFTGPU_FAULT). */
#include "config.h"

#include "job.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "gasnet_mk.h"

enum { SIZE = 300000, ENDPOINT = 1 };

static gex_EP_t ep;
static gex_MK_t kind;
static int (*context_state)(int device, unsigned *flags, int *is_active);

static int is_active(void)
{
    unsigned flags;
    int active = -1;
    CHECK(context_state(0, &flags, &active) == 0);
    return active;
}

static void make_kind(void)
{
    gex_MK_Create_args_t args = {.gex_class = GEX_MK_CLASS_CUDA_UVA};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library, "%s", dlerror());
    *(void **)&context_state = dlsym(library, "cuDevicePrimaryCtxGetState");
    CHECK(context_state);
    CHECK(gex_MK_Create(&kind, job.client, &args, 0) == GASNET_OK);
    CHECK(is_active());
}

/* Rank 0 has a segment on its device, rank 1 only a kind. */
static void publish(void)
{
    gex_Segment_t segment;
    CHECK(gex_EP_Create(&ep, job.client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    if (job.rank == 0) {
        CHECK(gex_Segment_Create(&segment, job.client, NULL, SIZE, kind, 0) == GASNET_OK);
        CHECK(gex_EP_BindSegment(ep, segment, 0) == GASNET_OK);
    }
    CHECK(gex_EP_PublishBoundSegment(job.tm, &ep, 1, 0) == GASNET_OK);
}

static void put_and_destroy(void)
{
    char *ours = malloc(SIZE), *back = malloc(SIZE);
    gex_TM_t pair = gex_TM_Pair(job.ep, ENDPOINT);
    void *there = NULL;
    CHECK(ours && back);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, 0, &there, NULL, NULL, 0));
    job_fill(ours, SIZE, 1);
    gex_Event_t put = gex_RMA_PutNB(pair, 0, there, ours, SIZE, GEX_EVENT_DEFER, 0);
    CHECK(gex_Event_Test(put) == GASNET_ERR_NOT_READY, "copies are not slow");
    gex_MK_Destroy(kind, 0);
    CHECK(is_active(), "the device was closed while it copied");
    gex_Event_Wait(put);
    CHECK(!is_active(), "the device was not closed after its last copy");
    CHECK(gex_RMA_GetBlocking(pair, back, 0, there, SIZE, 0) == 0);
    CHECK_PATTERN(back, SIZE, 1);
    free(ours);
    free(back);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 65536);
    make_kind();
    publish();
    job_phase("put");
    if (job.rank == 1)
        put_and_destroy();
    job_end();
}
