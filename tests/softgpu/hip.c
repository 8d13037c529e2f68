/* SPDX-License-Identifier: BSD-3-Clause
 *
 * HIP on the same device, and HSA's dma-bufs of its memory. */
#include <hip/hip_runtime_api.h>
#include <hsa/hsa_ext_amd.h>
#include <sys/mman.h>

#include "cases.h"

enum { SIZE = 20000, PAGE = 4096 };

static void *alloc(size_t size)
{
    void *p;

    GOOD(hipMalloc(&p, size));
    return p;
}

static void copies(void)
{
    static unsigned char in[SIZE], out[SIZE];
    void *p, *q;
    hipPointerAttribute_t a;
    hipDeviceptr_t base;
    size_t size;
    int n;

    GOOD(hipGetDeviceCount(&n));
    CHECK(n == 2);
    p = alloc(SIZE);
    GOOD(hipSetDevice(1));
    q = alloc(SIZE);
    fill_random(in, SIZE);
    GOOD(hipMemcpyHtoD(p, in, SIZE));
    GOOD(hipMemcpyPeer(q, 1, p, 0, SIZE));
    GOOD(hipMemcpy(out, q, SIZE, hipMemcpyDefault));
    CHECK(memcmp(in, out, SIZE) == 0);
    GOOD(hipMemset(q, 7, 100));
    GOOD(hipMemcpyDtoD(p, q, 200));
    GOOD(hipMemcpyDtoH(out, p, SIZE)); /* of another device, in the NULL stream of this one */
    CHECK(out[0] == 7 && out[99] == 7 && memcmp(in + 100, out + 100, SIZE - 100) == 0);
    GOOD(hipMemset(p, 1, SIZE));
    GOOD(hipMemcpy2DAsync((char *)p + 5, 100, in, 10, 3, 7, hipMemcpyHostToDevice, NULL));
    GOOD(hipMemcpy2DAsync(out, 10, (char *)p + 5, 100, 4, 7, hipMemcpyDeviceToHost, NULL));
    for (int i = 0; i < 7; i++)
        CHECK(memcmp(in + 10 * i, out + 10 * i, 3) == 0 && out[10 * i + 3] == 1);
    GIVES(hipErrorInvalidValue, hipMemcpy2DAsync(p, 2, in, 10, 3, 7, hipMemcpyHostToDevice, NULL));
    GOOD(hipPointerGetAttributes(&a, (char *)q + 5));
    CHECK(a.memoryType == hipMemoryTypeDevice && a.device == 1);
    GIVES(hipErrorInvalidValue, hipPointerGetAttributes(&a, &a));
    GIVES(hipErrorInvalidValue, hipGetLastError());
    GOOD(hipGetLastError());
    GOOD(hipMemGetAddressRange(&base, &size, (char *)q + 5));
    CHECK(base == q && size == SIZE);
    GOOD(hipFree(q));
    GIVES(hipErrorInvalidValue, hipFree(q));
    GIVES(hipErrorInvalidDevice, hipSetDevice(2));
    CHECK(strcmp(hipGetErrorName(hipErrorInvalidDevice), "hipErrorInvalidDevice") == 0);
}

