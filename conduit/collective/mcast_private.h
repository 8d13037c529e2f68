/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of broadcasts over a switch. A group's lock protects all of it; it is taken
 * under the engine's lock, and never held while polling. */
#ifndef TK_MCAST_PRIVATE_H
#define TK_MCAST_PRIVATE_H

#include <netinet/in.h>

#include "base/bitset.h"
#include "base/counter.h"
#include "collective/coll_private.h"
#include "collective/mcast.h"
#include "mcswitch/client.h"
#include "transport/multicast.h"

enum {
    tk_mcast_slots = 8, /* of a ring */
    /* A host with far more work than CPUs may stop the switch, or another member, for seconds. A
     * switch that has ended refuses connections at once. */
    tk_mcast_request_ms = 10000,
    tk_mcast_groups_max = 8,
    tk_mcast_control_head = 32,
    tk_mcast_control_entry = 16, /* with sections: one for each leaf, and the leaf's own control */
    tk_mcast_leaves = (tk_mcast_members + TK_MCSW_LEAF - 1) / TK_MCSW_LEAF,
    tk_mcast_control_max =
        (1 + tk_mcast_leaves) * tk_mcast_control_head + tk_mcast_leaves * tk_mcast_control_entry,
};

/* Identifies the broadcast that a slot carries. */
struct tk_mcast_key {
    uint64_t team;
    uint32_t sequence, phase;
};

/* A message in memory that a root writes to, at the same offset for all members. `stamp` is written
 * last: a sequence number of the ring's root, and the number of bytes. It is the last word of the
 * write of a large broadcast, and a separate write after the data of a small one. */
struct tk_mcast_slot {
    _Alignas(64) struct tk_mcast_key large;
    _Atomic uint64_t stamp;
    uint64_t unused[3];
    struct tk_mcast_key small; /* the payload follows without a hole */
    _Alignas(64) char payload[tk_mcast_eager];
};

struct tk_mcast_memory {
    _Alignas(64) _Atomic uint64_t test; /* the era of a group that is tested */
    _Alignas(64) uint64_t test_from;
    _Alignas(64) uint8_t status[64];
    _Alignas(64) uint8_t control[tk_mcast_slots][tk_mcast_control_max];
    _Alignas(64) uint8_t release[tk_mcast_slots][64];
    _Alignas(64) uint8_t last_release[64], test_control[tk_mcast_control_max];
    struct tk_mcast_slot rings[][tk_mcast_slots]; /* by member */
};

static inline size_t tk_mcast_memory_bytes(uint32_t members)
{
    return sizeof(struct tk_mcast_memory) +
           members * sizeof(((struct tk_mcast_memory *)NULL)->rings[0]);
}

/* Of a slot of our own ring. */
enum tk_mcast_use_state {
    TK_MCAST_FREE,    /* all members have returned it */
    TK_MCAST_FLYING,  /* posted */
    TK_MCAST_ARRIVED, /* at all receivers */
    TK_MCAST_FAILED,  /* some may lack it */
    TK_MCAST_ASKED,   /* they are asked */
};
struct tk_mcast_use {
    enum tk_mcast_use_state state;
    struct tk_bitset receivers;
    struct tk_bitset owed;      /* members that have not returned the slot */
    struct tk_bitset asked_for; /* members that were asked to return it */
    struct tk_bitset unknown;   /* these have not answered yet */
    struct tk_bitset lacking;   /* these lack it */
    uint32_t number;            /* of the stamp */
    uint64_t since; /* when it was posted with an ACQUIRE; 0: without one, or others know of it */
};

enum tk_mcast_life {
    TK_MCAST_NONE,   /* not a member, or off */
    TK_MCAST_REST,   /* there is nothing to do */
    TK_MCAST_DIAL,   /* of the coordinator only, until CREATE: */
    TK_MCAST_CREATE, /* it asks for a group */
    TK_MCAST_JOIN_DIAL,
    TK_MCAST_PROBE,
    TK_MCAST_JOIN,
    TK_MCAST_STATUS, /* reads the switch's status */
    TK_MCAST_TEST,   /* a broadcast to all, by the coordinator, when all are ready */
    TK_MCAST_LOST,   /* broken; the coordinator waits until `retry_at` */
    TK_MCAST_GONE,   /* the job ends: it leaves */
};

