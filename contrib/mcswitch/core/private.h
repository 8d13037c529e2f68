/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of the core: the parsed packet, the bridge header that travels with it from
 * pass to pass, the tables that the control plane writes. The registers are in ingress.h and
 * egress.h, so that neither half of the pipeline can see the other's. */
#ifndef MCSW_PRIVATE_H
#define MCSW_PRIVATE_H

#include "core/core.h"
#include "packet/frame.h"
#include "packet/headers.h"
#include "packet/psn.h"

enum {
    reth_bytes = 16,
    aeth_bytes = 4,
    /* Up to the RETH: the part that a copy changes. */
    head_max = ethernet_bytes + vlan_bytes + ipv6_bytes + udp_bytes + ROCE_BTH_BYTES + reth_bytes,
};

/* Parts of a receiver's memory: the one that a control's list sets, and the one of
 * MCSW_WINDOW_RKEY. */
enum { WINDOWS = 2 };

/* Values of the word with the holder. */
enum { NOBODY = MCSW_NOBODY, STEALING = 256 };

/* Values of the word beside the RELEASE's PSN: it waits for receivers; the pass that unlocks is in
 * flight. / */
enum { NO_RELEASE, WAITING, UNLOCKING };

/* Whether a parsed request is data, a control, or only gets an error. */
enum packet_kind { IS_DATA, IS_CONTROL, IS_STATUS_READ, IS_REFUSED, IS_ACK, IS_CNP };

/* Offsets instead of pointers, because a recirculating packet moves to another address each
 * time. */
struct packet {
    uint16_t port;
    uint16_t ip_at, bth_at, payload_at, icrc_at; /* in the frame */
    uint16_t payload_bytes;                      /* without padding */
    uint8_t kind;                                /* enum packet_kind */
    uint8_t opcode, syndrome;
    bool v6, to_requests, has_reth, last;
    uint8_t window; /* the part of the memory to which a request writes */
    uint32_t qpn, psn, msn, rkey, dma_length;
    uint64_t va;
    /* of a control */
    bool malformed;
    uint8_t flags;
    uint16_t links;
    uint32_t lock, bitmap, first_psn, first_msn;
    uint64_t key;
};

/* The passes, in the order in which a packet takes them. */
enum pass {
    PASS_CHECK,   /* one entry of a control's list */
    PASS_REQUEST, /* the decision about a request */
    PASS_STEAL,   /* takes the lock from a silent holder */
    PASS_LOSS,    /* one receiver of the silent holder: does it lack something? */
    PASS_FREE,    /* frees the lock; then PASS_REQUEST again */
    PASS_LOCK,    /* takes the lock, or only changes the set */
    PASS_LINK,    /* one receiver of the new set */
    PASS_COPY,    /* one copy of data, or of a repeated control */
    PASS_RELEASE,
    PASS_UNLOCK,
    PASS_RESPONSE, /* an acknowledgement arrives */
    PASS_EXACT,    /* the whole minimum at once; impossible in a pipeline */
    PASS_SCAN,     /* one receiver of the minimum */
    PASS_PUBLISH,
    PASS_VERIFY,
    PASS_RESULT, /* the minimum comes to the ingress */
    PASSES,
};

/* The state that travels with the packet. */
struct bridge {
    uint8_t pass;
    uint8_t k, n;     /* round; rounds */
    uint8_t rank;     /* of the sender (requests) or receiver (responses) */
    uint16_t holder;  /* of the lock */
    uint8_t best;     /* scan: receiver with the minimum */
    uint8_t code;     /* PASS_CHECK: the NAK for an error; responses: syndrome to pass on */
    bool repeat, cut; /* copy only for receivers that lack it; the holder was inside a message */
    bool has_minimum;
    uint32_t group, version, mask, seen;
    uint32_t messages;         /* completed before the control */
    uint32_t least, least_msn; /* scan: the minimum so far */
    uint32_t limit;            /* responses: below this; theft: last PSN that was accepted */
    uint32_t was;  /* responses: the PSN named by a NAK; theft: ranks that lack something */
    uint32_t topo; /* lock: the register at the decision */
    uint32_t rest; /* link: ranks still to come */
};

struct work {
    struct bridge b;
    struct packet p;
    uint8_t head[head_max]; /* of the frame before copies changed it; its ICRC */
    uint32_t icrc;
    uint8_t *frame;
};

