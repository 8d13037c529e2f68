/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of softhca share inside one process: the objects behind the verbs handles, the
 * peers, and the calls between rooms. The order of locks is
 *     pending list -> send queue of a QP -> completion queue -> responder lock (shared memory),
 * and the process-wide table lock (shca.lock) is taken alone or first. */
#ifndef SHCA_H
#define SHCA_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>

#include "fault/fault.h"
#include "fabric/lock.h"
#include "wire/rate.h"
#include "base/seed.h"
#include "base/settings.h"
#include "base/layout.h"

/* The header turns these names into macros; the definitions here need the plain symbols. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SHCA_PUBLIC __attribute__((visibility("default")))

#define shca_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* ---- the shape of the machine (config.c) ---- */
extern struct shca_config shca_config;
/* Reads SOFTHCA_*; 0, or EINVAL after printing one line that names the variable. Once. */
int shca_config_load(void);

/* ---- handles ---- */
struct shca_device {
    struct ibv_device dev;
    int number;
    /* Direct-verbs libraries look behind the public device for a table of their own. */
    char zero[512];
};

struct shca_context {
    struct verbs_context v; /* ends with the public context: nothing may be read behind it */
    int hca;
    int async_wfd;
    struct shca_pipe async;
    bool inherited; /* opened before fork() in a parent: of no use here */
};

struct shca_td {
    struct ibv_td td;
    _Atomic int users;
};

struct shca_pd {
    struct ibv_pd pd;
    _Atomic int users;
    /* A parent domain: the same protection domain (and handle) as base, with a thread domain. */
    struct shca_pd *base;
    struct shca_td *td;
    void *(*alloc)(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type);
    void (*free)(struct ibv_pd *pd, void *context, void *ptr, uint64_t type);
    void *pd_context; /* of these two */
};

struct shca_ah {
    struct ibv_ah ah;
    struct ibv_ah_attr attr;
    uint32_t dest_port;
    uint16_t slid;
};

struct shca_mr {
    struct ibv_mr mr;
    uint32_t index;
    struct shca_file *file;
    _Atomic int *dm_users; /* of the device memory it lies in, NULL: none */
};

struct shca_channel {
    struct ibv_comp_channel ch;
    int wfd;
    struct shca_pipe pipe;
};

struct shca_cqe {
    struct ibv_wc wc;
    struct shca_qp *qp;
    uint32_t sq_index; /* the send queue is free up to and including this one */
};

/* What brings receives into a CQ, one for each bit of its ready set. */
enum shca_feed_kind {
    SHCA_FEED_QP,     /* a queue pair with receives of its own */
    SHCA_FEED_SHARED, /* a queue pair whose receives are shared */
    SHCA_FEED_XRC,    /* an XRC shared receive queue */
};

struct shca_feed {
    enum shca_feed_kind kind;
};

struct shca_cursor {
    struct shca_lock lock;
    bool one_thread;
    struct shca_pd *domain;
    struct ibv_wc wc;
    uint64_t stamp;
    uint64_t to_wall, compared_at;
};

struct shca_cq {
    union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex; /* begins like ibv_cq, by contract of the header */
    };
    uint32_t index;
    struct shca_cq_sh *sh;
    struct shca_lock lock; /* the fifo, the ready set and the consumer side of all receives */
    struct shca_cqe *fifo;
    uint64_t *stamps; /* when each entry was made, NULL: not wanted */
    uint32_t fifo_mask;
    _Atomic uint32_t fifo_head, fifo_tail;
    _Atomic uint64_t ready_root; /* bits taken from sh, not yet found empty */
    uint64_t ready[SHCA_CQ_QPS / 64];
    struct shca_feed *feeds[SHCA_CQ_QPS];
    uint64_t demand; /* entries its queues could need at once; protected by shca.lock */
    _Atomic uint32_t empty_polls;
    uint32_t turn;   /* the bit served next: no QP starves the others */
    bool seeded;     /* what is served next is chosen by random, */
    bool shy, hid;   /* and a poll may find nothing (but hid: not this one) */
    uint32_t failed; /* behind the last error in the fifo: the receives it flushes come later */
    struct shca_random random;
    uint32_t event_arm;               /* arming whose event the program has already seen */
    uint32_t events_sent, async_sent; /* protected by cq.mutex */
    _Atomic bool overrun_told;
    /* Of extended CQs only (cq_ex.c). */
    uint64_t stamp; /* of the completion taken last; protected by lock */
    struct shca_cursor *cursor;
};

