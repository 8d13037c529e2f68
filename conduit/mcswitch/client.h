/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection to the controller of a multicast switch (mcswitchd): it proves that this process
 * belongs to a job, queries the switch's capabilities, and creates, joins, repairs and leaves
 * groups. Broadcasts do not use it. One request at a time; every call except resolve and wait
 * returns at once. The job's groups live no longer than the connections of its members, so a member
 * keeps its connection open until it leaves. Owns the socket. No lock: the caller serializes.
 * Reports nothing: `why` has the sentence. doc/multicast.md describes the protocol. */
#ifndef TK_MCSWITCH_CLIENT_H
#define TK_MCSWITCH_CLIENT_H

#include "mcswitch/protocol.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum tk_mcsw_status { TK_MCSW_GOING, TK_MCSW_DONE, TK_MCSW_REFUSED };

/* Data common to all processes of a job; created by one, passed to the others by the modex. */
struct tk_mcsw_job {
    uint8_t id[TK_MCSW_ID];
    uint8_t key[TK_MCSW_KEY];
    uint8_t derived; /* derived from the switch's own key: never sent */
};

/* A new job. site_key: the switch's own key (mcswitchd --key), from which it derives that of the
 * job; NULL: the switch has none, and the first connection of the job brings the job's key. False:
 * no random bytes from the kernel. */
bool tk_mcsw_job_make(struct tk_mcsw_job *job, const uint8_t site_key[TK_MCSW_KEY]);

struct tk_mcsw_client {
    int fd; /* non-blocking; -1: none, or the next attempt of a dial is not due yet */
    enum tk_mcsw_status status;
    uint16_t error; /* when refused: enum tk_mcsw_error */
    char why[160];  /* when refused */
    int64_t deadline;
    struct tk_mcsw_job job;
    struct tk_mcsw_info info;   /* after probe */
    uint32_t group;             /* after create */
    struct tk_mcsw_place place; /* after join */
    /* Set by the caller after dial, or NULL: called by step for each event. */
    void (*event)(void *context, const struct tk_mcsw_event *e);
    void *context;
    /* private */
    uint8_t step, asked;
    struct sockaddr_storage to;
    int64_t dial_at;  /* the next attempt of a dial; 0: none is due */
    unsigned dropped; /* attempts that the switch ended before it answered */
    size_t sent, to_send, held;
    uint8_t talk[TK_MCSW_TALK];
    uint8_t out[TK_MCSW_FRAME_MAX], in[TK_MCSW_FRAME_MAX];
};

/* "host:port" or "[v6]:port" of GASNET_MCAST_CTRL; calls the resolver, so it may take a while.
 * False, with a sentence, on failure. Once per job: the others get the address from the modex. */
bool tk_mcsw_resolve(const char *text, struct sockaddr_storage *to, char *why, size_t space);

/* Connects and proves that it knows the job's key. Each request has `ms` from its call on. A switch
 * with too many unauthenticated connections closes the oldest, and any that takes too long, so a
 * connection that it closes without a reason is made again until the time is over. */
void tk_mcsw_dial(struct tk_mcsw_client *c, const struct sockaddr_storage *to,
                  const struct tk_mcsw_job *job, uint32_t ms);
/* Closes the socket; this process leaves its groups. */
void tk_mcsw_close(struct tk_mcsw_client *c);

/* Requests; the previous one must be done. Answers are stored in the struct. */
void tk_mcsw_probe(struct tk_mcsw_client *c, uint32_t ms);
/* Creates a group for that many members; called by one of them. `group` is its number, for the
 * others. */
void tk_mcsw_create(struct tk_mcsw_client *c, uint32_t members, uint32_t ms);
/* Done when all members have joined: `place`. */
void tk_mcsw_join(struct tk_mcsw_client *c, uint32_t group, const struct tk_mcsw_member *m,
                  uint32_t ms);
/* After its queue pairs were reset: the same fields with new sequence numbers, at least 2^22 away
 * from the old ones for the RQP. what: TK_MCSW_REPAIR_... */
void tk_mcsw_repair(struct tk_mcsw_client *c, uint32_t group, uint32_t what,
                    const struct tk_mcsw_member *m, uint32_t ms);
/* Marks another member's RQP as not to be linked until its owner repairs it. */
void tk_mcsw_mark(struct tk_mcsw_client *c, uint32_t group, uint32_t rank, uint32_t ms);
void tk_mcsw_leave(struct tk_mcsw_client *c, uint32_t group, uint32_t rank, uint32_t ms);
void tk_mcsw_destroy(struct tk_mcsw_client *c, uint32_t group, uint32_t ms);

/* Continues as far as possible without waiting. Also takes events, when no request is pending. */
enum tk_mcsw_status tk_mcsw_step(struct tk_mcsw_client *c);
/* Events to poll for on fd while the status is TK_MCSW_GOING; else POLLIN for events. While fd is
 * -1 there are none: step again within milliseconds. */
short tk_mcsw_poll_events(const struct tk_mcsw_client *c);
/* Steps until done, refused or late. */
enum tk_mcsw_status tk_mcsw_wait(struct tk_mcsw_client *c);

#endif
