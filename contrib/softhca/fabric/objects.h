/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects behind the verbs handles, and the process that owns them. Lock order: pending list ->
 * send queue of a QP -> completion queue -> responder lock (shared memory); the process-wide table
 * lock (shca.lock) is taken alone or first. */
#ifndef SHCA_OBJECTS_H
#define SHCA_OBJECTS_H

#include "support/support.h"
#include "fabric/rate.h"
#include "fault/fault.h"

struct shca_device {
    struct ibv_device dev;
    int number;
    /* Direct-verbs libraries read a table of their own behind the public device. */
    char zero[512];
};

struct shca_context {
    struct verbs_context v; /* ends with the public context: nothing may be read behind it */
    int hca;
    int async_wfd;
    struct shca_pipe async;
    bool inherited; /* opened before fork() in the parent: unusable here */
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
    void *pd_context; /* application data of these two */
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
    _Atomic int *dm_users; /* users of the device memory it lies in, NULL: none */
    void *view;            /* memory of an accelerator: its mapping; NULL: none */
    size_t view_bytes;
};

struct shca_channel {
    struct ibv_comp_channel ch;
    int wfd;
    struct shca_pipe pipe;
};

struct shca_cqe {
    struct ibv_wc wc;
    struct shca_qp *qp;
    uint32_t sq_index; /* its completion frees the send queue up to and including this one */
};

/* A source of receives for a CQ, one for each bit of its ready set. */
enum shca_feed_kind {
    SHCA_FEED_QP,     /* a queue pair with receives of its own */
    SHCA_FEED_SHARED, /* a queue pair that uses a shared receive queue */
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
    uint64_t *stamps; /* when each entry was made, NULL: not requested */
    uint32_t fifo_mask;
    _Atomic uint32_t fifo_head, fifo_tail;
    _Atomic uint64_t ready_root; /* bits taken from sh, not yet found empty */
    uint64_t ready[SHCA_CQ_QPS / 64];
    struct shca_feed *feeds[SHCA_CQ_QPS];
    uint64_t demand; /* entries that its queues could need at once; protected by shca.lock */
    _Atomic uint32_t empty_polls;
    uint32_t turn;           /* the bit served next, so that no QP starves */
    bool holds;              /* its queue pairs may have data for the poll to store */
    bool slow;               /* has stamps or holds: polls take the long path */
    bool seeded;             /* the next entry is chosen at random, */
    bool may_hide, hid_last; /* and a poll may find nothing (never two in a row) */
    uint32_t failed;         /* behind the last error in the fifo: receives it flushes come later */
    struct shca_random random;
    uint32_t event_arm;               /* arming whose event the program has already received */
    uint32_t events_sent, async_sent; /* protected by cq.mutex */
    _Atomic bool overrun_reported;
    /* Only for extended CQs (cq_ex.c). */
    uint64_t stamp; /* of the completion taken last; protected by lock */
    struct shca_cursor *cursor;
};

struct shca_qp;

/* Data of a read or an atomic that its completion carries, and where the poll stores it. */
enum { SHCA_HOLD_BYTES = 64, SHCA_HOLD_PIECES = 4 };

struct shca_hold {
    uint32_t n; /* pieces; 0: nothing is held */
    struct iovec to[SHCA_HOLD_PIECES];
    char data[SHCA_HOLD_BYTES];
};

enum shca_wait {
    SHCA_DONE,
    SHCA_WAIT_RNR,
    SHCA_WAIT_ACK,
    SHCA_WAIT_FAULT,
    SHCA_WAIT_WIRE,
    SHCA_WAIT_NEVER
};

/* One send work request, ready to be executed; the caller owns sges. */
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
    uint32_t srqn; /* for XRC: the shared receive queue */
    uint32_t qkey;
    uint32_t dest_port;
    uint16_t slid;
    bool grh;
    union ibv_gid dgid;
    uint8_t sgid_index;
    uint16_t dlid;
    uint64_t compare_add, swap; /* for atomics */
};

/* The functions that carry the requests of a queue pair whose peer is not reached through shared
 * memory. Each function is called under sq_lock. */
struct shca_far {
    void (*run)(struct shca_qp *qp);  /* there are new requests behind the last one that it took */
    void (*fail)(struct shca_qp *qp); /* the queue pair is in ERR: completes all that it has */
};

struct shca_wqe {
    uint8_t refused; /* enum ibv_wc_status with which it fails when its turn comes */
    struct shca_op op;
    uint64_t posted; /* time of posting, if shca_detour is set */
    struct ibv_sge sge[];
};

/* Requests being built by ibv_wr_*: they are in the send queue behind its tail, which moves only
 * when all of them are complete. */