enum shca_wait {
    SHCA_DONE,
    SHCA_WAIT_RNR,
    SHCA_WAIT_ACK,
    SHCA_WAIT_FAULT,
    SHCA_WAIT_WIRE,
    SHCA_WAIT_NEVER
};

/* One send work request, ready to be executed; sges belong to the caller. */
struct shca_op {
    uint64_t wr_id;
    uint64_t remote_addr;
    const struct ibv_sge *sge;
    uint32_t nsge;
    uint32_t opcode;
    uint32_t flags;
    uint32_t imm;
    uint32_t rkey;
    uint32_t length;
    uint32_t dest_qpn;
    uint32_t srqn; /* of XRC: the shared receive queue */
    uint32_t qkey;
    uint32_t dest_port;
    uint16_t slid;
    bool grh;
    union ibv_gid dgid;
    uint8_t sgid_index;
    uint16_t dlid;
    uint64_t compare_add, swap; /* of atomics */
};

struct shca_wqe {
    struct shca_op op;
    uint64_t posted; /* when, if requests take detours */
    struct ibv_sge sge[];
};

/* Requests being built by ibv_wr_*: they lie in the send queue behind its tail, which moves only
 * when all of them are complete. */
struct shca_batch {
    struct shca_lock lock; /* from ibv_wr_start to its end, and around ibv_post_send */
    int error;             /* the first one; nothing is posted then */
    uint32_t first, n;
    uint32_t ops;         /* opcodes asked for at creation, a bit each */
    bool no_address;      /* the request has no destination yet */
    struct shca_wqe *now; /* the request that setters complete, NULL: none */
};

struct shca_xrcd {
    struct ibv_xrcd xrcd;
    uint64_t domain; /* equal in all processes that mean the same one; never 0 */
    _Atomic int users;
    int fd; /* holds the word in the registry, -1: private */
    struct shca_xrcd *next;
};

/* How many queue pairs bring receives of a shared queue into one CQ: together they cannot bring
 * more than the queue has. */
struct shca_srq_use {
    struct shca_cq *cq;
    uint32_t users;
    struct shca_srq_use *next;
};

struct shca_srq {
    struct ibv_srq srq;
    uint32_t index;
    struct shca_srq_sh *sh;
    struct shca_lock lock; /* free slots, posting; taken last */
    uint64_t *wr_id;
    uint32_t *free; /* slots; the last one given back is used first */
    uint32_t n_free;
    uint32_t async_sent; /* protected by srq.mutex */
    /* protected by shca.lock */
    uint32_t users;
    struct shca_srq_use *uses;
    /* of an XRC queue */
    struct shca_feed feed;
    struct shca_cq *cq;
    struct shca_xrcd *xrcd;
    uint32_t done; /* entries of the ring that the program has seen; protected by cq->lock */
};

struct shca_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex; /* begins with an ibv_qp */
    };
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct shca_feed feed;
    uint32_t index;
    struct shca_qp_sh *sh;
    struct shca_cq *scq, *rcq;
    /* Send queue: posted tail, executed exec, freed head. [head, exec) waits for the program to
     * poll; [exec, tail) waits for the wire. */
    struct shca_lock sq_lock;
    uint32_t sq_tail, sq_exec;
    _Atomic uint32_t sq_head;
    char *wqes;
    size_t wqe_bytes;
    uint32_t wqe_mask;
    bool wqes_programs;               /* they lie in memory of the program's allocator */
    struct shca_batch *batch;         /* NULL: made without ibv_wr_* */
    _Atomic uint64_t messages, bytes; /* sent; written under sq_lock */
    /* the connection */
    struct shca_peer *peer;
    struct shca_qp_sh *target;
    uint32_t target_tail;  /* receives known to be posted there, */
    uint32_t target_epoch; /* if it is still the same */
    uint32_t dest_port;
    /* retry */
    int waiting; /* enum shca_wait of the WQE at sq_exec */
    uint32_t rnr_left;
    uint64_t next_try, give_up;
    struct shca_qp *pending_next;
    bool pending;
    struct shca_srq_sh *xrc_srq;  /* named by the request that is being executed, and locked */
    struct shca_peer *xrc_holder; /* the process it is in, kept for the next request */
    /* of an XRC target */
    struct shca_xrcd *xrcd;
    struct shca_peer *home; /* where it lives; NULL: this is the handle of its creator */
    /* Receive queue (owner's side). */
    struct shca_srq *srq;
    struct shca_lock rq_lock;
    _Atomic uint32_t mcasts; /* groups it is attached to */
    uint64_t *rq_wr_id;
    void *rq_mem;
    uint32_t async_sent; /* protected by qp.mutex */
    struct shca_fault_state fault;
    struct shca_rate_state rate;
};

