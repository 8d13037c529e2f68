/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The protocol over a TCP connection between a member of a job and the controller of a multicast
 * switch. Numbers are big-endian.
 *
 *     greeting  switch   magic 8, version 4, flags 4, nonce 32
 *     claim     member   magic 8, version 4, flags 4, job 16, key 32, nonce 32, code 32
 *     answer    switch   code 32, or magic 8, enum tk_mcsw_error 2, zeros: the claim is refused
 *     frames    both     length 4 (of type and body), type 2, body
 *
 * A code is an HMAC-SHA-256 with the job's key over its role and all bytes before it, so that
 * nothing can be reflected or replayed. `key` is zero, except in the claim of a job that is new to
 * a switch without a site key: there the first connection sets it. With a site key the job's key is
 * HMAC(site key, "mcswitch job" and the job's 16 bytes), and never sent. A request gets one answer;
 * the type determines the length of a body, and a wrong length ends the connection. Owns
 * nothing. */
#ifndef TK_MCSWITCH_PROTOCOL_H
#define TK_MCSWITCH_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TK_MCSW_VERSION = 1,
    TK_MCSW_ID = 16,
    TK_MCSW_KEY = 32,
    TK_MCSW_NONCE = 32,
    TK_MCSW_CODE = 32,
    TK_MCSW_HEADER = 16, /* magic, version, flags */
    TK_MCSW_GREETING = TK_MCSW_HEADER + TK_MCSW_NONCE,
    TK_MCSW_CLAIM = TK_MCSW_HEADER + TK_MCSW_ID + TK_MCSW_KEY + TK_MCSW_NONCE + TK_MCSW_CODE,
    TK_MCSW_TALK = TK_MCSW_GREETING + TK_MCSW_CLAIM + TK_MCSW_CODE,
    TK_MCSW_FRAME_HEAD = 6,
    TK_MCSW_FRAME_MAX = 256,
    TK_MCSW_LEAF = 32, /* members of one level */
};
#define TK_MCSW_MAGIC "mcswitch"

/* Flags of the greeting. */
enum { TK_MCSW_SITE_KEY = 1 };

enum tk_mcsw_type {
    TK_MCSW_PROBE = 1,
    TK_MCSW_CREATE,
    TK_MCSW_JOIN,
    TK_MCSW_REPAIR,
    TK_MCSW_MARK,
    TK_MCSW_LEAVE,
    TK_MCSW_DESTROY,
    TK_MCSW_REQUESTS,
    /* answers, in the same order */
    TK_MCSW_INFO = 65,
    TK_MCSW_CREATED,
    TK_MCSW_JOINED,
    TK_MCSW_REPAIRED,
    TK_MCSW_MARKED,
    TK_MCSW_LEFT,
    TK_MCSW_DESTROYED,
    TK_MCSW_ERROR = 96, /* enum tk_mcsw_error 2, a sentence */
    TK_MCSW_EVENT,      /* unasked */
};

enum tk_mcsw_error {
    TK_MCSW_E_NONE,
    TK_MCSW_E_KEY,       /* the proof is wrong */
    TK_MCSW_E_PROTOCOL,  /* magic, version, length, type */
    TK_MCSW_E_ARGUMENT,  /* a field is out of its range */
    TK_MCSW_E_FULL,      /* no job, no group, no member left */
    TK_MCSW_E_UNKNOWN,   /* no such group or member in this job */
    TK_MCSW_E_STATE,     /* joined twice, not complete ... */
    TK_MCSW_E_UNREACHED, /* the member's address is not found */
    TK_MCSW_E_GONE,      /* the group was destroyed while waiting */
    TK_MCSW_E_LOCAL,     /* made by the client: no connection, no answer in time */
};

/* How a member reaches the switch. */
enum tk_mcsw_plane {
    TK_MCSW_UDP,    /* softhca's packets: GIDs of its two forms */
    TK_MCSW_FRAMES, /* Ethernet frames of a card or the kernel: ::ffff:a.b.c.d */
    TK_MCSW_PLANES
};

/* TK_MCSW_INFO */
struct tk_mcsw_info {
    uint32_t version; /* of the switch */
    uint32_t boot;    /* a random number, drawn at each start of the switch */
    uint32_t planes;  /* bits 1 << enum tk_mcsw_plane */
    uint32_t members; /* most in a group */
    uint32_t groups;  /* most of all jobs */
    uint32_t mtu;     /* most, in bytes */
    uint32_t lease;   /* ms until the lock of a silent holder may be taken */
    /* The GIDs that requests go to (SQP) and that copies come from (RQP), by plane. */
    struct {
        uint8_t requests[16], copies[16];
    } vip[TK_MCSW_PLANES];
};

