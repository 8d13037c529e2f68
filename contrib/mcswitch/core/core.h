/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The core of the multicast switch. It has each group's topology, sequence numbers and lock.
 * Requests to its first address leave as copies to receivers; their acknowledgements come back to
 * its second address and leave as one (doc/multicast.md). It does no I/O, uses only the caller's
 * memory, and has no clock except the times of the frames. One thread per switch; switches share
 * nothing. */
#ifndef MCSW_CORE_H
#define MCSW_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MCSW_RECEIVERS = 32, /* of a group */
    MCSW_SENDERS = 256,  /* of a group: the low byte of a VRQPN */
    MCSW_FRAME_MAX = 14 + 8 + 40 + 8 + 48 + 4096 + 4 + 64,
    MCSW_NOBODY = 255, /* used as a sender's rank, so at most 255 senders */
};

/* fast: loops. strict: checks that every pass of a packet does only what a P4 pipeline can do; the
 * packet recirculates through a queue, and a scan finds the minimum of acknowledgements. Both send
 * the same frames, but in a different order between receivers. */
enum mcsw_mode { MCSW_FAST, MCSW_STRICT };

/* How the receivers' acknowledgements are combined. exact: the minimum at each one (fast only).
 * scan: the same minimum, computed when the receiver that holds it acknowledges, which a pipeline
 * can do. rounds: one acknowledgement of each receiver makes a round; this stalls when a burst
 * ends, and takes the MSN of the acknowledgement that closes the round. */
enum mcsw_aggregate { MCSW_EXACT, MCSW_SCAN, MCSW_ROUNDS };

enum mcsw_event {
    MCSW_FENCED, /* sender `rank` lost the lock when its lease ended; it must register again */
    MCSW_DIRTY,  /* receiver `rank` is not linked until it is repaired */
};

struct mcsw_calls {
    void *context;
    /* Sends a frame. It is valid, and may be changed, during the call only. */
    void (*emit)(void *context, unsigned port, uint8_t *frame, size_t length);
    void (*notify)(void *context, uint32_t group, unsigned rank,
                   enum mcsw_event event); /* or NULL */
    /* strict: a pass did something that a pipeline can't. NULL: abort. */
    void (*violation)(void *context, const char *what);
};

/* Addresses in network order; IPv4 uses the first four bytes. */
struct mcsw_vips {
    bool on;
    uint8_t requests[16], copies[16];
};

struct mcsw_config {
    enum mcsw_mode mode;
    enum mcsw_aggregate aggregate; /* MCSW_EXACT in strict mode means MCSW_SCAN */
    unsigned groups;               /* numbers 1 .. groups; up to 65535 */
    unsigned senders;              /* the most in a group; 0: 32 */
    struct mcsw_vips v4, v6;
    uint8_t mac[6];
    uint64_t lease;    /* ns without a packet of the holder; 0: 2 s */
    uint8_t rnr_timer; /* code in the switch's own RNR NAKs; 0: 10 (0.32 ms) */
    bool believe_icrc; /* do not verify (a pipeline can't); copies of a damaged packet stay damaged
                        */
    uint32_t boot;     /* number of this run of the switch, for the status read */
    unsigned slots;    /* strict: packets that recirculate at a time; 0: 4 */
    bool deferred;     /* strict: mcsw_frame queues passes for mcsw_pass */
    struct mcsw_calls calls;
    struct mcsw_cache
        *cache; /* of ICRC tables; several switches of one thread may share it; may be NULL */
};

struct mcsw;

/* Bytes of a switch; 0: the configuration is invalid. The object is flat: its bytes may be copied
 * to memory aligned to 16, and the copy is an independent switch with the same calls and cache. */
size_t mcsw_bytes(const struct mcsw_config *c);
struct mcsw *mcsw_open(void *memory, const struct mcsw_config *c);
size_t mcsw_cache_bytes(void);
struct mcsw_cache *mcsw_cache_open(void *memory);

/* ---- the control plane ---- */

