/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of a device: the CPU cannot touch it, copies move exactly what they should, and addresses
 * are known by what they are. */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "cuda_start.h"

static volatile unsigned char sink;

static void load(void)
{
    cuda_start(0);
    sink = *(volatile unsigned char *)host_pointer(cuda_alloc(100));
}

static void store(void)
{
    cuda_start(0);
    *((volatile unsigned char *)host_pointer(cuda_alloc(100)) + 99) = 1;
}

static void load_of_freed(void)
{
    CUdeviceptr p;

    cuda_start(0);
    p = cuda_alloc(100);
    GOOD(cuMemFree(p));
    for (int i = 0; i < 20; i++)
        free(malloc(4096));
    sink = *(volatile unsigned char *)host_pointer(p);
}

static void system_calls(void)
{
    CUdeviceptr p;
    int fd[2];
    char c = 1;

    cuda_start(0);
    p = cuda_alloc(4096);
    CHECK(pipe(fd) == 0 && write(fd[1], &c, 1) == 1);
    CHECK(read(fd[0], host_pointer(p), 1) == -1 && errno == EFAULT);
    CHECK(write(fd[1], host_pointer(p), 1) == -1 && errno == EFAULT);
}

/* Random copies in all directions against a model of both sides */
static void random_copies(void)
{
    enum { SIZE = 300000, ROUNDS = 2000, DEVICES = 2 };
    static unsigned char model[2][SIZE], buffer[SIZE];
    CUdeviceptr p[DEVICES];

    cuda_start(0);
    for (int d = 0; d < DEVICES; d++) {
        cuda_start(d);
        p[d] = cuda_alloc(SIZE);
        GOOD(cuMemsetD8(p[d], 0, SIZE));
        GOOD(cuCtxSynchronize()); /* The NULL streams of two contexts are not ordered. */
    }
    for (int i = 0; i < ROUNDS; i++) {
        int d = (int)(test_random() & 1);
        size_t n = test_random() % (test_random() & 3 ? 100 : SIZE);
        size_t to = test_random() % (SIZE - n + 1), from = test_random() % (SIZE - n + 1);

        switch (test_random() % 5) {
        case 0:
            fill_random(buffer, n);
            GOOD(cuMemcpyHtoD(p[d] + to, buffer, n));
            memcpy(model[d] + to, buffer, n);
            break;
        case 1:
            GOOD(cuMemcpyDtoH(buffer, p[d] + from, n));
            CHECK(memcmp(buffer, model[d] + from, n) == 0);
            break;
        case 2:
            GOOD(cuMemcpyDtoD(p[!d] + to, p[d] + from, n));
            memcpy(model[!d] + to, model[d] + from, n);
            break;
        case 3:
            GOOD(cuMemsetD8(p[d] + to, (unsigned char)i, n));
            memset(model[d] + to, (unsigned char)i, n);
            break;
        default:
            GOOD(cuMemcpy(p[!d] + to, p[d] + from, n));
            memcpy(model[!d] + to, model[d] + from, n);
        }
    }
    GOOD(cuCtxSynchronize());
    for (int d = 0; d < DEVICES; d++) {
        GOOD(cuMemcpyDtoH(buffer, p[d], SIZE));
        CHECK(memcmp(buffer, model[d], SIZE) == 0);
    }
}

static void wrong_ranges(void)
{
    CUdeviceptr p, q;
    char host[200];

    cuda_start(0);
    p = cuda_alloc(100);
    q = cuda_alloc(100);
    GIVES(1, cuMemcpyHtoD(p, host, 101));
    GIVES(1, cuMemcpyDtoH(host, p + 1, 100));
    GIVES(1, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host + 100, 10));
    GIVES(1, cuMemcpyHtoD(p, host_pointer(q), 10));
    GIVES(1, cuMemcpyDtoH(host_pointer(p), q, 10));
    GIVES(1, cuMemcpyDtoD(p, q + 50, 51));
    GIVES(1, cuMemsetD32(p + 2, 1, 1));
    GOOD(cuMemcpyHtoD(p + 99, host, 0));
    GOOD(cuMemFree(q));
    GIVES(1, cuMemFree(q));
    GIVES(1, cuMemFree(p + 1));
    GIVES(1, cuMemcpyHtoD(q, host, 1));
    GIVES(1, cuMemcpyHtoD(p, host_pointer(q), 1));
    GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(NULL, NULL, q));
    GOOD(cuMemFree(0));
}

