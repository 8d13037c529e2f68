/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions in the memory of an accelerator, which has no mapping at its address: by dma-buf and by
 * peer memory, as local and as remote memory; what the CPU must not do with such memory faults.
 * This program stands in for the accelerator and its peer memory client. */
#include "config.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "common/dmabuf_standin.h"
#include "harness.h"

enum {
    DEVICE_BYTES = 64 << 10,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

struct device {
    int fd;
    char *address; /* PROT_NONE */
    char *view;    /* the device's own path to its memory */
};

static struct device device_open(void)
{
    struct device d = {.fd = memfd_create(TK_DMABUF_NAME, MFD_CLOEXEC)};

    CHECK(d.fd >= 0 && ftruncate(d.fd, DEVICE_BYTES) == 0);
    d.address = mmap(NULL, DEVICE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    d.view = mmap(NULL, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d.fd, 0);
    CHECK(d.address != MAP_FAILED && d.view != MAP_FAILED);
    return d;
}

static void device_close(struct device *d)
{
    munmap(d->address, DEVICE_BYTES);
    munmap(d->view, DEVICE_BYTES);
    close(d->fd);
}

/* A descriptor whose range begins at this offset. */
static int export_at(const struct device *d, off_t offset)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/self/fd/%d", d->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && lseek(fd, offset, SEEK_SET) == offset);
    return fd;
}

static struct ibv_mr *reg_at(struct end *e, const struct device *d, off_t offset, size_t length)
{
    int fd = export_at(d, offset);
    struct ibv_mr *mr =
        ibv_reg_dmabuf_mr(e->pd, 0, length, (uintptr_t)d->address + (size_t)offset, fd, RIGHTS);

    close(fd);
    CHECK(mr != NULL);
    return mr;
}

/* From or to the accelerator's memory of this end. */
static enum ibv_wc_status move(struct end *from, enum ibv_wr_opcode op, const struct ibv_mr *local,
                               const char *at, size_t length, struct address to, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)at, (uint32_t)length, local->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = op,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED | flags,
                                   .wr.rdma = {.remote_addr = to.addr, .rkey = to.rkey}};

    CHECK_EQ(ibv_post_send(from->qp, &wr, &bad), 0);
    return wait_wc(from->scq).status;
}

static void remote_memory(void)
{
    struct device d = device_open();
    struct end a, b;
    struct ibv_mr *mr;
    struct address to;

    open_two(&a, &b, NULL);
    mr = reg_at(&b, &d, 5000, 20000);
    to = (struct address){.rkey = mr->rkey, .addr = (uintptr_t)d.address + 5100};
    fill(a.buf, 4096, 1);
    CHECK_EQ(move(&a, IBV_WR_RDMA_WRITE, a.mr, a.buf, 4096, to, 0), IBV_WC_SUCCESS);
    CHECK(filled(d.view + 5100, 4096, 1));
    CHECK_EQ(move(&a, IBV_WR_RDMA_READ, a.mr, a.buf + 8192, 4096, to, 0), IBV_WC_SUCCESS);
    CHECK(filled(a.buf + 8192, 4096, 1));
    to.addr = (uintptr_t)d.address + 25000;
    CHECK_EQ(move(&a, IBV_WR_RDMA_WRITE, a.mr, a.buf, 1, to, 0), IBV_WC_REM_ACCESS_ERR);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    close_two(&a, &b);
    device_close(&d);
}

static void local_memory(void)
{
    struct device d = device_open();
    struct end a, b;
    struct ibv_mr *mr;
    struct address to;

    open_two(&a, &b, NULL);
    mr = reg_at(&a, &d, 0, DEVICE_BYTES);
    to = address_of(&b);
    fill(d.view + 100, 4096, 2);
    for (int again = 0; again < 3; again++)
        CHECK_EQ(move(&a, IBV_WR_RDMA_WRITE, mr, d.address + 100, 4096, to, 0), IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 4096, 2));
    CHECK_EQ(move(&a, IBV_WR_RDMA_READ, mr, d.address + 8192, 4096, to, 0), IBV_WC_SUCCESS);
    CHECK(filled(d.view + 8192, 4096, 2));
    CHECK_EQ(move(&a, IBV_WR_RDMA_READ, mr, d.address + 16384, 8, to, 0), IBV_WC_SUCCESS);
    CHECK(filled(d.view + 16384, 8, 2));
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    close_two(&a, &b);
    device_close(&d);
}

