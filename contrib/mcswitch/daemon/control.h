/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TCP connections of members of jobs: each proves that it knows its job's key, then exchanges
 * frames (conduit/mcswitch/protocol.h). No peer can block the switch: every step is non-blocking,
 * the proof has a time limit, and a connection whose owner does not read is closed when its buffer
 * is full. Owns the connections and the keys of jobs. */
#ifndef MCD_CONTROL_H
#define MCD_CONTROL_H

#include "daemon/loop.h"
#include "mcswitch/protocol.h"

enum {
    MCD_CONNECTIONS = 4096,
    MCD_JOBS = 1024,
    MCD_OUT = 2048, /* bytes that wait for a slow reader */
};

struct mcd_job {
    uint8_t id[TK_MCSW_ID], key[TK_MCSW_KEY];
    unsigned connections; /* 0: free */
    unsigned groups;
};

enum mcd_talk { MCD_FREE, MCD_GREETING, MCD_CLAIM, MCD_ANSWER, MCD_OPEN };

struct mcd_connection {
    struct mcd_source source;
    uint8_t state; /* enum mcd_talk */
    bool ending;   /* closed when its last frame is sent */
    bool joins;    /* a join is unanswered: further requests are refused */
    struct mcd_job *job;
    uint64_t deadline; /* of the proof */
    size_t held, out_length;
    uint8_t in[TK_MCSW_TALK > TK_MCSW_FRAME_MAX ? TK_MCSW_TALK : TK_MCSW_FRAME_MAX];
    uint8_t out[MCD_OUT];
};

struct mcd_control_counters {
    uint64_t accepted, refused_full, refused_key, late, malformed, slow, requests, errors;
    uint64_t joined, left, destroyed; /* requests and answers of members */
    unsigned open;                    /* now */
};
extern struct mcd_control_counters mcd_control_count;

/* Called for each frame of a connection, whose body has the right length for its type, and when an
 * authenticated connection has ended. */
struct mcd_control_calls {
    void (*take)(struct mcd_connection *c, unsigned type, struct tk_mcsw_frame *body);
    void (*gone)(struct mcd_connection *c);
};

/* Listens at "HOST:PORT" or "[v6]:PORT"; site_key: the key from which all jobs' keys are derived,
 * or NULL. False: failed, with a message on standard error. */
bool mcd_control_open(const char *text, const uint8_t *site_key,
                      const struct mcd_control_calls *calls);
void mcd_control_close_all(void);
void mcd_control_tick(uint64_t now);

void mcd_control_send(struct mcd_connection *c, const uint8_t *frame, size_t length);
/* Sends an answer of one number. */
void mcd_control_answer(struct mcd_connection *c, unsigned type, uint32_t number);
void mcd_control_error(struct mcd_connection *c, enum tk_mcsw_error error, const char *why);

#endif
