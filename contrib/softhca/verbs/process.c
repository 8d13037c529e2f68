/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The membership of this process: its slot on the fabric, its segment, and what happens to both at
 * fork(). Owns both; shca.lock serialises creation. A program that never opens a softhca device
 * never gets here, so preloading the library into it costs nothing. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/verbs.h"
#include "wire/udp/udp.h"

/* Size in address space, not in memory: only touched pages exist. 63 mapped peers make 16 GiB of
 * addresses, half of what valgrind can still place. */
static const uint64_t segment_bytes = UINT64_C(256) << 20;

static uint64_t pages(uint64_t bytes)
{
    return (bytes + 4095) & ~UINT64_C(4095);
}

static void lay_out(struct shca_segment *s)
{
    uint64_t at = 4096;

    s->mr_off = at;
    at += pages(SHCA_MRS * sizeof(struct shca_mr_sh));
    s->qp_off = at;
    at += pages(SHCA_QPS * sizeof(struct shca_qp_sh));
    s->cq_off = at;
    at += pages(SHCA_CQS * sizeof(struct shca_cq_sh));
    s->words_off = at;
    at += pages(SHCA_WORD_LOCKS * sizeof(struct shca_word_lock));
    s->mcast_off = at;
    at += pages(SHCA_MCASTS * sizeof(struct shca_mcast_sh));
    s->srq_off = at;
    at += pages(SHCA_SRQS * sizeof(struct shca_srq_sh));
    /* At the first read of a page the kernel maps those that exist of 16, from a multiple of 16 on:
     * so a peer that has sent a datagram also has the first connection's queue mapped. */
    s->heap_off = (at + SHCA_FAULT_AROUND - 1) & ~((uint64_t)SHCA_FAULT_AROUND - 1);
    s->size = segment_bytes;
}

static int create_segment(void)
{
    struct shca_segment *s;
    struct rlimit most;
    int fd;

    /* Above that limit ftruncate would kill the program by SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < segment_bytes) {
        shca_log("the limit of file sizes (ulimit -f) is %llu bytes; a device needs a segment of "
                 "%llu: raise it",
                 (unsigned long long)most.rlim_cur, (unsigned long long)segment_bytes);
        return EFBIG;
    }
    fd = memfd_create("softhca", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return errno;
    /* Sealed, because a peer would die by SIGBUS if a segment that it maps could shrink. */
    if (fchmod(fd, 0600) != 0 || ftruncate(fd, (off_t)segment_bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        goto fail;
    s = mmap(NULL, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (s == MAP_FAILED)
        goto fail;
    lay_out(s);
    s->pid = shca.pid;
    s->slot = shca.slot;
    memcpy(s->fabric, shca_config.fabric, sizeof s->fabric);
    s->hcas = (uint32_t)shca_config.hcas;
    s->ports = (uint32_t)shca_config.ports;
    s->roce = shca_config.profile_list ? SHCA_ROCE_BY_PROFILE : shca_config.roce;
    s->magic = SHCA_MAGIC;
    shca.seg = s;
    shca.seg_fd = fd;
    return 0;
fail:;
    int e = errno;
    close(fd);
    return e;
}

static void drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void drop_all(void)
{
    drop(&shca.seg_fd);
    drop(&shca.claim_fd);
    drop(&shca.info_fd);
    drop(&shca.liveness[0]);
    drop(&shca.liveness[1]);
    shca_directory_drop();
    shca.seg = NULL;
}

static int join_locked(void)
{
    int e;

    shca.pid = (uint32_t)getpid();
    shca_stats_on = shca_config.stats != NULL;
    e = shca_registry_claim(&shca.slot, &shca.claim_fd);
    if (e == 0)
        e = create_segment();
    if (e == 0)
        e = shca_heap_init(shca.seg->heap_off, shca.seg->size - shca.seg->heap_off);
    if (e == 0)
        e = shca_pipe_make(&shca.liveness[0], &shca.liveness[1], &shca.seg->liveness);
    if (e == 0) {
        shca_registry_open_directory();
        shca.seg->directory = shca_directory_place();
        e = shca_registry_publish(shca.slot, shca.seg_fd, &shca.info_fd);
    }
    /* Only after our own name is published: of two processes that join at the same time, at least
     * one sees the other. */
    if (e == 0)
        e = shca_registry_agree();
    if (e != 0) {
        if (shca.seg)
            munmap(shca.seg, segment_bytes);
        drop_all();
        shca_registry_close_directory();
        if (e != EUSERS && e != EINVAL && e != EFBIG && e != ENOTSUP)
            shca_log("cannot join fabric %s: %s; %s", shca_config.fabric, strerror(e),
                     shca_remedy(e));
        return e;
    }
    /* Nothing is ever written to it: a smaller pipe counts less against the user's limit. */
    (void)fcntl(shca.liveness[0], F_SETPIPE_SZ, 4096);
    /* Yama's ptrace_scope 1 would forbid peers to copy to and from our private memory. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    /* After publishing: from now on a process that changes links finds us among the members. */
    shca_link_join();
    shca_registry_close_directory();
    atomic_store(&shca.fatal, 0);
    /* It also serves the softhca command; without it the device works, but slower to react. */
    shca_engine_start();
    return 0;
}

static void process_forked(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    shca_contexts_inherited();
    shca.lock = fresh;
    shca_fault_inherited();
    shca_early_inherited();
    shca_udp_inherited();
    shca_registry_inherited();
    memset(&shca_stats, 0, sizeof shca_stats);
    if (!shca.seg)
        return;
    /* Open descriptors would keep the parent's membership alive after its death: close them. The
     * mapping stays, because handles of the parent point into it. */
    drop_all();
    shca_multicast_inherited();
    shca_peers_inherited();
    shca_helper_inherited();
    shca_watch_inherited();
    shca_pending_inherited();
    shca_xrcds_inherited();
    memset(shca.qps, 0, sizeof shca.qps);
    memset(shca.cqs, 0, sizeof shca.cqs);
    memset(shca.srqs, 0, sizeof shca.srqs);
    shca.n_qp = shca.n_cq = shca.n_mr = shca.n_pd = shca.n_srq = 0;
    shca.pending = 0;
}

static void at_fork_once(void)
{
    pthread_atfork(NULL, NULL, process_forked);
}

int shca_join(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int e = 0;

    pthread_once(&once, at_fork_once);
    pthread_mutex_lock(&shca.lock);
    if (!shca.seg)
        e = join_locked();
    pthread_mutex_unlock(&shca.lock);
    return e;
}