static void streams(void)
{
    unsigned char *host;
    void *p = alloc(SIZE);
    hipStream_t s;
    hipEvent_t e;

    GOOD(hipHostMalloc((void **)&host, SIZE, hipHostMallocDefault));
    memset(host, 0, SIZE);
    GOOD(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
    GOOD(hipEventCreateWithFlags(&e, hipEventDisableTiming));
    GOOD(hipMemsetD8Async(p, 4, SIZE, s));
    GOOD(hipMemcpyAsync(host, p, SIZE, hipMemcpyDeviceToHost, s));
    CHECK(host[0] == 0);
    GOOD(hipEventRecord(e, s));
    GIVES(hipErrorNotReady, hipEventQuery(e));
    GOOD(hipEventSynchronize(e));
    CHECK(host[0] == 4 && host[SIZE - 1] == 4);
    GOOD(hipStreamDestroy(s));
    GOOD(hipEventDestroy(e));
    GOOD(hipHostFree(host));
    GOOD(hipFree(p));
}

static void cpu_access(void)
{
    *(volatile char *)alloc(1) = 1;
}

static void contexts(void)
{
    hipCtx_t first, second, c;
    int device;

    GOOD(hipDevicePrimaryCtxRetain(&second, 1));
    GOOD(hipCtxGetCurrent(&first));
    GOOD(hipCtxPushCurrent(second));
    GOOD(hipGetDevice(&device));
    CHECK(device == 1);
    GOOD(hipCtxPopCurrent(&c));
    CHECK(c == second);
    GOOD(hipCtxGetCurrent(&c));
    GOOD(hipGetDevice(&device));
    CHECK(c == first && device == 0);
    GIVES(hipErrorInvalidContext, hipCtxPopCurrent(&c));
}

/* The dma-buf covers the allocation; the offset is the pointer's offset in it. */
static void dmabufs(void)
{
    unsigned char *p = alloc(3 * PAGE), *bytes, back;
    uint64_t offset = 0;
    int fd = -1;

    CHECK(hsa_amd_portable_export_dmabuf(p + PAGE + 9, PAGE, &fd, &offset) == HSA_STATUS_SUCCESS);
    CHECK(offset == PAGE + 9);
    bytes = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, lseek(fd, 0, SEEK_CUR));
    CHECK(bytes != MAP_FAILED);
    bytes[offset] = 33;
    GOOD(hipMemcpyDtoH(&back, p + PAGE + 9, 1));
    CHECK(back == 33);
    CHECK(hsa_amd_portable_close_dmabuf(fd) == HSA_STATUS_SUCCESS);
    CHECK(hsa_amd_portable_export_dmabuf(p, 4 * PAGE, &fd, &offset) ==
          HSA_STATUS_ERROR_INVALID_ALLOCATION);
    CHECK(hsa_amd_portable_export_dmabuf(&fd, 1, &fd, &offset) ==
          HSA_STATUS_ERROR_INVALID_ALLOCATION);
}

static void no_dmabufs(void)
{
    uint64_t offset;
    int fd;

    CHECK(hsa_amd_portable_export_dmabuf(alloc(PAGE), PAGE, &fd, &offset) == HSA_STATUS_ERROR);
}

static void use_handle(void *at)
{
    hipIpcMemHandle_t h;
    unsigned char c = 5;
    void *p;

    CHECK(read(*(int *)at, &h, sizeof h) == sizeof h);
    GOOD(hipIpcOpenMemHandle(&p, h, hipIpcMemLazyEnablePeerAccess));
    GOOD(hipMemcpyHtoD((char *)p + SIZE - 1, &c, 1));
    GOOD(hipIpcCloseMemHandle(p));
}

static void ipc(void)
{
    hipIpcMemHandle_t h;
    unsigned char c = 0;
    int fd[2], status;
    void *p;
    pid_t pid;

    CHECK(pipe(fd) == 0);
    pid = fork();
    if (pid == 0) {
        use_handle(&fd[0]);
        _exit(0);
    }
    p = alloc(SIZE);
    GOOD(hipIpcGetMemHandle(&h, p));
    CHECK(write(fd[1], &h, sizeof h) == sizeof h);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    GOOD(hipMemcpyDtoH(&c, (char *)p + SIZE - 1, 1));
    CHECK(c == 5);
}

static const struct gpu_case cases[] = {
    {"copies", copies, "devices=2", NULL, 0},
    {"streams", streams, NULL, "copy:ms=50", 0},
    {"access of the CPU", cpu_access, NULL, NULL, SIGSEGV},
    {"contexts", contexts, "devices=2", NULL, 0},
    {"dma-bufs", dmabufs, NULL, NULL, 0},
    {"no dma-bufs", no_dmabufs, "no-dmabuf", NULL, 0},
    {"IPC", ipc, NULL, NULL, 0},
};

int main(void)
{
    return RUN_CASES(cases);
}
