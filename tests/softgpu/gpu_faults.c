/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults on purpose: each kind hits what it names, once or as often as it says, and what it leaves
 * behind is what a real device would. */
#include "cuda_start.h"

static void copies(void)
{
    unsigned char c = 1, back = 0;
    CUdeviceptr p;

    cuda_start(0);
    p = cuda_alloc(10);
    for (int i = 1; i <= 5; i++)
        GIVES(i == 3 ? CUDA_ERROR_UNKNOWN : 0, cuMemcpyHtoD(p + i, &c, 1));
    /* The failed copy moved no data, and the context remains usable. */
    GOOD(cuMemcpyDtoH(&back, p + 3, 1));
    CHECK(back == 0);
    GOOD(cuMemcpyDtoH(&back, p + 4, 1));
    CHECK(back == 1);
}

/* An asynchronous copy that fails breaks its context when it runs. */
static void late(void)
{
    CUdeviceptr p, q;
    CUstream s;
    CUresult r;

    cuda_start(0);
    p = cuda_alloc(10);
    GOOD(cuStreamCreate(&s, 0));
    GOOD(cuMemsetD8Async(p, 1, 10, s));
    r = cuStreamSynchronize(s);
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, r);
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&q, 1));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamQuery(s));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemFree(p));
    GOOD(cuCtxPopCurrent(NULL));
    GOOD(cuDevicePrimaryCtxRelease(0));
    cuda_start(0); /* a new one is well */
    cuda_alloc(1);
}

static void at_call(void)
{
    CUdeviceptr p;
    CUstream s;

    cuda_start(0);
    p = cuda_alloc(10);
    GOOD(cuStreamCreate(&s, 0));
    GIVES(CUDA_ERROR_UNKNOWN, cuMemsetD8Async(p, 1, 10, s));
    GOOD(cuStreamSynchronize(s));
    GOOD(cuMemsetD8Async(p, 1, 10, s));
}

static void other_kinds(void)
{
    CUdeviceptr p, q;
    CUipcMemHandle h;
    CUstream s;
    int fd;

    cuda_start(0);
    p = cuda_alloc(4096);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 1));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 1));
    GIVES(CUDA_ERROR_NOT_PERMITTED, cuMemGetHandleForAddressRange(&fd, p, 4096, 1, 0));
    GOOD(cuMemGetHandleForAddressRange(&fd, p, 4096, 1, 0));
    GIVES(CUDA_ERROR_MAP_FAILED, cuIpcGetMemHandle(&h, p));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuStreamCreate(&s, 0));
}

static void lost(void)
{
    CUdeviceptr p;
    char c;

    cuda_start(0);
    cuda_start(1);
    p = cuda_alloc(4096);
    for (int i = 0; i < 9; i++)
        GOOD(cuMemcpyDtoH(&c, p, 1));
    for (int i = 0; i < 3; i++)
        GIVES(CUDA_ERROR_ECC_UNCORRECTABLE, cuMemcpyDtoH(&c, p, 1));
    GIVES(CUDA_ERROR_ECC_UNCORRECTABLE, cuCtxSynchronize());
    GOOD(cuCtxPopCurrent(NULL));
    cuda_alloc(1); /* the other device */
}

/* The same seed draws the same. */
static void draws(void *out)
{
    CUdeviceptr p;
    unsigned seen = 0;
    char c;

    cuda_start(0);
    p = cuda_alloc(10);
    for (int i = 0; i < 32; i++)
        seen = seen << 1 | (cuMemcpyDtoH(&c, p, 1) != 0);
    CHECK(write(*(int *)out, &seen, sizeof seen) == sizeof seen);
}

static void seeds(void)
{
    unsigned seen[3];
    int fd[2];

    CHECK(pipe(fd) == 0);
    for (int i = 0; i < 3; i++) {
        setenv("SOFTGPU", i < 2 ? "seed=5" : "seed=6", 1);
        CHECK(in_child(draws, &fd[1]) == 0);
        CHECK(read(fd[0], &seen[i], sizeof seen[i]) == sizeof seen[i]);
    }
    CHECK(seen[0] == seen[1] && seen[0] != seen[2] && seen[0] != 0 && seen[0] != ~0U);
}

static const struct gpu_case cases[] = {
    {"copies", copies, NULL, "copy:nth=3", 0},
    {"late", late, NULL, "copy:nth=1,error=CUDA_ERROR_ILLEGAL_ADDRESS", 0},
    {"at the call", at_call, NULL, "copy:nth=1,when=call", 0},
    {"other kinds", other_kinds, NULL,
     "alloc:after=1;export:nth=1,error=CUDA_ERROR_NOT_PERMITTED;ipc;stream", 0},
    {"lost", lost, "devices=2", "lost:after=10,dev=1,error=CUDA_ERROR_ECC_UNCORRECTABLE", 0},
    {"seeds", seeds, NULL, "copy:p=0.5", 0},
};

int main(void)
{
    return RUN_CASES(cases);
}