/* ---- the process (process.c) ---- */
struct shca_process {
    pthread_mutex_t lock; /* tables and heap of the segment, handles, registrations */
    struct shca_segment *seg;
    uint32_t pid;
    uint32_t slot;
    int seg_fd, claim_fd, info_fd;
    int life[2]; /* a pipe: peers see the read end close, also when this becomes another program */
    struct shca_qp *qps[SHCA_QPS];
    struct shca_cq *cqs[SHCA_CQS];
    struct shca_srq *srqs[SHCA_SRQS];
    uint32_t next_qp, next_cq, next_pd, next_srq;
    uint64_t gone_messages, gone_bytes; /* sent by queue pairs that are destroyed */
    _Atomic uint32_t fatal;             /* a bit for each HCA that broke */
    _Atomic uint32_t epoch;
    uint32_t qp_high; /* no queue pair at or above this index */
    _Atomic uint32_t n_qp, n_cq, n_mr, n_pd, n_srq;
    _Atomic uint32_t pending; /* length of the list of stalled send queues */
};
extern struct shca_process shca;
/* Joins the fabric: claims a member slot, creates the segment. 0 or errno; idempotent. */
int shca_join(void);

/* ---- heap of the segment (heap.c); callers hold shca.lock ---- */
int shca_heap_init(uint64_t offset, uint64_t size);
uint64_t shca_heap_alloc(uint64_t bytes); /* offset, page-aligned and zero; 0 when full */
void shca_heap_free(uint64_t offset, uint64_t bytes);
uint64_t shca_heap_used(void);

/* ---- registry (registry.c) ---- */
/* Takes a free member slot of the fabric; 0 or errno. */
int shca_registry_claim(uint32_t *slot, int *fd);
/* Publishes where the segment of that slot is. */
int shca_registry_publish(uint32_t slot, int seg_fd, int *fd);
/* Finds the process in a slot; ENOENT when there is none. */
int shca_registry_find(uint32_t slot, uint32_t *pid, int *fd);
/* The next question reads the kernel's table, however young the last answer is. */
void shca_registry_stale(void);
/* Is it on the fabric? Yes also when that cannot be found out. */
bool shca_registry_has_pid(uint32_t pid);
void shca_registry_inherited(void); /* after fork() */
/* Words that members hold for as long as they live (or the descriptor is open), several of them the
 * same one; the guard of a word is held by one process at a time. */
int shca_registry_hold(const char *word, int *fd);
bool shca_registry_held(const char *word);
int shca_registry_guard(const char *word, int *fd);
/* The slots of all live members, at most SHCA_MEMBERS; their number. */
uint32_t shca_registry_slots(uint16_t *slots);
/* Compares the shape of the machine with that of each live member; 0, or EINVAL after one line. */
int shca_registry_agree(void);

/* ---- segments of others (segment.c) ---- */
int shca_open_of(uint32_t pid, int fd, int flags); /* a descriptor of another process */
/* Maps the segment of a member; NULL when there is none or it is not to be believed. */
struct shca_segment *shca_segment_map(uint32_t slot, uint32_t pid, int remote_fd);
/* Reads its head only. */
bool shca_segment_peek(uint32_t slot, uint32_t pid, int remote_fd, struct shca_segment *head);

