/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory for HCAs: dma-buf stand-ins, peer memory, the BAR and weak ordering. The test maps the
 * descriptors as softhca does. */
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

#include "common/dmabuf_standin.h"
#include "cuda_start.h"

enum { PAGE = 4096, PAGES = 8, SIZE = PAGES * PAGE };

static int dmabuf(CUdeviceptr p, size_t size)
{
    int fd = -1;

    GOOD(cuMemGetHandleForAddressRange(&fd, p, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    return fd;
}

static unsigned char *map(int fd, size_t size)
{
    void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, lseek(fd, 0, SEEK_CUR));

    CHECK(m != MAP_FAILED);
    return m;
}

static tk_peermem_export peermem(void)
{
    tk_peermem_export f;
    void *symbol = dlsym(RTLD_DEFAULT, TK_PEERMEM_FUNCTION);

    CHECK(symbol);
    memcpy(&f, &symbol, sizeof f);
    return f;
}

static void ranges(void)
{
    unsigned char *bytes, back[PAGE];
    char path[64], link[64] = "";
    CUdeviceptr p;
    int fd;

    cuda_start(0);
    p = cuda_alloc(SIZE);
    GOOD(cuMemsetD8(p, 1, SIZE));
    fd = dmabuf(p + 3 * PAGE, 2 * PAGE);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(readlink(path, link, sizeof link - 1) > 0);
    CHECK(strncmp(link, TK_DMABUF_LINK, strlen(TK_DMABUF_LINK)) == 0);
    CHECK(lseek(fd, 0, SEEK_CUR) == 3 * PAGE);
    bytes = map(fd, 2 * PAGE);
    close(fd);
    GOOD(cuCtxSynchronize());
    CHECK(bytes[0] == 1);
    memset(bytes + PAGE, 77, PAGE);
    GOOD(cuMemcpyDtoH(back, p + 4 * PAGE, PAGE));
    CHECK(back[0] == 77 && back[PAGE - 1] == 77);
    GOOD(cuMemcpyDtoH(back, p + 3 * PAGE, PAGE));
    CHECK(back[0] == 1 && back[PAGE - 1] == 1);
    GOOD(cuMemFree(p)); /* What was exported stays. */
    CHECK(bytes[0] == 1 && bytes[PAGE] == 77);
}

static void wrong(void)
{
    CUdeviceptr p;
    int fd = -1;

    cuda_start(0);
    p = cuda_alloc(PAGE + 100);
    close(dmabuf(p, 2 * PAGE)); /* up to the end of its last page */
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p, 3 * PAGE, 1, 0));
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p, 100, 1, 0));
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p + 8, PAGE, 1, 0));
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p, PAGE, 1, 1));
    GIVES(1,
          cuMemGetHandleForAddressRange(&fd, (CUdeviceptr)(uintptr_t)&fd & -4096ULL, PAGE, 1, 0));
    GOOD(cuMemFree(p));
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p, PAGE, 1, 0));
    CHECK(fd == -1);
}

static void peer_memory(void)
{
    unsigned char *bytes, back;
    CUdeviceptr p;
    off_t at = -1;
    int fd = -1;

    cuda_start(0);
    p = cuda_alloc(SIZE);
    CHECK(peermem()(host_pointer(p + PAGE + 5), 10, &fd, &at) == 0);
    CHECK(at == PAGE + 5 && lseek(fd, 0, SEEK_CUR) == at);
    bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(bytes != MAP_FAILED);
    bytes[at] = 42;
    GOOD(cuMemcpyDtoH(&back, p + PAGE + 5, 1));
    CHECK(back == 42);
    CHECK(peermem()(&back, 1, &fd, &at) == EINVAL);
    CHECK(peermem()(host_pointer(p), SIZE + 1, &fd, &at) == EINVAL);
    GOOD(cuMemFree(p));
    CHECK(peermem()(host_pointer(p), 1, &fd, &at) == EINVAL);
}

static void refused(void)
{
    CUdeviceptr p;
    off_t at;
    int fd, value;

    cuda_start(0);
    p = cuda_alloc(SIZE);
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, p, SIZE, 1, 0));
    CHECK(peermem()(host_pointer(p), 1, &fd, &at) == ENOTSUP);
    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    CHECK(value == 0);
    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0));
    CHECK(value == 0);
}

/* The BAR is full while a descriptor or a mapping exists in any process, and no longer */
static void small_bar(void)
{
    unsigned char *bytes;
    CUdeviceptr p;
    off_t at;
    int fd, other;

    cuda_start(0);
    p = cuda_alloc(SIZE);
    fd = dmabuf(p, 6 * PAGE);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemGetHandleForAddressRange(&other, p, 3 * PAGE, 1, 0));
    CHECK(peermem()(host_pointer(p), 3 * PAGE, &other, &at) == ENOMEM);
    other = dmabuf(p, 2 * PAGE);
    bytes = map(fd, PAGE);
    close(fd);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemGetHandleForAddressRange(&fd, p, PAGE, 1, 0));
    close(other);
    close(dmabuf(p, PAGE));
    munmap(bytes, PAGE);
    close(dmabuf(p, SIZE));
    cuda_start(1); /* a BAR of its own */
    fd = dmabuf(cuda_alloc(SIZE), SIZE);
    GOOD(cuCtxPopCurrent(NULL));
    close(dmabuf(p, SIZE));
}

