/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The software HCA and the software accelerator in one program: RDMA into and out of memory of a
 * device, by dma-buf and by peer memory, with a small BAR and with weak ordering. */
#include <errno.h>

#include "tests/softhca/harness.h"

#include "cuda_start.h"

enum { PAGE = 4096, SIZE = 64 * PAGE };
static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

static void begin(void)
{
    char fabric[64];

    snprintf(fabric, sizeof fabric, "softgpu-%d", getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    cuda_start(0);
}

static struct ibv_mr *by_dmabuf(struct end *e, CUdeviceptr p, size_t size)
{
    struct ibv_mr *mr;
    int fd;

    GOOD(cuMemGetHandleForAddressRange(&fd, p, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    mr = ibv_reg_dmabuf_mr(e->pd, 0, size, p, fd, rights);
    if (!mr && (errno == EOPNOTSUPP || errno == ENOSYS))
        _exit(SKIPPED);
    close(fd);
    CHECK(mr);
    return mr;
}

static void move(struct end *from, enum ibv_wr_opcode op, const struct ibv_mr *local, uint64_t at,
                 const struct ibv_mr *remote, uint64_t there, uint32_t length)
{
    struct ibv_sge sge = {at, length, local->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = op,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {.remote_addr = there, .rkey = remote->rkey}};

    CHECK(ibv_post_send(from->qp, &wr, &bad) == 0);
    CHECK(wait_wc(from->scq).status == IBV_WC_SUCCESS);
}

/* Host to device, device to device, device to host; of the second page on */
static void round_trip(struct end *a, struct end *b, struct ibv_mr *x, CUdeviceptr p,
                       struct ibv_mr *y, CUdeviceptr q)
{
    static unsigned char model[SIZE], back[SIZE];
    const uint32_t n = 20000;

    for (int i = 0; i < 5; i++) {
        uint32_t at = test_random() % (SIZE - PAGE - n), to = test_random() % (SIZE - PAGE - n);

        fill_random(model, n);
        memcpy(a->buf, model, n);
        move(a, IBV_WR_RDMA_WRITE, a->mr, (uintptr_t)a->buf, y, q + PAGE + to, n);
        GOOD(cuMemcpyDtoH(back, q + PAGE + to, n));
        CHECK(memcmp(model, back, n) == 0);
        move(a, IBV_WR_RDMA_READ, x, p + PAGE + at, y, q + PAGE + to, n);
        GOOD(cuMemcpyDtoH(back, p + PAGE + at, n));
        CHECK(memcmp(model, back, n) == 0);
        GOOD(cuMemsetD8(p + PAGE + at, (unsigned char)i, 100));
        GOOD(cuCtxSynchronize());
        memset(model, i, 100);
        move(a, IBV_WR_RDMA_WRITE, x, p + PAGE + at, b->mr, (uintptr_t)b->buf, n);
        CHECK(memcmp(b->buf, model, n) == 0);
    }
}

static void dmabufs(void)
{
    struct end a, b;
    CUdeviceptr p, q;
    struct ibv_mr *x, *y;

    begin();
    open_two(&a, &b, NULL);
    p = cuda_alloc(SIZE);
    q = cuda_alloc(SIZE);
    x = by_dmabuf(&a, p + PAGE, SIZE - PAGE);
    y = by_dmabuf(&b, q + PAGE, SIZE - PAGE);
    round_trip(&a, &b, x, p, y, q);
    CHECK(ibv_dereg_mr(x) == 0 && ibv_dereg_mr(y) == 0);
    close_two(&a, &b);
}

static void peer_memory(void)
{
    struct end a, b;
    CUdeviceptr p, q;
    struct ibv_mr *x, *y;

    begin();
    open_two(&a, &b, NULL);
    p = cuda_alloc(SIZE);
    q = cuda_alloc(SIZE);
    x = ibv_reg_mr(a.pd, host_pointer(p + 1), SIZE - 1, rights);
    if (!x && (errno == EFAULT || errno == EOPNOTSUPP))
        _exit(SKIPPED);
    y = ibv_reg_mr(b.pd, host_pointer(q), SIZE, rights);
    CHECK(x && y);
    round_trip(&a, &b, x, p, y, q);
    CHECK(ibv_dereg_mr(x) == 0 && ibv_dereg_mr(y) == 0);
    close_two(&a, &b);
}

static void refused(void)
{
    struct end a, b;

    begin();
    open_two(&a, &b, NULL);
    CHECK(ibv_reg_mr(a.pd, host_pointer(cuda_alloc(SIZE)), SIZE, rights) == NULL);
    close_two(&a, &b);
}

/* A region counts against the BAR until it is deregistered. */
static void small_bar(void)
{
    struct end a, b;
    CUdeviceptr p;
    struct ibv_mr *x;
    int fd;

    begin();
    open_two(&a, &b, NULL);
    p = cuda_alloc(SIZE);
    x = by_dmabuf(&a, p, SIZE / 2);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemGetHandleForAddressRange(&fd, p, SIZE / 2, 1, 0));
    CHECK(ibv_dereg_mr(x) == 0);
    x = by_dmabuf(&a, p, SIZE / 2);
    CHECK(ibv_dereg_mr(x) == 0);
    close_two(&a, &b);
}

static void weak_order(void)
{
    struct end a, b;
    CUdeviceptr p;
    struct ibv_mr *x;
    unsigned char back;

    begin();
    open_two(&a, &b, NULL);
    p = cuda_alloc(SIZE);
    GOOD(cuMemsetD8(p, 1, SIZE));
    GOOD(cuCtxSynchronize());
    x = by_dmabuf(&b, p, SIZE);
    a.buf[0] = 2;
    move(&a, IBV_WR_RDMA_WRITE, a.mr, (uintptr_t)a.buf, x, p + 77, 1);
    GOOD(cuMemcpyDtoH(&back, p + 77, 1));
    CHECK(back == 1);
    move(&a, IBV_WR_RDMA_READ, a.mr, (uintptr_t)a.buf + 8, x, p + 77, 1);
    CHECK(a.buf[8] == 2);
    GOOD(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
    GOOD(cuMemcpyDtoH(&back, p + 77, 1));
    CHECK(back == 2);
    CHECK(ibv_dereg_mr(x) == 0);
    close_two(&a, &b);
}

static const struct gpu_case cases[] = {
    {"dma-bufs", dmabufs, "no-peermem", NULL, 0},
    {"peer memory", peer_memory, "no-dmabuf", NULL, 0},
    {"refused", refused, "no-peermem", NULL, 0},
    {"small BAR", small_bar, "bar=128K", NULL, 0},
    {"weak order", weak_order, "weak-order", NULL, 0},
};

int main(void)
{
    if (sysconf(_SC_PAGESIZE) != PAGE) {
        puts("skipped: written for pages of 4 KiB");
        return SKIPPED;
    }
    return RUN_CASES(cases);
}