/* ---- peers without a pidfd (watch.c) ---- */
uint64_t shca_start_time(uint32_t pid); /* 0: no such process */
void shca_watch_add(struct shca_peer *p);
void shca_watch_remove(struct shca_peer *p);
uint64_t shca_watch_run(void); /* ns until the next look, UINT64_MAX: none to come */
void shca_watch_inherited(void);

/* ---- peers (peer.c) ---- */
struct shca_map {
    _Atomic uint32_t key;
    bool failed; /* not mappable: CMA */
    uint64_t ino, file_offset, addr;
    char *base; /* where the first byte of the region is here */
    void *map;
    size_t map_bytes;
};

struct shca_peer {
    uint32_t slot, pid;
    _Atomic int dead;
    bool self;
    int life;                     /* write end of its pipe of that name */
    int pidfd;                    /* -1: looked at by watch.c, */
    uint64_t start;               /* which knows it by its start time */
    struct shca_peer *watch_next; /* protected by the lock of watch.c */
    struct shca_segment *seg;
    pthread_mutex_t lock; /* maps[] chunks, pipes */
    struct shca_map *_Atomic maps[SHCA_MRS / 256];
    struct shca_open_pipe *pipes;
    int users; /* protected by the lock of the peer table */
    struct shca_peer *next;
};
/* The live process in a member slot, attached on first use; NULL when there is none. The caller
 * gives it back with shca_peer_put. */
struct shca_peer *shca_peer_get(uint32_t slot);
/* The same for messages that are not sent again: no look at the registry from before the call says
 * that there is none, since the program may know the peer for less than a millisecond. */
struct shca_peer *shca_peer_get_now(uint32_t slot);
/* The last peer that was to be attached is there, but this process lacks what that takes. */
bool shca_peer_refused(void);
void shca_peer_put(struct shca_peer *p);
void shca_peers_inherited(void);
/* ---- multicast groups (fabric/multicast.c) ---- */
bool shca_multicast_same(struct shca_mcast_sh *e, const union ibv_gid *gid, uint32_t mlid);
/* The processes that had attachments when somebody last attached; their number. */
uint32_t shca_multicast_listeners(uint16_t *slots);
void shca_multicast_forget(uint16_t slot);
void shca_multicast_inherited(void);
/* Where the first byte of a region of the peer is in this process; NULL: use CMA. The caller
 * holds a responder lock of the peer and has checked the key under it. */
char *shca_peer_map(struct shca_peer *p, struct shca_mr_sh *m, uint32_t key);
/* Shows the segment of the member in a slot, if there is one, without attaching it. */
void shca_peer_peek(uint32_t slot, void (*look)(const struct shca_segment *, void *), void *arg);
/* Writes a record of 8 bytes into a pipe of the peer. */
void shca_peer_signal(struct shca_peer *p, const struct shca_pipe *pipe, uint64_t record);
/* Makes a pipe whose write end peers can find; *read_fd blocks, the write end does not. */
int shca_pipe_make(int *read_fd, int *write_fd, struct shca_pipe *pipe);

/* ---- the helper thread (fabric/helper.c, fabric/watch.c; what it does: wire/engine.c) ---- */
struct shca_helper {
    int epoll_fd, kick_fd;
    char control_mark;     /* its address marks requests among the events */
    void *(*body)(void *); /* handed down by shca_engine_start() */
};
extern struct shca_helper shca_helper;
int shca_helper_start(void);
void shca_helper_wake(void);
void shca_helper_kick(void); /* it runs, and looks again at what is to come */
void shca_helper_inherited(void);
int shca_engine_watch(struct shca_peer *p);
void shca_engine_unwatch(struct shca_peer *p); /* runs in the helper thread */
int shca_engine_start(void);
uint64_t shca_now(void); /* ns, monotonic (base/clock.c) */

/* ---- stalled send queues (wire/pending.c) ---- */
void shca_pending_add(struct shca_qp *qp); /* caller holds sq_lock */
void shca_pending_remove(struct shca_qp *qp);
uint64_t shca_pending_run(void); /* ns until the next try, UINT64_MAX: nothing waits */
void shca_pending_inherited(void);

