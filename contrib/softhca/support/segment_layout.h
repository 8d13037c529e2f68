/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The layout of the segment that each softhca process shares with its peers: one memfd holding the
 * table of memory regions, the queue pairs (with their receive queues) and the completion queues of
 * that process. The owner creates everything; peers (the initiators) write into it as an HCA would.
 * There are no pointers in it: a peer may map the segment at any address.
 *
 * Locks: shca_qp_sh.lock protects the responder side of a queue pair. Its value is the pid of the
 * holder, so that another process can take it over when the holder is killed. Everything else is
 * lock-free and idempotent, for the same reason. */
#ifndef SHCA_SEGMENT_LAYOUT_H
#define SHCA_SEGMENT_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Every name contains this number, so that processes with different layouts never meet. */
enum { SHCA_LAYOUT = 15 };
#define SHCA_MAGIC (UINT64_C(0x4341485446004f53) + SHCA_LAYOUT)

enum {
    SHCA_MEMBERS = 1024, /* upper 10 bits of a 24-bit QP number */
    SHCA_QPS = 16384,    /* lower 14 bits */
    SHCA_QP_BITS = 14,
    SHCA_MRS = 65536, /* index part of a key is 24 bits; 64 Ki entries are 4 MiB of table */
    SHCA_CQS = 16384,
    SHCA_SRQS = 4096,
    SHCA_CQ_QPS = 4096, /* QPs that may receive into one CQ: 64 words of 64 bits */
    SHCA_NAME = 64,
    SHCA_MAX_HCA = 16,
    SHCA_MAX_PRT = 8,
};

/* Locks of 8-byte locations for atomic operations on memory that is not mapped: enough that two
 * busy counters of a process seldom share one. */
enum { SHCA_WORD_LOCKS = 256 };

/* Multicast attachments of one process; an entry is one queue pair in one group. */
enum { SHCA_MCASTS = 1024 };

/* A peer cannot store to memory that is not shared; short messages for such buffers wait in these
 * slots and are copied by ibv_poll_cq. This saves a system call of 1.5 us and pays off up to about
 * 4 KiB. Slots of SMALL bytes lie in an area of their own of one or two pages, which is most often
 * the page of the posted receives: the first access to each page costs a page fault in both
 * processes. */
enum {
    SHCA_EAGER_BYTES = 4096,
    SHCA_EAGER_SMALL = 192,
    SHCA_EAGER_SLOTS = 16,
};
/* Bytes around a page that the kernel maps at its first read (fault_around_bytes). */
enum { SHCA_FAULT_AROUND = 65536 };
/* The slots of a shared queue are used and returned in any order, so each of the first
 * SHCA_EAGER_SHARED slots has an eager slot of its own. */
enum { SHCA_EAGER_SHARED = 256 };

struct shca_mr_sh {
    _Atomic uint32_t key; /* 0: the entry is free, or not yet (or no longer) valid */
    uint32_t access;      /* enum ibv_access_flags */
    uint64_t iova;        /* remote address of the first byte */
    uint64_t length;
    uint64_t addr; /* address in the owner */
    uint32_t pd;
    int32_t fd; /* owner's descriptor of the shared file behind it, or one of the two below */
    uint64_t file_offset;
    uint32_t dev;    /* the kernel's device numbers have 32 bits */
    uint32_t serial; /* of this registration: a key is reused after 255 others of this entry */
    uint64_t ino;
};
_Static_assert(sizeof(struct shca_mr_sh) == 64, "one line per region");

/* Values of fd for a region without a descriptor, which peers access by CMA only. REACHABLE: (part
 * of) the region lies in a file that others may map; kept apart from PRIVATE because atomics must
 * not reach one word by both methods. */
enum {
    SHCA_FD_PRIVATE = -1,
    SHCA_FD_REACHABLE = -2,
};

struct shca_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

/* A queue of posted receives: where its slots are. */
struct shca_rq_sh {
    uint64_t slots; /* offsets into the segment */
    uint64_t extra;
    uint64_t eager;
    uint32_t mask; /* slots - 1, a power of two >= depth */
    uint32_t depth;
    uint32_t max_sge;
    uint32_t n_eager;
};