struct tk_mcast_message {
    uint32_t to;
    int32_t args[8];
};

struct tk_mcast_lack {
    uint64_t team;
    uint32_t sequence, phase;
};

struct tk_mcast_group {
    tk_lock_t lock;
    unsigned index;
    bool is_good; /* broadcasts of ours may go over it */
    uint32_t era; /* of its life; the coordinator counts */
    uint32_t me, members;
    struct tk_mcast_memory *memory;
    struct tk_mcast_link *link;

    /* our ring */
    struct tk_mcast_use uses[tk_mcast_slots];
    uint32_t next, numbers;
    /* the lock of the switch */
    bool holds, is_wanted;
    struct tk_bitset last_receivers; /* and, while it is held, those that are linked */
    uint64_t last;                   /* when we posted */
    uint64_t lease;
    uint32_t flying;
    uint32_t releases; /* posted, of their own */
    uint32_t left;     /* members, at the end of the job */

    /* mcast_window.c */
    struct tk_mcsw_member mine;           /* as it joined */
    struct tk_mcast_window window, asked; /* of ours: the switch has it; the switch was asked to
                                           * take it */
    bool asks_window;

    /* the others' rings */
    uint32_t seen[tk_mcast_members][tk_mcast_slots];
    uint8_t due[tk_mcast_members];    /* slots to be returned */
    uint8_t wanted[tk_mcast_members]; /* slots that their root waits for */
    struct tk_bitset owing;           /* members that receive now */
    struct tk_mcast_lack *lacks;
    unsigned lack_count, lack_space;

    /* life */
    enum tk_mcast_life life;
    struct tk_mcsw_client client;
    struct tk_mcsw_job job;
    struct sockaddr_storage at;
    bool has_connection, is_decided, was_good;
    uint64_t deadline, retry_at;
    unsigned retry; /* s */
    uint32_t group; /* the switch's number */
    struct tk_bitset all;
    struct tk_bitset ready, got; /* the coordinator: members that are ready; that got the test */
    uint32_t offered;            /* the coordinator: members that have the offer */
    uint32_t tested;             /* the others: the era whose test came */
    bool test_flies;
    char why[200];
    const char *trouble; /* the reason to declare it broken, or NULL */

    /* talk */
    struct tk_mcast_message *out;
    unsigned out_count, out_space;
    struct tk_mcast_message *in; /* requests of others, answered outside of handlers */
    unsigned in_count, in_space;
};

extern TK_HIDDEN struct tk_mcast_group *tk_mcast_groups;
extern TK_HIDDEN unsigned tk_mcast_group_count;
extern TK_HIDDEN uint32_t tk_mcast_ranks[tk_mcast_members]; /* of the job, by member */
extern TK_HIDDEN bool tk_mcast_all_ranks; /* are members; else the first of each neighbourhood */

/* For a rank that is not a member: the member with which it shares memory. */
static inline uint32_t tk_mcast_member(uint32_t rank)
{
    return tk_mcast_all_ranks ? rank : tk_topology.nbrhd_of[rank];
}

static inline struct tk_mcast_group *tk_mcast_group_of(uint64_t team)
{
    uint64_t hash = team * UINT64_C(0x9e3779b97f4a7c15);
    return &tk_mcast_groups[(hash >> 32) % tk_mcast_group_count];
}

/* ---- mcast_control.c: payloads of at most tk_mcast_control_max bytes */

/* The largest control payload of a group with that many leaves. */
uint32_t tk_mcast_control_bytes(uint32_t leaves);
/* The lock, with these receivers. */
size_t tk_mcast_control_acquire(uint8_t *at, const struct tk_mcsw_place *place,
                                const struct tk_bitset *receivers);
size_t tk_mcast_control_release(uint8_t *at, const struct tk_mcsw_place *place);

/* ---- mcast_slots.c; with the lock */