/* ---- memory (mr.c, file.c, copy.c) ---- */
/* Finds the shared file behind [addr, addr+length); NULL when it is private memory. */
struct shca_file *shca_file_find(const void *addr, size_t length, uint64_t *offset);
/* Is some of it shared memory that another process could map (memfd, file)? */
bool shca_file_reachable(const void *addr, size_t length);
void shca_file_put(struct shca_file *f);
struct shca_file {
    uint64_t dev, ino;
    int fd, users;
    struct shca_file *next;
};

/* Registers memory of this process; errno says why not. */
struct ibv_mr *shca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access);
int shca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                   struct ibv_sge *sge, uint32_t n);
/* Device memory (dm.c). */
#define SHCA_DM_BYTES (256u << 10) /* of each HCA; ConnectX has as much */
struct ibv_dm *shca_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int shca_free_dm(struct ibv_dm *dm);
struct ibv_mr *shca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
                              unsigned access);

/* A piece of a peer's memory. */
struct shca_piece {
    char *mapped;  /* NULL: by CMA at addr */
    uint64_t addr; /* in the owner */
    size_t length;
};

/* Checks a range against the MR table of a process; the address there in *va. */
static inline struct shca_mr_sh *shca_mr_check(struct shca_segment *seg, uint32_t key,
                                               uint64_t addr, uint64_t length, uint32_t access,
                                               uint32_t pd, uint64_t *va)
{
    struct shca_mr_sh *m;

    if ((key >> 8) >= SHCA_MRS)
        return NULL;
    m = &shca_mr_table(seg)[key >> 8];
    if (key == 0 || atomic_load(&m->key) != key || m->pd != pd || (m->access & access) != access)
        return NULL;
    if (addr < m->iova || length > m->length || addr - m->iova > m->length - length)
        return NULL;
    *va = m->addr + (addr - m->iova);
    return m;
}

/* The order of one transfer: every byte before the last word, then the last word. */
void shca_copy(void *dst, const void *src, size_t n);
/* Moves src (this process) into pieces of the peer / the other way round. 0 or errno. */
int shca_move_out(struct shca_peer *p, const struct shca_piece *dst, unsigned ndst,
                  const struct iovec *src, unsigned nsrc);
int shca_move_in(struct shca_peer *p, const struct iovec *dst, unsigned ndst,
                 const struct shca_piece *src);
/* Did the kernel forbid the copy, whatever the memory? (Yama, seccomp, or built without it) */
static inline bool shca_copy_refused(int e)
{
    return e == EPERM || e == EACCES || e == ENOSYS;
}

/* Resolves a checked region of the peer to a piece. */
static inline void shca_piece_of(struct shca_peer *p, struct shca_mr_sh *m, uint32_t key,
                                 uint64_t va, size_t length, struct shca_piece *out)
{
    char *base = p->self ? (char *)(uintptr_t)m->addr : shca_peer_map(p, m, key);

    out->mapped = base ? base + (va - m->addr) : NULL;
    out->addr = va;
    out->length = length;
}

/* ---- completion queues (cq.c, poll.c, channel.c, event.c) ---- */
int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Makes a CQ; errno says why not. With stamps its completions know their time. */
struct ibv_cq *shca_cq_make(struct ibv_context *ctx, uint32_t cqe, void *cq_context,
                            struct ibv_comp_channel *ch, uint32_t vector, bool stamps);