struct mcsw_sender {
    uint8_t ip[16], mac[6];
    unsigned port;
    uint32_t qpn, psn; /* of its SQP; the first PSN that it sends */
};

struct mcsw_receiver {
    uint8_t ip[16], mac[6];
    unsigned port;
    uint32_t qpn, psn; /* of its RQP; the first PSN that it expects */
    uint64_t base;
    uint32_t rkey; /* of writes; never 0xffffffff */
};

struct mcsw_group_config {
    uint64_t key;
    uint8_t ip_version; /* 4 or 6, of all members */
    unsigned senders, receivers;
    const struct mcsw_sender *sender;     /* rank s sends to VRQPN group << 8 | s */
    const struct mcsw_receiver *receiver; /* rank r acknowledges to VSQPN group << 8 | r */
    bool leaf; /* sender 0 is the root switch, and always holds the group */
};

/* False: the number is in use or out of range, or there are too many members. */
bool mcsw_create(struct mcsw *w, uint32_t group, const struct mcsw_group_config *g);
bool mcsw_destroy(struct mcsw *w, uint32_t group);
/* The member's RQP was reset, and its PSN is at least 2^22 away from the old one. From now on it
 * may be linked. */
bool mcsw_repair(struct mcsw *w, uint32_t group, unsigned rank, const struct mcsw_receiver *r);
/* A new SQP, not fenced. If the old one had the lock, receivers that lack something become dirty,
 * and the lock is free. */
bool mcsw_register(struct mcsw *w, uint32_t group, unsigned rank, const struct mcsw_sender *s);
bool mcsw_set_memory(struct mcsw *w, uint32_t group, unsigned rank, uint64_t base, uint32_t rkey);
/* A second part of its memory, for writes whose key is MCSW_WINDOW_RKEY; no control changes it. */
bool mcsw_set_window(struct mcsw *w, uint32_t group, unsigned rank, uint64_t base, uint32_t rkey);
/* The receiver is dirty. */
bool mcsw_mark(struct mcsw *w, uint32_t group, unsigned rank);
/* The member no longer sends or receives with this rank. */
bool mcsw_remove(struct mcsw *w, uint32_t group, unsigned rank);

static inline uint32_t mcsw_qpn(uint32_t group, unsigned rank)
{
    return group << 8 | rank;
}

/* ---- the data plane ---- */

/* Handles a frame that arrived on a port, and may change its bytes; now: ns, monotonic. False: the
 * frame is not for this switch's addresses and is unchanged: ordinary traffic, which the caller
 * forwards. ARP requests and neighbour solicitations for its addresses are answered. */
bool mcsw_frame(struct mcsw *w, unsigned port, uint64_t now, uint8_t *frame, size_t length);
/* deferred: one pass of a recirculating packet. False: there is none. */
bool mcsw_pass(struct mcsw *w, uint64_t now);

/* ---- control packets ---- */

enum {
    MCSW_MAGIC = 0x4d43,
    MCSW_VERSION = 1,
    MCSW_CONTROL_BYTES = 32,
    MCSW_ENTRY_BYTES = 16,
    MCSW_STATUS_BYTES = 64,
    MCSW_ACQUIRE = 1,
    MCSW_TOPOLOGY = 2,
    MCSW_ADDRESS = 4,
    MCSW_RELEASE = 8,
    MCSW_BITMAP = 16,
    /* Two levels: an entry {vsqpn of the leaf, bytes, offset} names a section of this payload. The
     * section is the whole payload of the control for that leaf (with the leaf's group, key and
     * flags; psn and msn unchecked). */
    MCSW_SECTIONS = 32,
};
#define MCSW_CONTROL_RKEY 0xffffffffu
#define MCSW_CONTROL_VA   UINT64_MAX
#define MCSW_WINDOW_RKEY  0xfffffffeu
#define MCSW_UNCHECKED    0xffffffffu

struct mcsw_entry {
    uint32_t vsqpn, rkey;
    uint64_t va;
};