static void weak_order(void)
{
    unsigned char *bytes, back[PAGE];
    CUdeviceptr p;
    int value;

    cuda_start(0);
    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0));
    CHECK(value == CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE);
    p = cuda_alloc(SIZE);
    memset(back, 1, PAGE);
    GOOD(cuMemcpyHtoD(p, back, PAGE));
    bytes = map(dmabuf(p, SIZE), SIZE);
    CHECK(bytes[7] == 1);
    bytes[7] = 2; /* as an HCA */
    bytes[PAGE * 3] = 3;
    GOOD(cuMemcpyDtoH(back, p, PAGE));
    CHECK(back[7] == 1);
    /* The HCA reads what the device writes meanwhile, and a flush does not change it. */
    GOOD(cuMemsetD8(p + 8, 9, 1));
    GOOD(cuCtxSynchronize());
    CHECK(bytes[8] == 9 && bytes[7] == 2);
    GOOD(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    GOOD(cuMemcpyDtoH(back, p, PAGE));
    CHECK(back[7] == 2 && back[8] == 9 && back[9] == 1);
    GOOD(cuMemcpyDtoH(back, p + 3 * PAGE, 1));
    CHECK(back[0] == 3);
}

static void strong_order(void)
{
    int value;

    cuda_start(0);
    GOOD(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0));
    CHECK(value == CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES);
    GOOD(cuFlushGPUDirectRDMAWrites(0, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES));
    GIVES(1, cuFlushGPUDirectRDMAWrites(0, 1));
}

/* cuMemCreate: memory of an address range that the client composed */
static void mapped_memory(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle first, second;
    CUdeviceptr p, base;
    unsigned char c = 1;
    CUcontext context = (CUcontext)&c;
    size_t grain, size;
    int fd;

    cuda_start(0);
    GOOD(cuMemGetAllocationGranularity(&grain, &prop, 0));
    GOOD(cuMemAddressReserve(&p, 4 * grain, 0, 0, 0));
    CHECK(p % grain == 0);
    GIVES(1, cuMemCreate(&first, grain + 1, &prop, 0));
    GOOD(cuMemCreate(&first, grain, &prop, 0));
    prop.allocFlags.gpuDirectRDMACapable = 1;
    GOOD(cuMemCreate(&second, 2 * grain, &prop, 0));
    GOOD(cuMemMap(p, grain, 0, first, 0));
    GIVES(1, cuMemMap(p, grain, 0, first, 0));
    GOOD(cuMemMap(p + grain, 2 * grain, 0, second, 0));
    GIVES(1, cuMemMap(p + 4 * grain, grain, 0, first, 0));
    GIVES(1, cuMemcpyHtoD(p, &c, 1)); /* no access yet */
    GOOD(cuMemSetAccess(p, 3 * grain, &access, 1));
    GOOD(cuMemcpyHtoD(p + 3 * grain - 1, &c, 1));
    GOOD(cuMemGetAddressRange(&base, &size, p + 2 * grain));
    CHECK(base == p + grain && size == 2 * grain);
    GOOD(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    CHECK(context == NULL);
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p, grain, 1, 0)); /* not for RDMA */
    close(dmabuf(p + grain, 2 * grain));
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p, 3 * grain, 1, 0));
    GIVES(1, cuMemFree(p));
    GOOD(cuMemRelease(first));
    GIVES(1, cuMemRelease(first));
    GOOD(cuMemcpyHtoD(p, &c, 1)); /* still mapped */
    GIVES(1, cuMemAddressFree(p, 4 * grain));
    GIVES(1, cuMemUnmap(p, grain + 1));
    GOOD(cuMemUnmap(p, 3 * grain));
    GIVES(1, cuMemcpyHtoD(p, &c, 1));
    GOOD(cuMemRelease(second));
    GOOD(cuMemGetInfo(&size, &grain));
    CHECK(size == grain);
    GOOD(cuMemAddressFree(p, 4 * (2 << 20)));
}

static const struct gpu_case cases[] = {
    {"ranges", ranges, NULL, NULL, 0},
    {"wrong ranges", wrong, NULL, NULL, 0},
    {"peer memory", peer_memory, "no-dmabuf", NULL, 0},
    {"refused", refused, "no-dmabuf,no-peermem", NULL, 0},
    {"small BAR", small_bar, "bar=32K,devices=2", NULL, 0},
    {"weak order", weak_order, "weak-order", NULL, 0},
    {"strong order", strong_order, NULL, NULL, 0},
    {"cuMemMap", mapped_memory, NULL, NULL, 0},
};

int main(void)
{
    if (sysconf(_SC_PAGESIZE) != PAGE) {
        puts("skipped: written for pages of 4 KiB");
        return SKIPPED;
    }
    return RUN_CASES(cases);
}