struct shca_batch {
    struct shca_lock lock; /* from ibv_wr_start to the end, and around ibv_post_send */
    int error;             /* the first error; then no request is posted */
    uint32_t first, n;
    uint32_t ops;         /* opcodes requested at creation, a bit each */
    bool no_address;      /* the request has no destination yet */
    struct shca_wqe *now; /* the request that setters apply to, NULL: none */
};

/* What a plain request requires of the regions that it names (wire/plain.c). */
enum shca_use {
    SHCA_USE_SOURCE, /* of a write or a message */
    SHCA_USE_SINK,   /* of a read */
    SHCA_USE_WRITE,  /* of the peer's memory, from here on */
    SHCA_USE_READ,
    SHCA_USE_RECEIVE,
    SHCA_USES
};

/* The region that was used last for that: it is still allowed as long as the entry of the table has
 * the key of the request and is of the same registration. */
struct shca_window {
    const struct shca_mr_sh *region;
    uint32_t serial;
    uint64_t iova, length;
    char *base; /* local address of the byte at iova */
};

/* The conditions under which requests of a queue pair are plain, see wire/plain.c. */
struct shca_plain {
    uint32_t epoch;   /* of the target; 0: no request is plain */
    uint32_t network; /* of the target, which meets this one's */
    uint64_t most;    /* bytes of a request */
    struct shca_window windows[SHCA_USES];
};

struct shca_udp;

struct shca_xrcd {
    struct ibv_xrcd xrcd;
    uint64_t domain; /* the same in all processes that opened the same domain; never 0 */
    _Atomic int users;
    int fd; /* holds the name in the registry, -1: private */
    struct shca_xrcd *next;
};

/* The number of queue pairs that bring receives of a shared queue into one CQ: together they cannot
 * bring more than the queue has. */
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
    uint32_t *free; /* free slots, used last in, first out */
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
    bool wqes_programs;       /* they are in memory from the program's allocator */
    struct shca_batch *batch; /* NULL: created without ibv_wr_* */
    bool special;      /* batch or far is not NULL, or the device is iWARP: no request is plain */
    uint32_t offered;  /* opcodes that may be posted, a bit each */
    uint32_t read_sge; /* scatter/gather entries of an RDMA read */
    uint32_t sink_access;    /* what the region must allow that a read or an atomic goes into */
    struct shca_hold *holds; /* NULL: data of reads does not wait for its poll */
    _Atomic uint64_t messages, bytes; /* totals sent; written under sq_lock */
    /* the connection */
    struct shca_peer *peer;
    struct shca_qp_sh *target;
    uint32_t target_tail;  /* known number of receives posted there, */
    uint32_t target_epoch; /* valid while the epoch is the same */
    struct shca_plain plain;
    uint32_t dest_port;
    uint32_t unmapped; /* messages sent over it to memory that was not mapped for them */
    /* another wire (wire/udp) */
    const struct shca_far *far; /* NULL: shared memory */
    struct shca_udp *udp;
    /* retry */
    int waiting; /* enum shca_wait of the WQE at sq_exec */
    uint32_t rnr_left;
    uint64_t next_try, give_up;
    struct shca_qp *pending_next;
    bool pending;
    struct shca_srq_sh *xrc_srq;  /* named by the request that is being executed, and locked */
    struct shca_peer *xrc_holder; /* the process that owns it, kept for the next request */
    /* of an XRC target */
    struct shca_xrcd *xrcd;
    struct shca_peer *home; /* the process it lives in; NULL: this is the handle of its creator */
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

/* ---- the process (verbs/process.c) ---- */
struct shca_process {
    pthread_mutex_t lock; /* protects tables and heap of the segment, handles, registrations */
    struct shca_segment *seg;
    uint32_t pid;
    uint32_t slot;
    int seg_fd, claim_fd, info_fd;
    int liveness[2]; /* the liveness pipe: peers see the read end close, also on exec */
    struct shca_qp *qps[SHCA_QPS];
    struct shca_cq *cqs[SHCA_CQS];
    struct shca_srq *srqs[SHCA_SRQS];
    uint32_t next_qp, next_cq, next_pd, next_srq;
    uint64_t gone_messages, gone_bytes; /* sent by queue pairs that were destroyed */
    _Atomic uint32_t fatal;             /* a bit for each HCA that is broken */
    _Atomic uint32_t epoch;
    uint32_t mr_serial; /* registrations so far */
    uint32_t qp_high;   /* all queue pairs are below this index */
    _Atomic uint32_t n_qp, n_cq, n_mr, n_pd, n_srq;
    _Atomic uint32_t pending; /* length of the list of stalled send queues */
};
extern struct shca_process shca;

#endif
