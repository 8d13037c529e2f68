/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Other processes on the fabric, attached when the first message goes to them: their segment, their
 * regions and their pipes, all opened through /proc/<pid>/fd, which the kernel allows to the same
 * user only. Owns the peer table; table_lock protects it and the user counts, each peer's own lock
 * its maps and pipes. */
#include "config.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fabric/fabric.h"

struct shca_open_pipe {
    struct shca_pipe name;
    int fd;
    struct shca_open_pipe *next;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_peer *table[SHCA_MEMBERS]; /* the current peer of each slot */
static _Atomic int refused;
static struct shca_peer *retired; /* dead, but possibly still in use by some queue pair */

void shca_peer_peek(uint32_t slot, void (*look)(const struct shca_segment *, void *), void *arg)
{
    struct shca_segment *s;
    uint32_t pid;
    int fd;

    if (shca_registry_find(slot, &pid, &fd) != 0 || !(s = shca_segment_map(slot, pid, fd)))
        return;
    look(s, arg);
    munmap(s, s->size);
}

static void destroy(struct shca_peer *p)
{
    for (unsigned c = 0; c < SHCA_MRS / 256; c++) {
        struct shca_map *chunk = atomic_load(&p->maps[c]);

        for (unsigned i = 0; chunk && i < 256; i++)
            if (chunk[i].map)
                munmap(chunk[i].map, chunk[i].map_bytes);
        free(chunk);
    }
    while (p->pipes) {
        struct shca_open_pipe *o = p->pipes;

        p->pipes = o->next;
        close(o->fd);
        free(o);
    }
    if (p->seg && !p->self)
        munmap(p->seg, p->seg->size);
    if (p->pidfd >= 0)
        close(p->pidfd);
    if (p->liveness >= 0)
        close(p->liveness);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct shca_peer *new_peer(uint32_t slot, uint32_t pid)
{
    struct shca_peer *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->slot = slot;
    p->pid = pid;
    p->pidfd = p->liveness = -1;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static bool peer_identify(struct shca_peer *p)
{
    p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    /* Any other errno: it died, or this process is out of descriptors. */
    if (p->pidfd < 0 && (errno == ENOSYS || errno == EPERM))
        p->start = shca_start_time(p->pid);
    return p->pidfd >= 0 || p->start != 0;
}

static bool still_same(const struct shca_peer *p)
{
    return p->pidfd >= 0 || shca_start_time(p->pid) == p->start;
}

/* The pidfd does not report an exec of the peer, after which its addresses mean something else; its
 * liveness pipe does. */
static bool open_liveness(struct shca_peer *p)
{
    struct stat st;

    p->liveness = shca_open_of(p->pid, p->seg->liveness.fd, O_WRONLY);
    return p->liveness >= 0 && fstat(p->liveness, &st) == 0 && S_ISFIFO(st.st_mode) &&
           st.st_ino == p->seg->liveness.ino;
}

/* Causes in this process, not in the peer, are reported here, once. Pid 0: it could not be looked
 * up. */
static void peer_explain(uint32_t pid, int e)
{
    static _Atomic int reported;

    if (e != ENOMEM && e != EMFILE && e != ENFILE && e != EAGAIN)
        return;
    atomic_store(&refused, 1);
    if (e == EAGAIN || atomic_exchange(&reported, 1)) /* EAGAIN: reported by helper.c */
        return;
    if (pid)
        shca_log("cannot reach process %u of fabric %s: %s; %s", pid, shca_config.fabric,
                 strerror(e), shca_remedy(e));
    else
        shca_log("cannot look up a process of fabric %s: /proc/self/net/unix: %s; %s",
                 shca_config.fabric, strerror(e), shca_remedy(e));
}

static struct shca_peer *peer_attach(uint32_t slot)
{
    struct shca_peer *p;
    uint32_t pid;
    int fd, e;

    if (slot == shca.slot) {
        p = new_peer(slot, shca.pid);
        if (p) {
            p->self = true;
            p->seg = shca.seg;
        }
        return p;
    }
    if ((e = shca_registry_find(slot, &pid, &fd)) != 0) {
        peer_explain(0, e);
        return NULL;
    }
    errno = 0;
    if (!(p = new_peer(slot, pid))) {
        peer_explain(pid, ENOMEM);
        return NULL;
    }
    /* The identity first: whatever is opened by pid after it belongs to that process or fails. */
    if (!peer_identify(p) || !(p->seg = shca_segment_map(slot, pid, fd)) || !open_liveness(p) ||
        !still_same(p) || (errno = shca_engine_watch(p)) != 0) {
        peer_explain(pid, errno);
        destroy(p);
        return NULL;
    }
    atomic_store(&refused, 0);
    return p;
}

static void retire(struct shca_peer *p)
{
    p->next = retired;
    retired = p;
    table[p->slot] = NULL;
}

/* A server whose clients come and go must not keep the resources of dead ones. */
static void sweep(void)
{
    for (uint32_t i = 0; i < SHCA_MEMBERS; i++)
        if (table[i] && atomic_load(&table[i]->dead))
            retire(table[i]);
    for (struct shca_peer **at = &retired; *at;) {
        struct shca_peer *p = *at;

        if (p->users > 0) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        destroy(p);
    }
}

struct shca_peer *shca_peer_get(uint32_t slot)
{
    struct shca_peer *p;

    pthread_mutex_lock(&table_lock);
    p = table[slot];
    if (!p || atomic_load(&p->dead)) {
        sweep();
        p = table[slot] = peer_attach(slot);
    }
    if (p)
        p->users++;
    pthread_mutex_unlock(&table_lock);
    return p;
}

struct shca_peer *shca_peer_get_now(uint32_t slot)
{
    struct shca_peer *p = shca_peer_get(slot);

    if (p)
        return p;
    shca_registry_stale();
    return shca_peer_get(slot);
}

bool shca_peer_refused(void)
{
    return atomic_load(&refused);
}

void shca_peer_put(struct shca_peer *p)
{
    pthread_mutex_lock(&table_lock);
    p->users--;
    pthread_mutex_unlock(&table_lock);
}

void shca_peers_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    /* The objects belong to queue pairs of the parent; the child only must not find them. */
    table_lock = fresh;
    memset(table, 0, sizeof table);
    retired = NULL;
}

/* ---- regions ---- */

static struct shca_map *map_entry(struct shca_peer *p, uint32_t index)
{
    struct shca_map *chunk = atomic_load_explicit(&p->maps[index / 256], memory_order_acquire);

    if (!chunk) {
        pthread_mutex_lock(&p->lock);
        chunk = atomic_load(&p->maps[index / 256]);
        if (!chunk && (chunk = calloc(256, sizeof *chunk)))
            atomic_store(&p->maps[index / 256], chunk);
        pthread_mutex_unlock(&p->lock);
    }
    return chunk ? &chunk[index % 256] : NULL;
}

/* Mappings begin and end at pages, which are large in a file of huge pages. */
static uint64_t page_of(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize
                                                                 : (uint64_t)sysconf(_SC_PAGESIZE);
}

static void map_file(struct shca_peer *p, struct shca_mr_sh *m, struct shca_map *e)
{
    int fd = shca_open_of(p->pid, m->fd, O_RDWR);
    uint64_t page, in_page;
    struct stat st;
    size_t bytes;
    void *at;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && (uint32_t)st.st_dev == m->dev && st.st_ino == m->ino) {
        page = page_of(fd);
        in_page = m->file_offset & (page - 1);
        bytes = (size_t)((m->length + in_page + page - 1) & ~(page - 1));
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                  (off_t)(m->file_offset - in_page));
        if (at != MAP_FAILED) {
            e->map = at;
            e->map_bytes = bytes;
            e->base = (char *)at + in_page;
        }
    }
    close(fd);
}