struct mcsw_control {
    uint8_t flags;
    uint32_t group;
    uint64_t key;
    uint32_t psn, msn; /* or MCSW_UNCHECKED */
    uint16_t links;
    uint32_t bitmap;
    const struct mcsw_entry *entries;
};

/* Writes the payload of a control packet. Returns its bytes; 0: it does not fit. For hosts and
 * tests. */
size_t mcsw_control_build(const struct mcsw_control *c, uint8_t *out, size_t room);

/* ---- counters ---- */

#define MCSW_COUNTERS(X)                                                                           \
    X(requests_in, "requests to the switch")                                                       \
    X(responses_in, "acknowledgements to the switch")                                              \
    X(copies, "copies of data to receivers")                                                       \
    X(controls, "controls that changed a set or address")                                          \
    X(controls_forwarded, "zero-length writes and sections to receivers")                          \
    X(releases, "locks given back")                                                                \
    X(acks, "acknowledgements to senders")                                                         \
    X(acks_local, "of these: answers to repeats that all have")                                    \
    X(naks, "negative acknowledgements to senders")                                                \
    X(rnrs, "requests to wait")                                                                    \
    X(refused, "of these: because of the lock")                                                    \
    X(repeats, "repeats that some receiver lacked")                                                \
    X(repeat_copies, "copies of data in these")                                                    \
    X(steals, "locks taken after the lease")                                                       \
    X(dirtied, "receivers that became dirty")                                                      \
    X(cnps, "congestion notifications passed on")                                                  \
    X(status_reads, "status reads")                                                                \
    X(passes, "passes of packets")                                                                 \
    X(recirculations, "of these: packets going round")                                             \
    X(scans, "of these: reading one acknowledgement")                                              \
    X(neighbours, "answers to ARP and neighbour solicitations")                                    \
    X(drop_form, "drops: not RoCE, options, fragments, two VLAN tags")                             \
    X(drop_icrc, "drops: wrong ICRC")                                                              \
    X(drop_stranger, "drops: unknown group, sender, address or port")                              \
    X(drop_gap, "drops: behind a gap that was reported")                                           \
    X(drop_version, "drops: of a receiver that is not linked, or a copy of another set")           \
    X(drop_future, "drops: acknowledgements of what was not sent")                                 \
    X(drop_stale, "drops: late negative acknowledgements")                                         \
    X(drop_cnp, "drops: congestion notifications above the rate")                                  \
    X(drop_full, "drops: too many packets go round")                                               \
    X(violations, "strict: what a pipeline can't do")

struct mcsw_counters {
#define X(name, text) uint64_t name;
    MCSW_COUNTERS(X)
#undef X
};

const struct mcsw_counters *mcsw_counters(const struct mcsw *w);
/* Name, meaning and value of the i-th counter; NULL behind the last. */
const char *mcsw_counter(const struct mcsw *w, unsigned i, const char **meaning, uint64_t *value);

/* ---- the state of a group, for tests and for the administrator ---- */

struct mcsw_view {
    unsigned senders, receivers;
    unsigned holder; /* MCSW_NOBODY */
    bool leaf, in_message, release_pending;
    uint32_t version, links, mask; /* mask: ranks that are linked */
    uint32_t agg, amsn, release_psn, dirty;
    struct mcsw_view_sender {
        uint32_t epsn, msn;
        bool valid, fenced, nak_sent;
    } sender[MCSW_SENDERS];
    struct mcsw_view_receiver {
        uint32_t psn_out, msn_out, off, msn_off, acked, amsn, version, rkey;
        uint64_t base;
        bool valid, dirty, linked;
    } receiver[MCSW_RECEIVERS];
};

bool mcsw_view(const struct mcsw *w, uint32_t group, struct mcsw_view *v);

/* ---- deliberate faults, in objects compiled with -DMCSW_MUTANTS ---- */

/* 1 .. 14: the mutants of doc/multicast.md; 0: none. */
#ifdef MCSW_MUTANTS
extern int mcsw_mutant;
#    define MCSW_MUTANT(n) (mcsw_mutant == (n))
#else
#    define MCSW_MUTANT(n) 0
#endif

#endif