void shca_cursor_free(struct shca_cursor *c);
struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *init);
/* An empty poll: true when nothing is there. */
bool shca_poll_idle(struct shca_cq *cq);
/* Takes one completion and its time; false: there is none. */
bool shca_poll_one(struct shca_cq *cq, struct ibv_wc *wc, uint64_t *stamp);
void shca_cq_push(struct shca_cq *cq, struct shca_qp *qp, uint32_t index, const struct ibv_wc *wc);
/* Marks a QP of a CQ as having receives; CQ and peer may be this process. */
void shca_cq_ready(struct shca_cq_sh *cq, uint32_t bit);
bool shca_cq_full(struct shca_cq_sh *cq);
/* Adds (or takes away) what a queue may put into the CQ at once. Holds shca.lock. */
void shca_cq_demand(struct shca_cq *cq, int64_t entries);
/* Looks again whether what it may hold has to be counted. Holds shca.lock. */
void shca_cq_recount(struct shca_cq *cq);
/* After an entry became visible: sends the event when somebody asked for it. */
void shca_cq_notify(struct shca_peer *p, struct shca_cq_sh *cq, bool solicited);
void shca_cq_overrun(struct shca_peer *p, struct shca_cq_sh *cq);
int shca_cq_attach(struct shca_cq *cq, struct shca_feed *feed, uint32_t *bit);
void shca_cq_detach(struct shca_cq *cq, uint32_t bit);
/* Copies the payload of a receive from its eager slot to the posted buffers. */
void shca_eager_unpack(const struct shca_rq_sh *rq, uint32_t index, const struct shca_slot *s);
/* The same now, if the message goes into the region of this key. */
void shca_eager_settle(const struct shca_rq_sh *rq, uint32_t index, struct shca_slot *s,
                       uint32_t key);
/* A region goes away: messages for it that wait in the segment of this process move to where they
 * belong. Holds shca.lock. */
void shca_rq_settle(struct shca_qp *qp, uint32_t key);
void shca_shared_settle(struct shca_qp *qp, uint32_t key);
void shca_xrc_settle(struct shca_srq *srq, uint32_t key);
/* The completion of a receive; the completion of one that nothing will come for. */
void shca_receive_wc(const struct shca_slot *s, uint64_t wr_id, uint32_t qpn, struct ibv_wc *wc);
void shca_flushed_wc(uint64_t wr_id, uint32_t qpn, struct ibv_wc *wc);
/* True in ERR, once nothing more can arrive because whoever was inside has left. */
bool shca_settled_error(struct shca_qp *qp);
void shca_cq_forget(struct shca_cq *cq, struct shca_qp *qp);
/* Nothing more comes for an object that is being destroyed: forgets its unread events. */
void shca_events_end_cq(struct shca_cq *cq);
void shca_events_end_srq(struct shca_srq *srq);
void shca_events_end_qp(struct shca_qp *qp);
/* p NULL: this process. */
void shca_async_send(struct shca_peer *p, const struct shca_pipe *to, enum ibv_event_type type,
                     uint32_t index);

/* ---- queue pairs ---- */
int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Where a datagram goes; EINVAL for an address handle of another protection domain. */
int shca_address_ud(const struct shca_qp *qp, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
                    struct shca_op *op);
static inline struct shca_wqe *shca_wqe_at(struct shca_qp *qp, uint32_t index)
{
    return (struct shca_wqe *)(void *)(qp->wqes + (index & qp->wqe_mask) * qp->wqe_bytes);
}
/* The opcodes that may be posted, a bit each. */
uint32_t shca_offered(enum ibv_qp_type type);
/* Extended creation and posting (qp_ex.c, wr.c). */
struct ibv_qp *shca_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *init);
void shca_wr_fill(struct ibv_qp_ex *ex);
struct ibv_xrcd *shca_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *a);
int shca_close_xrcd(struct ibv_xrcd *xrcd);
void shca_xrcds_inherited(void);
/* Makes a queue pair of a PD or, an XRC target, of a domain; the other is NULL. */
struct ibv_qp *shca_create_qp(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
                              struct ibv_qp_init_attr *init);
struct ibv_qp *shca_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *a);
/* Attributes of a target are shared by its holders: read before, written after each change. */
void shca_target_load(struct shca_qp *qp);
void shca_target_store(struct shca_qp *qp);
int shca_target_create(struct shca_qp *qp); /* holds shca.lock */
/* Gives up a handle; true: it was the last one and the target is gone. Holds shca.lock. */
bool shca_target_close(struct shca_qp *qp);
void shca_target_count(struct shca_qp *qp, int by); /* handles of this process */
void shca_target_reap(struct shca_qp_sh *sh);       /* holds shca.lock */
void shca_xrc_forget(struct shca_qp *qp);
int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *shca_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *init);
int shca_get_srq_num(struct ibv_srq *srq, uint32_t *number);
/* May queue pairs of this context receive from it? */
bool shca_srq_fits(const struct ibv_srq *srq, const struct ibv_context *ctx);
/* A queue pair begins or ends to use a shared queue for what goes into a CQ. Holds shca.lock. */
int shca_srq_join(struct shca_srq *srq, struct shca_cq *cq);
void shca_srq_leave(struct shca_srq *srq, struct shca_cq *cq);
/* The program is done with a slot. */
void shca_srq_give(struct shca_srq *srq, uint32_t number);
/* From now on tells the program once when fewer than limit receives are posted. */
void shca_srq_arm(struct shca_srq *srq, uint32_t limit);
/* Messages in shared receives, for the poller, which holds the lock of the CQ. */
uint32_t shca_shared_collect(struct shca_qp *qp, uint32_t max, struct ibv_wc *wc, bool *drained,
                             uint32_t *counted);