/* TK_MCSW_JOIN, TK_MCSW_REPAIR */
struct tk_mcsw_member {
    uint32_t rank;  /* in the group, from 0 */
    uint32_t plane; /* enum tk_mcsw_plane */
    uint32_t mtu;   /* path MTU in bytes; the same for all members of a group */
    uint8_t gid[16];
    uint8_t mac[6];       /* TK_MCSW_FRAMES: zeros: the switch finds it by ARP */
    uint32_t sqpn, sqpsn; /* the send queue pair, and the first PSN that it will use */
    uint32_t rqpn, rqpsn; /* the receive queue pair, and the first PSN that it expects */
    uint64_t base;        /* of the memory that writes go to, and its key */
    uint32_t rkey;
};

enum {
    TK_MCSW_REPAIR_RQP = 1,
    TK_MCSW_REPAIR_SQP = 2,
    TK_MCSW_REPAIR_MEMORY = 4,
    TK_MCSW_REPAIR_WINDOW = 8, /* only: base and rkey are those of a second part of its memory */
};
/* A write with this key goes to the second part; with any other one to the first. */
#define TK_MCSW_WINDOW_KEY UINT32_C(0xfffffffe)

/* TK_MCSW_JOINED */
struct tk_mcsw_place {
    uint32_t group, rank, members;
    uint32_t vrqpn; /* what the SQP is connected to, at vip.requests */
    uint32_t vsqpn; /* what the RQP is connected to, at vip.copies */
    uint64_t key;   /* for control packets */
    /* A group of more than TK_MCSW_LEAF members has two levels: member r is receiver r % 32 of the
     * leaf group leaf_group + r / 32, whose key is the same, and that leaf is receiver r / 32 of
     * `group`. Else both are 0. */
    uint32_t leaves, leaf_group;
};

enum tk_mcsw_event_kind {
    TK_MCSW_MEMBER_DIRTY = 1, /* its RQP has to be repaired before it can be linked */
    TK_MCSW_MEMBER_FENCED,    /* its SQP lost the lock in mid-broadcast and has to be repaired */
    TK_MCSW_MEMBER_LEFT,      /* left, or its connection broke: not to be linked again */
    TK_MCSW_GROUP_GONE,       /* destroyed */
};

/* TK_MCSW_EVENT */
struct tk_mcsw_event {
    uint32_t group, rank, kind;
};

/* The bytes of a request's or an answer's body; 0: no such type, TK_MCSW_ERROR: of any length. */
size_t tk_mcsw_body(unsigned type);

/* A frame, written and read field by field; reading past its end yields zeros. */
struct tk_mcsw_frame {
    uint8_t *at, *end;
};
void tk_mcsw_put(struct tk_mcsw_frame *f, uint64_t value, unsigned bytes);
void tk_mcsw_put_bytes(struct tk_mcsw_frame *f, const void *from, size_t bytes);
uint64_t tk_mcsw_get(struct tk_mcsw_frame *f, unsigned bytes);
void tk_mcsw_get_bytes(struct tk_mcsw_frame *f, void *to, size_t bytes);
/* Begins a frame in `out`; its end completes the length and returns the bytes of all. */
struct tk_mcsw_frame tk_mcsw_begin(uint8_t out[TK_MCSW_FRAME_MAX], unsigned type);
size_t tk_mcsw_end(const struct tk_mcsw_frame *f, uint8_t out[TK_MCSW_FRAME_MAX]);

void tk_mcsw_put_member(struct tk_mcsw_frame *f, const struct tk_mcsw_member *m);
void tk_mcsw_get_member(struct tk_mcsw_frame *f, struct tk_mcsw_member *m);
void tk_mcsw_put_info(struct tk_mcsw_frame *f, const struct tk_mcsw_info *i);
void tk_mcsw_get_info(struct tk_mcsw_frame *f, struct tk_mcsw_info *i);
void tk_mcsw_put_place(struct tk_mcsw_frame *f, const struct tk_mcsw_place *p);
void tk_mcsw_get_place(struct tk_mcsw_frame *f, struct tk_mcsw_place *p);

/* Magic, version and flags. */
void tk_mcsw_put_header(uint8_t to[TK_MCSW_HEADER], uint32_t flags);
/* What the switch sends in place of a code. */
void tk_mcsw_put_refusal(uint8_t to[TK_MCSW_CODE], enum tk_mcsw_error error);
/* The code of the first `bytes` of the talk, by the end that it belongs to. */
void tk_mcsw_code(const uint8_t key[TK_MCSW_KEY], bool by_switch, const uint8_t *talk, size_t bytes,
                  uint8_t code[TK_MCSW_CODE]);
/* The key of a job, where the switch has one of its own. */
void tk_mcsw_derive(const uint8_t site[TK_MCSW_KEY], const uint8_t id[TK_MCSW_ID],
                    uint8_t key[TK_MCSW_KEY]);
/* Reads a file of 64 hexadecimal digits. False with a sentence. */
bool tk_mcsw_key_read(const char *path, uint8_t key[TK_MCSW_KEY], char *why, size_t space);

#endif