struct address {
    uint8_t ip[16], mac[mac_bytes];
    uint16_t port;
    bool valid;
    uint32_t qpn;
};

struct ingress;
struct egress;

struct group {
    bool used, leaf, v6;
    uint16_t senders, receivers;
    uint32_t present; /* receivers that were not removed */
    uint64_t key;
    struct address receiver[MCSW_RECEIVERS];
    /* then struct address [senders], struct ingress, struct egress: see layout.c */
};

struct slot {
    uint16_t length;
    struct work work;
    uint8_t frame[MCSW_FRAME_MAX];
};

struct mcsw {
    struct mcsw_config c;
    struct mcsw_counters count;
    uint64_t now;
    uint32_t lease_ticks;
    uint8_t tick;         /* log2 of the ns of a tick of the lease */
    uint8_t stage;        /* of the last register in this pass */
    uint32_t touched;     /* registers of this pass */
    uint32_t first, used; /* slots */
    size_t group_bytes, groups_at, slots_at;
};

/* layout.c */
size_t mcsw_up(size_t bytes);
size_t mcsw_group_bytes(const struct mcsw_config *c);
void *mcsw_at(const struct mcsw *w, size_t offset);
struct group *mcsw_group(const struct mcsw *w, uint32_t group); /* NULL: none */
struct address *mcsw_sender_address(const struct mcsw *w, struct group *g);
struct ingress *mcsw_ingress(const struct mcsw *w, struct group *g);
struct egress *mcsw_egress(const struct mcsw *w, struct group *g);
static inline uint32_t mcsw_ticks(const struct mcsw *w)
{
    return (uint32_t)(w->now >> w->tick);
}

/* parse.c: true: *p is for the pipeline. */
bool mcsw_for_us(const struct mcsw *w, const uint8_t *frame, size_t length);
bool mcsw_parse(struct mcsw *w, const uint8_t *frame, size_t length, struct packet *p);

/* control.c: 0, or the code of the NAK. */
uint8_t mcsw_control_form(const struct group *g, const struct packet *p);
uint8_t mcsw_control_entry(const struct work *k, const struct group *g, unsigned i, unsigned *rank);
struct mcsw_entry mcsw_entry_at(const struct work *k, unsigned i);

/* A pass returns whether the packet recirculates; its bridge header names the next pass. */
typedef bool mcsw_pass_way(struct mcsw *w, struct group *g, struct work *k);
mcsw_pass_way mcsw_pass_check, mcsw_pass_request;                  /* request.c */
mcsw_pass_way mcsw_pass_lock, mcsw_pass_release, mcsw_pass_unlock; /* lock.c */
mcsw_pass_way mcsw_pass_steal, mcsw_pass_free;                     /* lock.c */
mcsw_pass_way mcsw_pass_loss, mcsw_pass_link, mcsw_pass_copy;      /* copy.c */
mcsw_pass_way mcsw_pass_response, mcsw_pass_result;                /* response.c */
mcsw_pass_way mcsw_pass_exact, mcsw_pass_scan, mcsw_pass_publish,
    mcsw_pass_verify;               /* aggregate.c */
mcsw_pass_way mcsw_egress_response; /* aggregate.c */

/* deparse.c: frames out. */
void mcsw_answer(struct mcsw *w, const struct group *g, struct work *k, unsigned sender,
                 uint32_t psn, uint8_t syndrome, uint32_t msn);
void mcsw_answer_status(struct mcsw *w, const struct group *g, struct work *k, unsigned sender,
                        uint32_t msn, const uint8_t status[MCSW_STATUS_BYTES]);
void mcsw_emit_cnp(struct mcsw *w, const struct group *g, struct work *k, unsigned sender);
struct target {
    const struct address *to;
    uint32_t psn, rkey;
    uint64_t base;
};
void mcsw_emit_copy(struct mcsw *w, struct work *k, const struct target *t);
void mcsw_emit_control(struct mcsw *w, struct work *k, const struct target *t, unsigned entry);

/* icrc_cache.c: moves the change of an ICRC over so many unchanged bytes. */
uint32_t mcsw_shift(struct mcsw_cache *c, uint32_t change, size_t behind);

/* neighbour.c: true: it was a query for one of our addresses. */
bool mcsw_neighbour(struct mcsw *w, unsigned port, const uint8_t *frame, size_t length);

void mcsw_notify(struct mcsw *w, const struct group *g, uint32_t group, unsigned rank,
                 enum mcsw_event event);

#endif