uint32_t shca_xrc_collect(struct shca_srq *srq, uint32_t max, struct ibv_wc *wc, bool *drained,
                          uint32_t *counted);
/* How many messages of an XRC queue were counted and will not be polled. */
uint32_t shca_xrc_drop(struct shca_srq *srq);
/* Gives back all that a queue pair in RESET has of its shared queue; how many were counted. */
uint32_t shca_shared_drop(struct shca_qp *qp);
/* Has some initiator taken a receive that is not complete? */
bool shca_shared_holds(const struct shca_qp *qp);
/* Tells the program, once, that a queue pair takes no more receives from its shared queue. */
void shca_last_wqe(struct shca_peer *p, struct shca_qp_sh *t);
/* Room for a receive queue in the segment (holds shca.lock), and one posted receive. */
int shca_rq_place(struct shca_rq_sh *q, uint32_t depth, uint32_t max_sge, uint32_t max_eager);
void shca_rq_free(struct shca_rq_sh *q);
void shca_slot_fill(struct shca_rq_sh *q, uint32_t index, const struct ibv_recv_wr *wr);
/* Gives a new queue pair its receive queue and its place in the receive CQ; holds shca.lock. */
int shca_rq_create(struct shca_qp *qp);
void shca_rq_destroy(struct shca_qp *qp);
/* Forgets every receive of a queue pair in RESET. */
void shca_rq_reset(struct shca_qp *qp);
/* The queue pair went to ERR: its receives come back. */
void shca_rq_error(struct shca_qp *qp);
/* Executes one request; SHCA_DONE with *status, or what it has to wait for. Holds sq_lock. */
int shca_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status);
/* Executes what waits in the send queue, as far as it goes. Holds sq_lock. */
void shca_sq_run(struct shca_qp *qp);
/* One request of it: true when it is finished (well or badly). Holds sq_lock. */
bool shca_sq_execute(struct shca_qp *qp, const struct shca_op *op, uint32_t index);
void shca_sq_flush(struct shca_qp *qp); /* Holds sq_lock. */
void shca_qp_error(struct shca_qp *qp); /* to ERR; flushes the send queue. Holds sq_lock. */
uint32_t shca_qp_state(struct shca_qp *qp);
void shca_qp_reset(struct shca_qp *qp);

/* ---- addressing (gid.c, port.c) ---- */
#define SHCA_PKEYS 2 /* entries of the P_Key table of each port */
static inline uint32_t shca_fabric_port(int hca, int port)
{
    return 1u + (uint32_t)(hca * shca_config.ports + port - 1);
}
extern const uint16_t shca_pkeys[SHCA_PKEYS];
uint16_t shca_lid_of(uint32_t fabric_port);
uint32_t shca_gid_count(void);
bool shca_gid_v2(uint32_t index); /* a RoCE v2 entry of the GID table */
void shca_gid_of(uint32_t fabric_port, uint32_t index, union ibv_gid *gid);
bool shca_gid_multicast(const union ibv_gid *gid);
/* The partition and the GID type that an end of this P_Key and path is in (layout.h). */
uint32_t shca_network_of(uint32_t pkey_index, const struct ibv_ah_attr *path);
bool shca_valid_port(uint32_t port);
bool shca_valid_path(const struct ibv_ah_attr *a);
uint64_t shca_guid_of(int hca, int port); /* host order; port 0: the node */
/* The fabric port an address names; 0 when nobody has it. */
uint32_t shca_route(const struct ibv_ah_attr *attr);
int shca_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len);
int shca_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
                         struct ibv_device_attr_ex *attr, size_t size);