/* A posted receive and, later, its completion. */
struct shca_slot {
    _Atomic uint32_t seq; /* index + 1 (mod 2^32) once the message is complete */
    uint32_t nsge;
    struct shca_sge sge0; /* the others are in the extra array of the queue */
    uint32_t byte_len;
    uint32_t imm; /* network byte order, as posted */
    uint32_t src_qp;
    uint32_t eager; /* 1 + number of the eager slot that holds the payload, 0: it is in place */
    uint16_t slid;
    uint8_t status;   /* enum ibv_wc_status */
    uint8_t opcode;   /* 0 receive, 1 receive of a write with immediate */
    uint8_t wc_flags; /* IBV_WC_GRH, IBV_WC_WITH_IMM */
    uint8_t counted;  /* included in arrived of the CQ */
    uint8_t pkey_index;
    uint8_t pad[1];
    _Atomic uint32_t taker; /* of a shared queue: the queue pair that took it, 0: none */
    uint32_t pad1;
    uint64_t stamp; /* completion time, if the CQ has time stamps */
};
_Static_assert(sizeof(struct shca_slot) == 64, "one line per slot");

/* The write end of a pipe of the owner; peers open it through /proc. The inode distinguishes a pipe
 * from a later one with the same descriptor. */
struct shca_pipe {
    int32_t fd; /* -1: none */
    uint32_t pad;
    uint64_t ino;
};

/* Where messages for a queue pair take their receives. */
enum shca_rq_kind {
    SHCA_RQ_OWN,    /* slots of the queue pair itself, filled in order */
    SHCA_RQ_SHARED, /* slots of a shared receive queue */
    SHCA_RQ_XRC,    /* slots of the XRC shared receive queue that each message names */
};

/* How the device of a responder differs (support/profiles.h). */
enum shca_manner {
    SHCA_WEAK_ATOMICS = 1, /* its atomics exclude each other, and not the CPU's */
    SHCA_NO_LAST_WQE = 2,  /* IBV_EVENT_QP_LAST_WQE_REACHED does not come */
    SHCA_HEARS_FIRST = 4,  /* an iWARP end that was connected to has not received anything yet */
};

/* Cache lines are grouped by writer: words that the initiator writes for each message must not
 * share a line with words that the owner reads for each of its own. */
struct shca_qp_sh {
    /* Line 0: written by the initiator. */
    _Atomic uint32_t lock;
    _Atomic uint32_t rq_head;
    _Atomic uint64_t taken; /* rq_head << 32 | 1 + the shared slot that message goes into */
    uint32_t pad0[12];
    /* Lines 1 and 2: read by both, written when something changes. */
    _Atomic uint32_t state; /* enum ibv_qp_state */
    uint32_t qpn;           /* 0: no queue pair here */
    uint32_t dest_qpn;
    uint32_t type;
    uint32_t port;      /* fabric port number: 1 + hca * ports + (port - 1) */
    uint32_t dest_port; /* the fabric port at the other end of the connection */
    uint32_t access;
    uint32_t qkey;
    uint32_t rq_psn;
    uint32_t min_rnr;
    uint32_t pd;
    uint32_t recv_cq;
    uint32_t cq_bit;
    uint32_t
        epoch; /* changes with each creation, modification and reset: cached state is stale then */
    uint32_t established;     /* COMM_EST was sent; under the lock */
    _Atomic uint32_t network; /* see shca_networks_meet; its owner reads it without the lock */
    struct shca_rq_sh rq;
    uint32_t rq_kind; /* enum shca_rq_kind */
    uint32_t srq;     /* index of the shared receive queue */
    uint64_t ring; /* offset: numbers of the shared slots that hold messages of this queue pair */
    uint32_t ring_mask;
    uint16_t max_dest_rd_atomic;
    uint8_t pkey_index;
    uint8_t mtu; /* enum ibv_mtu of the path */
    /* Line 3: written by the owner. */
    _Atomic uint32_t rq_tail;
    _Atomic uint32_t rq_done; /* receives handed to the program: frees slots and eager slots */
    uint32_t pad2[14];
    /* Line 4: rarely used. */
    struct shca_pipe async; /* of the context */
    uint64_t domain;        /* of an XRC target */
    uint64_t target;        /* offset of the data that its holders share, see wire/target.c */
    uint32_t last_wqe;      /* IBV_EVENT_QP_LAST_WQE_REACHED was sent */
    uint32_t manners;       /* enum shca_manner */
    uint32_t pad3[6];
};
_Static_assert(sizeof(struct shca_qp_sh) == 320, "five lines per queue pair");

/* The properties that must match at both ends of a connection, besides numbers: the low half is the
 * P_Key of the end, the upper half its GID type (a RoCE v2 end ignores RoCE v1 frames) and, if it
 * is addressed by LID, its subnet. P_Keys match when the low 15 bits are equal and at least one end
 * is a full member (specification 10.9.3). */
#define SHCA_FULL_MEMBER 0x8000u
/* The cable of this end's port is unplugged (fabric/link.c): ends without this bit do not match it,
 * and an end that has it sends nothing. */