static void wide_fills(void)
{
    CUdeviceptr p;
    uint32_t words[4] = {0};
    uint16_t halves[2];

    cuda_start(0);
    p = cuda_alloc(16);
    GOOD(cuMemsetD32(p, 0x12345678, 3));
    GOOD(cuMemsetD16(p + 12, 0xabcd, 2));
    GOOD(cuMemcpyDtoH(words, p, 16));
    memcpy(halves, words + 3, sizeof halves);
    CHECK(words[0] == 0x12345678 && words[2] == 0x12345678);
    CHECK(halves[0] == 0xabcd && halves[1] == 0xabcd);
}

static void limits(void)
{
    size_t before, after, total;
    CUdeviceptr p, q;

    cuda_start(0);
    GOOD(cuMemGetInfo(&before, &total));
    CHECK(total == 1 << 20 && before == total);
    p = cuda_alloc(600 << 10);
    GOOD(cuMemGetInfo(&after, &total));
    CHECK(before - after == 600 << 10);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 600 << 10));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&q, 0));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, SIZE_MAX));
    GOOD(cuMemFree(p));
    GOOD(cuMemAlloc(&q, 600 << 10));
}

static void attributes(void)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned type = 7, on = 1;
    unsigned long long id[2];
    int device = 7;
    CUcontext context = NULL, mine = cuda_start(1);
    size_t size = 7, range;
    void *answers[] = {&type, &device, &context, &size};
    CUdeviceptr p = cuda_alloc(5000), q = cuda_alloc(1), base;
    _Bool flag;

    GOOD(cuPointerGetAttributes(4, names, answers, p + 4999));
    CHECK(type == CU_MEMORYTYPE_DEVICE && device == 1 && context == mine && size == 5000);
    GOOD(cuMemGetAddressRange(&base, &range, p + 17));
    CHECK(base == p && range == 5000);
    GOOD(cuPointerGetAttribute(&id[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    GOOD(cuPointerGetAttribute(&id[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
    CHECK(id[0] != id[1]);
    GOOD(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p));
    CHECK(flag);
    GOOD(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    GOOD(cuPointerGetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    CHECK(flag);
    /* One attribute of host memory is an error, several are zeros. */
    GIVES(1, cuPointerGetAttribute(&type, names[0], (CUdeviceptr)(uintptr_t)&type));
    GOOD(cuPointerGetAttributes(4, names, answers, (CUdeviceptr)(uintptr_t)&type));
    CHECK(type == 0 && context == NULL && size == 0);
    GIVES(1, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
    GOOD(cuMemFree(q));
    GIVES(1, cuPointerGetAttribute(&type, names[0], q));
}

static void pinned(void)
{
    static char registered[8192];
    void *p;
    unsigned type;
    CUdeviceptr d;

    cuda_start(0);
    GOOD(cuMemHostAlloc(&p, 5000, CU_MEMHOSTALLOC_PORTABLE));
    memset(p, 3, 5000);
    GOOD(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)p));
    CHECK(type == CU_MEMORYTYPE_HOST);
    GOOD(cuMemHostGetDevicePointer(&d, p, 0));
    CHECK(d == (CUdeviceptr)(uintptr_t)p);
    GIVES(1, cuMemFree(d));
    GOOD(cuMemFreeHost(p));
    GIVES(1, cuMemFreeHost(p));
    GOOD(cuMemHostRegister(registered, sizeof registered, 0));
    GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(registered + 100, 10, 0));
    GOOD(cuMemHostUnregister(registered));
    GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(registered));
}

static void descriptors(void)
{
    int before, fd;

    cuda_start(0);
    GOOD(cuMemFree(cuda_alloc(4096)));
    before = count_descriptors();
    for (int i = 0; i < 300; i++) {
        CUdeviceptr p = cuda_alloc(8192);

        GOOD(cuMemGetHandleForAddressRange(&fd, p, 8192, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
        GOOD(cuMemFree(p));
    }
    CHECK(count_descriptors() == before);
}

static const struct gpu_case cases[] = {
    {"load", load, NULL, NULL, SIGSEGV},
    {"store", store, NULL, NULL, SIGSEGV},
    {"load of freed memory", load_of_freed, NULL, NULL, SIGSEGV},
    {"system calls", system_calls, NULL, NULL, 0},
    {"random copies", random_copies, "devices=2", NULL, 0},
    {"random copies, delayed", random_copies, "devices=2,delay=20", NULL, 0},
    {"random copies, weak order", random_copies, "devices=2,weak-order", NULL, 0},
    {"wrong ranges", wrong_ranges, NULL, NULL, 0},
    {"wide fills", wide_fills, NULL, NULL, 0},
    {"limits", limits, "memory=1M", NULL, 0},
    {"attributes", attributes, "devices=2", NULL, 0},
    {"pinned", pinned, NULL, NULL, 0},
    {"descriptors", descriptors, NULL, NULL, 0},
};

int main(void)
{
    return RUN_CASES(cases);
}