/* ---- links and broken HCAs (link.c) ---- */
extern _Atomic uint32_t shca_any_down; /* not 0: some port of the fabric is down */
bool shca_path_cut_slow(uint32_t from, uint32_t to);
/* Is one of these fabric ports down? */
static inline bool shca_path_cut(uint32_t from, uint32_t to)
{
    return __builtin_expect(atomic_load_explicit(&shca_any_down, memory_order_relaxed) != 0, 0) &&
           shca_path_cut_slow(from, to);
}
void shca_link_join(void); /* before the helper thread runs */
bool shca_link_down(int hca, int port);
void shca_link_set(int hca, int port, bool down);
/* The cable of a port of this process; an unplugged one comes back after so many ns, 0: not by
 * itself. The caller may hold a sq_lock. */
void shca_link_plug(int hca, int port, bool in, uint64_t back_after);
bool shca_link_unplugged(int hca, int port);
/* What a queue pair of this port has in its `network`. */
uint32_t shca_link_mark(uint32_t fabric_port);
uint64_t shca_link_run(void); /* for the helper thread: ns until it is to call again */
/* Breaks an HCA in this process: its queue pairs flush, and every later call answers EIO. */
void shca_fatal(int hca);
static inline bool shca_is_fatal(const struct ibv_context *ctx)
{
    uint32_t fatal = atomic_load_explicit(&shca.fatal, memory_order_relaxed);

    return __builtin_expect(fatal != 0, 0) &&
           fatal >> ((const struct shca_device *)(const void *)ctx->device)->number & 1;
}
/* 0, or why nothing can be made of this context: EINVAL after fork(), EIO when its HCA broke. */
int shca_unusable(struct ibv_context *ctx);
/* Sends an event that concerns no object to every open context of an HCA. */
void shca_contexts_tell(int hca, enum ibv_event_type type, uint32_t port);

/* ---- the rest ---- */
struct ibv_td *shca_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *init);
int shca_dealloc_td(struct ibv_td *td);
struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *ctx,
                                        struct ibv_parent_domain_init_attr *attr);
/* Memory for a queue, from the allocator of the parent domain if it has one (*programs). */
void *shca_queue_alloc(struct ibv_pd *pd, size_t bytes, bool *programs);
void shca_queue_free(struct ibv_pd *pd, void *p, bool programs);
/* Gives back what a parent domain holds. */
void shca_leave_base(struct shca_pd *pd);
bool shca_owns_device(const struct ibv_device *dev);
static inline bool shca_owns(const struct ibv_context *ctx)
{
    return shca_owns_device(ctx->device);
}
static inline struct shca_context *shca_ctx(struct ibv_context *ctx)
{
    return shca_container(ctx, struct shca_context, v.context);
}
void *shca_real(const char *symbol);           /* the library behind us, NULL when there is none */
int shca_contexts_add(struct shca_context *c); /* 0 or errno */
void shca_contexts_remove(struct shca_context *c);
void shca_contexts_inherited(void);
void shca_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What a user can do about a refusal of the kernel's. */
const char *shca_remedy(int error);

/* Counters of this process for SOFTHCA_STATS. */
struct shca_stats {
    _Atomic uint64_t rnr, retries, sends, writes, reads, atomics;
};
extern struct shca_stats shca_stats;
extern bool shca_stats_on;
#define SHCA_COUNT(field)                                                                          \
    do {                                                                                           \
        if (shca_stats_on)                                                                         \
            atomic_fetch_add_explicit(&shca_stats.field, 1, memory_order_relaxed);                 \
    } while (0)

/* Calls the same function of the real library, or gives up with a value. */
#define SHCA_PASS(type, name, fail, ...)                                                           \
    do {                                                                                           \
        type *real_ = (type *)shca_real(name);                                                     \
        if (!real_) {                                                                              \
            errno = ENOSYS;                                                                        \
            return fail;                                                                           \
        }                                                                                          \
        return real_(__VA_ARGS__);                                                                 \
    } while (0)

#endif