#define SHCA_UNPLUGGED 0x80000000u

static inline _Bool shca_networks_meet(const struct shca_qp_sh *one, const struct shca_qp_sh *other)
{
    uint32_t a = atomic_load_explicit(&one->network, memory_order_relaxed);
    uint32_t b = atomic_load_explicit(&other->network, memory_order_relaxed);

    return ((a ^ b) & ~SHCA_FULL_MEMBER) == 0 && ((a | b) & SHCA_FULL_MEMBER);
}

/* A shared receive queue. Its ring holds slot numbers. In a basic queue an initiator takes the
 * number at head, and the message is listed in the ring of its queue pair; the owner returns slots
 * in any order. In an XRC queue an initiator keeps the lock until the message is complete and then
 * moves head, so [done, head) are messages and [head, tail) are posted receives. */
struct shca_srq_sh {
    /* Line 0: written by initiators, under the lock (whose value is the pid of the holder). */
    _Atomic uint32_t lock;
    _Atomic uint32_t head;
    _Atomic uint32_t limit; /* armed: send the event when fewer are posted; 0: not armed */
    uint32_t pad5;
    _Atomic uint64_t moving; /* (ring index + 1) << 32 | number to store there */
    uint32_t pad0[10];
    /* Lines 1 and 2: read by both. */
    _Atomic uint32_t srqn; /* 0: no queue here */
    uint32_t type;         /* enum ibv_srq_type */
    uint32_t pd;
    uint32_t cq; /* of an XRC queue: the CQ for its messages */
    uint32_t cq_bit;
    uint32_t pad1;
    uint64_t domain;
    uint64_t ring; /* offset; rq.mask + 1 numbers */
    struct shca_pipe async;
    uint32_t pad2[2];
    struct shca_rq_sh rq;
    uint32_t pad3[6];
    /* Line 3: written by the owner. */
    _Atomic uint32_t tail;
    uint32_t pad4[15];
};
_Static_assert(sizeof(struct shca_srq_sh) == 256, "four lines per shared receive queue");

/* Bits 0..62 of root are the first 63 queue pairs of the CQ; bit 63 means that another one is
 * ready, and mid then says which words of leaf to read. So an ordinary CQ costs one atomic
 * operation per message. */
enum { SHCA_ROOT_MORE = 63 };

struct shca_cq_sh {
    /* Line 0: pollers spin on it. */
    _Atomic uint64_t root;
    uint64_t pad0[7];
    /* Line 1: read by initiators, seldom written. */
    struct shca_pipe event;   /* of the completion channel */
    struct shca_pipe async;   /* of the context */
    _Atomic uint32_t limit;   /* capacity */
    _Atomic uint32_t counted; /* its queues together could overrun it: entries must be counted */
    _Atomic uint32_t arm;     /* generation << 2 | 0 disarmed, 1 any, 2 solicited only */
    _Atomic uint32_t overrun;
    uint32_t index;
    uint32_t stamps; /* completions carry a time stamp */
    uint32_t pad1[2];
    /* Line 2: the count, if any, and the rest of the ready set. */
    _Atomic uint32_t arrived; /* receives completed by initiators */
    _Atomic uint32_t pushed;  /* completions entered by the owner */
    _Atomic uint32_t taken;   /* counted completions polled */
    uint32_t pad2;
    _Atomic uint64_t mid;
    _Atomic uint64_t leaf[SHCA_CQ_QPS / 64];
    uint64_t pad3[5];
};
_Static_assert(sizeof(struct shca_cq_sh) % 64 == 0, "whole lines");

/* One queue pair in one multicast group. Written only under the responder lock of that queue pair,
 * so an initiator that holds the lock sees a consistent entry. */
struct shca_mcast_sh {
    _Atomic uint32_t qpn;  /* 0: free */
    _Atomic uint32_t mlid; /* 0 with RoCE */
    _Atomic uint64_t mgid[2];
};

/* A word lock: the pid of the holder, 0: free. One cache line each. */
struct shca_word_lock {
    _Atomic uint32_t holder;
    uint32_t pad[15];
};

/* A port on the UDP wire may have an address of each of these kinds. */
enum shca_inet_kind { SHCA_INET_IPV4, SHCA_INET_LINK_LOCAL, SHCA_INET_IPV6, SHCA_INET_KINDS };

/* Where a port receives packets. */
struct shca_inet {
    uint8_t ip[16]; /* IPv4: ::ffff:a.b.c.d */
    uint16_t port;  /* host order; 0: does not receive packets */
    uint16_t mtu;   /* bytes of payload in a packet */
};