static void renew(struct shca_peer *p, struct shca_mr_sh *m, uint32_t key, struct shca_map *e)
{
    atomic_store(&e->key, 0);
    /* No transfer can be using the old mapping: its key was withdrawn, and ibv_dereg_mr waited for
     * all holders of responder locks before the number was reused. */
    if (e->map)
        munmap(e->map, e->map_bytes);
    e->map = NULL;
    e->base = NULL;
    map_file(p, m, e);
    e->serial = m->serial;
    atomic_store_explicit(&e->key, key, memory_order_release);
}

char *shca_peer_map(struct shca_peer *p, struct shca_mr_sh *m, uint32_t key)
{
    struct shca_map *e;

    if (m->fd < 0 || !(e = map_entry(p, key >> 8)))
        return NULL;
    if (!shca_map_is_fresh(e, m, key)) {
        pthread_mutex_lock(&p->lock);
        if (!shca_map_is_fresh(e, m, key))
            renew(p, m, key, e);
        pthread_mutex_unlock(&p->lock);
    }
    return e->base;
}

/* ---- pipes ---- */

static int open_pipe(struct shca_peer *p, const struct shca_pipe *name)
{
    struct stat st;
    /* Read and write: a pipe without a reader would answer a write with SIGPIPE. */
    int fd = shca_open_of(p->pid, name->fd, O_RDWR);

    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode) || st.st_ino != name->ino)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static struct shca_open_pipe *find_pipe(struct shca_peer *p, const struct shca_pipe *name)
{
    struct shca_open_pipe *o = p->pipes;

    while (o && o->name.fd != name->fd)
        o = o->next;
    if (!o) {
        o = calloc(1, sizeof *o);
        if (!o)
            return NULL;
        o->fd = -1;
        o->next = p->pipes;
        p->pipes = o;
    }
    if (o->fd < 0 || o->name.ino != name->ino) {
        if (o->fd >= 0)
            close(o->fd);
        o->name = *name;
        o->fd = open_pipe(p, name);
    }
    return o;
}

static void write_record(int fd, uint64_t record)
{
    /* EAGAIN means 8 Ki unread events: enough to wake the reader. */
    if (write(fd, &record, sizeof record) < 0)
        return;
}

void shca_peer_signal(struct shca_peer *p, const struct shca_pipe *pipe, uint64_t record)
{
    struct shca_open_pipe *o;

    if (p->self) {
        write_record(pipe->fd, record);
        return;
    }
    pthread_mutex_lock(&p->lock);
    o = find_pipe(p, pipe);
    if (o && o->fd >= 0)
        write_record(o->fd, record);
    pthread_mutex_unlock(&p->lock);
}

int shca_pipe_make(int *read_fd, int *write_fd, struct shca_pipe *pipe)
{
    int fds[2];
    struct stat st;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return errno;
    if (fcntl(fds[1], F_SETFL, O_NONBLOCK) != 0 || fstat(fds[1], &st) != 0) {
        int e = errno;
        close(fds[0]);
        close(fds[1]);
        return e;
    }
    *read_fd = fds[0];
    *write_fd = fds[1];
    *pipe = (struct shca_pipe){.fd = fds[1], .ino = st.st_ino};
    return 0;
}