/* The signal that ended a child which runs this. */
static int signal_of(void (*what)(struct end *a, struct end *b, struct device *d,
                                  struct ibv_mr *mr))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct rlimit none = {0, 0};
        struct device d = device_open();
        struct end a, b;

        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        open_two(&a, &b, NULL);
        what(&a, &b, &d, reg_at(&a, &d, 0, DEVICE_BYTES));
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void put_inline(struct end *a, struct end *b, struct device *d, struct ibv_mr *mr)
{
    move(a, IBV_WR_RDMA_WRITE, mr, d->address, 8, address_of(b), IBV_SEND_INLINE);
}

static void get_small(struct end *a, struct end *b, struct device *d, struct ibv_mr *mr)
{
    /* The first one prepares the short path for plain requests. */
    for (int again = 0; again < 2; again++)
        move(a, IBV_WR_RDMA_READ, mr, d->address, 33, address_of(b), 0);
    move(a, IBV_WR_RDMA_READ, mr, d->address, 32, address_of(b), 0);
}

static void get_larger(struct end *a, struct end *b, struct device *d, struct ibv_mr *mr)
{
    CHECK_EQ(move(a, IBV_WR_RDMA_READ, mr, d->address, 33, address_of(b), 0), IBV_WC_SUCCESS);
}

static void load(struct end *a, struct end *b, struct device *d, struct ibv_mr *mr)
{
    (void)a, (void)b, (void)mr;
    CHECK(*(volatile char *)d->address == 0);
}

/* This case runs before the process has opened a device. */
static void the_cpu_faults(void)
{
    setenv("SOFTHCA_SCATTER", "32", 1);
    CHECK_EQ(signal_of(load), SIGSEGV);
    CHECK_EQ(signal_of(put_inline), SIGSEGV);
    CHECK_EQ(signal_of(get_small), SIGSEGV);
    CHECK_EQ(signal_of(get_larger), 0);
    unsetenv("SOFTHCA_SCATTER");
    CHECK_EQ(signal_of(get_small), 0);
}

static void refused(struct end *e, int fd, uint64_t offset, size_t length, int access, int error)
{
    errno = 0;
    CHECK(ibv_reg_dmabuf_mr(e->pd, offset, length, 4096, fd, access) == NULL);
    CHECK_EQ(errno, error);
}

static void refusals(void)
{
    struct device d = device_open();
    struct end e;
    int other = memfd_create("other", MFD_CLOEXEC), fd = export_at(&d, 4096);

    end_open(&e, NULL);
    CHECK(other >= 0 && ftruncate(other, DEVICE_BYTES) == 0);
    refused(&e, other, 0, 4096, RIGHTS, EINVAL);
    refused(&e, -1, 0, 4096, RIGHTS, EBADF);
    refused(&e, fd, 0, 0, RIGHTS, EINVAL);
    refused(&e, fd, 0, DEVICE_BYTES - 4095, RIGHTS, EINVAL);
    refused(&e, fd, DEVICE_BYTES, 1, RIGHTS, EINVAL);
    refused(&e, fd, UINT64_MAX, 1, RIGHTS, EINVAL);
    refused(&e, fd, 0, 4096, RIGHTS | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
    refused(&e, fd, 0, 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL);
    close(other);
    close(fd);
    end_close(&e);
    device_close(&d);
}

/* A region cannot be moved, and its end takes its mapping along. */
static size_t mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];
    size_t n = 0;

    while (f && fgets(line, sizeof line, f))
        n += strstr(line, TK_DMABUF_NAME) != NULL;
    if (f)
        fclose(f);
    return n;
}

static void lifetime(void)
{
    struct device d = device_open();
    struct end e;
    size_t before = mappings();
    struct ibv_mr *mr;

    end_open(&e, NULL);
    mr = reg_at(&e, &d, 0, 4096);
    CHECK_EQ(mappings(), before + 1);
    CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, e.buf, 4096, 0) != 0);
    CHECK_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), 0);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    CHECK_EQ(mappings(), before);
    end_close(&e);
    device_close(&d);
}

/* ibv_reg_mr of an address without pages: no peer memory client is loaded here. */
static void no_peer_memory(void)
{
    struct device d = device_open();
    struct end e;

    end_open(&e, NULL);
    errno = 0;
    CHECK(ibv_reg_mr(e.pd, d.address, 4096, RIGHTS) == NULL);
    CHECK_EQ(errno, EFAULT);
    end_close(&e);
    device_close(&d);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"the_cpu_faults", the_cpu_faults},
        {"remote_memory", remote_memory},
        {"local_memory", local_memory},
        {"refusals", refusals},
        {"lifetime", lifetime},
        {"no_peer_memory", no_peer_memory},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