struct tk_mcast_packet {
    uint64_t team;
    uint32_t sequence, phase;
    struct tk_bitset receivers;
    const void *payload;
    size_t nbytes;
    bool is_large;   /* source of the payload, in our segment, */
    uint64_t offset; /* and destination in the receivers' */
};
/* A free slot of our ring, by its index; -1: no slot is free now. */
int tk_mcast_post(struct tk_mcast_group *group, const struct tk_mcast_packet *packet);
/* The payload from a member, if it has arrived; a large one is then at its destination. */
const void *tk_mcast_find(struct tk_mcast_group *group, uint32_t root,
                          const struct tk_mcast_packet *packet, unsigned *slot);
void tk_mcast_return(struct tk_mcast_group *group, uint32_t root, unsigned slot);
void tk_mcast_use_end(struct tk_mcast_group *group, unsigned slot);
void tk_mcast_use_arrived(struct tk_mcast_group *group, unsigned slot);
void tk_mcast_release(struct tk_mcast_group *group);
void tk_mcast_lock_care(struct tk_mcast_group *group);
/* Sends a message to the test word of all other members. */
bool tk_mcast_post_test(struct tk_mcast_group *group);
bool tk_mcast_take_lack(struct tk_mcast_group *group, const struct tk_mcast_packet *packet);

/* Ids of completions that belong to no slot. */
enum { tk_mcast_id_release = 100, tk_mcast_id_status, tk_mcast_id_test };

/* ---- mcast_life.c; with the lock */

void tk_mcast_break(struct tk_mcast_group *group, const char *how, bool tell);
void tk_mcast_offered(struct tk_mcast_group *group, const void *offer, size_t size);
void tk_mcast_is_ready(struct tk_mcast_group *group, uint32_t member, uint32_t era, uint32_t got);
void tk_mcast_use_era(struct tk_mcast_group *group, uint32_t era, bool good);
bool tk_mcast_live(struct tk_mcast_group *group);
bool tk_mcast_reap(struct tk_mcast_group *group);

/* ---- mcast_window.c; with the lock */

static const uint64_t tk_mcast_nowhere = UINT64_MAX;
/* Where memory lies in our segment; tk_mcast_nowhere: the switch can't write there. */
uint64_t tk_mcast_window_offset(const struct tk_mcast_group *group, const void *at, size_t nbytes);
bool tk_mcast_window_care(struct tk_mcast_group *group);
void tk_mcast_window_forget(struct tk_mcast_group *group);

/* ---- mcast_leave.c */

/* For tk_exit_add(). */
bool tk_mcast_leave(bool all);

/* ---- mcast_notify.c; with the lock */

enum tk_mcast_word {
    TK_MCAST_CREDIT, /* slots of the receiver's ring */
    TK_MCAST_ASK,    /* return these slots of mine */
    TK_MCAST_WANT,   /* the lock */
    TK_MCAST_BROKEN, /* era */
    TK_MCAST_QUERY,  /* era, slot, number; team, sequence and phase are in the next */
    TK_MCAST_ANSWER, /* slot, number, has it */
    TK_MCAST_READY,  /* era, whether the test came too */
    TK_MCAST_USE,    /* era, or not */
};
void tk_mcast_notify(struct tk_mcast_group *group, uint32_t to, enum tk_mcast_word word, uint32_t a,
                     uint32_t b, uint32_t c);
void tk_mcast_notify_all(struct tk_mcast_group *group, enum tk_mcast_word word, uint32_t a,
                         uint32_t b);
void tk_mcast_query(struct tk_mcast_group *group, uint32_t to, unsigned slot);
/* The controller's address, and the secret that proves that we belong to the job. False: not known
 * yet. */
bool tk_mcast_send_offer(struct tk_mcast_group *group, uint32_t to, const void *offer, size_t size);
/* Sends the pending messages. */
void tk_mcast_send_due(struct tk_mcast_group *group);
struct tk_mcast_message *tk_mcast_message_add(struct tk_mcast_message **list, unsigned *count,
                                              unsigned *space);

/* Arguments of a message: its kind, the group and a small number; others depend on the kind. */
enum {
    tk_mcast_what,
    tk_mcast_first,
    tk_mcast_second,
    tk_mcast_team_low,
    tk_mcast_team_high,
    tk_mcast_sequence,
    tk_mcast_phase,
    tk_mcast_args
};

/* ---- mcast_receive.c */

void tk_mcast_receive_open(void);
void tk_mcast_answer(struct tk_mcast_group *group); /* the request; call with the lock */

#endif