/* Each HCA has a link layer of its own: ports of two kinds do not reach each other. */
#define SHCA_ROCE_BY_PROFILE 2u

struct shca_segment {
    uint64_t magic;
    uint64_t size;
    uint32_t slot;
    uint32_t pid;
    char fabric[SHCA_NAME];
    /* The shape of the machine; all members of a fabric must agree on it. */
    uint32_t hcas, ports;
    uint32_t roce; /* 0 or 1, or SHCA_ROCE_BY_PROFILE */
    uint32_t pad;
    uint64_t mr_off;
    uint64_t qp_off;
    uint64_t cq_off;
    uint64_t srq_off;
    uint64_t heap_off;
    /* The ports that are down, one bit each, as far as this process knows; see fabric/link.c. */
    _Atomic uint32_t down[SHCA_MAX_HCA];
    _Atomic uint32_t settled; /* down[] may be copied by a joining process */
    uint64_t words_off;
    uint64_t mcast_off;
    struct shca_pipe liveness;    /* has a reader as long as this process is a member */
    _Atomic uint32_t mcast_high;  /* all attachments are below this entry */
    _Atomic uint32_t mcast_epoch; /* attachments on the fabric since this process joined */
    struct shca_pipe directory;   /* the directory that this process uses; fd -1: none */
    /* RDMA reads of regions of accelerators in this process, by anybody: on PCIe a read pushes the
     * writes before it. */
    _Atomic uint64_t device_reads;
    /* By fabric port. */
    struct shca_inet inet[SHCA_MAX_HCA * SHCA_MAX_PRT + 1][SHCA_INET_KINDS];
};

/* Where the members of a fabric are, in a memfd of its own that a joining process takes over from
 * any member. Hints: an entry may be missing or out of date (fabric/directory.c). */
struct shca_directory {
    uint64_t magic;
    char fabric[SHCA_NAME];
    uint32_t hcas, ports, roce; /* as in the segment of the process that made it */
    _Atomic uint32_t is_mixed;  /* some process that joined had another shape */
    /* The slot of the last member that has settled, plus 1. 0: not even the one that made it, so
     * that nobody may take it over: it may yet find that it does not agree with another member. */
    _Atomic uint32_t settled;
    _Atomic uint64_t at[SHCA_MEMBERS]; /* by slot: pid and descriptor of the segment; 0: unknown */
};

static inline struct shca_mr_sh *shca_mr_table(struct shca_segment *s)
{
    return (struct shca_mr_sh *)((char *)s + s->mr_off);
}

static inline struct shca_qp_sh *shca_qp_table(struct shca_segment *s)
{
    return (struct shca_qp_sh *)((char *)s + s->qp_off);
}

static inline struct shca_cq_sh *shca_cq_table(struct shca_segment *s)
{
    return (struct shca_cq_sh *)((char *)s + s->cq_off);
}

static inline struct shca_word_lock *shca_word_locks(struct shca_segment *s)
{
    return (struct shca_word_lock *)((char *)s + s->words_off);
}

static inline struct shca_mcast_sh *shca_mcast_table(struct shca_segment *s)
{
    return (struct shca_mcast_sh *)((char *)s + s->mcast_off);
}

static inline struct shca_srq_sh *shca_srq_table(struct shca_segment *s)
{
    return (struct shca_srq_sh *)((char *)s + s->srq_off);
}

static inline struct shca_slot *shca_slot_at(struct shca_segment *s, const struct shca_rq_sh *q,
                                             uint32_t index)
{
    return (struct shca_slot *)((char *)s + q->slots) + (index & q->mask);
}

/* Receive SGE number n >= 1 of a slot. */
static inline struct shca_sge *shca_extra_at(struct shca_segment *s, const struct shca_rq_sh *q,
                                             uint32_t index, uint32_t n)
{
    struct shca_sge *base = (struct shca_sge *)((char *)s + q->extra);
    return base + (size_t)(index & q->mask) * (q->max_sge - 1) + (n - 1);
}

/* Small payloads lie behind the extra SGEs. */
static inline char *shca_eager_at(struct shca_segment *s, const struct shca_rq_sh *q,
                                  uint32_t number, uint32_t bytes)
{
    if (bytes <= SHCA_EAGER_SMALL)
        return (char *)shca_extra_at(s, q, 0, 1) +
               (size_t)(q->mask + 1) * (q->max_sge - 1) * sizeof(struct shca_sge) +
               (size_t)number * SHCA_EAGER_SMALL;
    return (char *)s + q->eager + (size_t)number * SHCA_EAGER_BYTES;
}

#endif
