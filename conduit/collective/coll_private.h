/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of the collectives' engine. A collective is a list of phases (inside the
 * neighbourhood, among leaders, inside again, or one over all members); a phase is an algorithm on
 * a group of ranks; an algorithm is a function that is called once for each of its rounds and puts
 * the sends and receives of the round on a list. The engine executes the list and calls it again.
 *
 * coll.c composes phases, choose.c has the table of algorithms, engine.c executes, match.c matches
 * messages with receives, broadcast.c, reduce.c and blocks.c are the algorithms. */
#ifndef TK_COLL_PRIVATE_H
#define TK_COLL_PRIVATE_H

#include "base/counter.h"
#include "collective/coll.h"
#include "collective/local.h"
#include "op/op_type.h"
#include "peer/peer.h"
#include "team/objects.h"
#include "transport/transport.h"

/* ---- match.c: messages and receives ---- */

/* Identifies a message: all messages in flight have different keys. */
struct tk_coll_key {
    uint64_t team;
    uint32_t sequence; /* of the collective, on its team */
    uint32_t from, to; /* team ranks */
    uint32_t tag;
};

/* Bit of the tag: a message without data by which the receiver announces that it is ready, and its
 * address. */
static const uint32_t tk_coll_ready_tag = UINT32_C(1) << 31;

/* Larger payloads are sent when their receiver is ready, so that unexpected messages stay small. */
enum { tk_coll_eager_max = TK_MAX_MEDIUM < 16384 ? TK_MAX_MEDIUM / 2 : 8192 };

/* A receive. Its owner may free it once it is done: tk_coll_post_done() in coll_post.h. */
struct tk_coll_post {
    struct tk_coll_post *next;
    struct tk_coll_key key;
    char *memory;
    size_t nbytes, left;
    uint64_t word; /* of a message without data */
    tk_counter_t done;
};

void tk_coll_match_open(void);

/* `post` has key, memory and nbytes. Done at once if the message has come already. */
void tk_coll_post_enter(struct tk_coll_post *post);

/* Cancels the receive of a message that will not arrive; it may be freed then. */
void tk_coll_post_withdraw(struct tk_coll_post *post);

/* Changes whenever a receive is done. */
extern TK_HIDDEN tk_counter_t tk_coll_news;

/* All return TK_BUSY if the transport has no space now. A chunk is a part of a payload for a
 * receiver that is ready. */
enum tk_status tk_coll_send_whole(struct tk_peer *peer, const struct tk_coll_key *key,
                                  const void *payload, size_t nbytes);
enum tk_status tk_coll_send_chunk(struct tk_peer *peer, const struct tk_coll_key *key,
                                  const void *payload, size_t nbytes, size_t offset);
/* A message without data: a receiver's address, or the number of bytes that were put. */
enum tk_status tk_coll_send_word(struct tk_peer *peer, const struct tk_coll_key *key,
                                 uint64_t word);
size_t tk_coll_chunk_max(void);

/* ---- engine.c ---- */

struct tk_coll;

/* The result of a call of an algorithm. */
enum tk_coll_turn {
    TK_COLL_OVER,  /* the phase */
    TK_COLL_GO_ON, /* another round follows when the sends and receives of this one are complete */
    TK_COLL_LATER  /* the same round again, at a later poll */
};
typedef enum tk_coll_turn tk_coll_algorithm(struct tk_coll *coll);

/* The members that take part in a phase, by index. */
struct tk_coll_group {
    const struct tk_list *ranks; /* team ranks; NULL: they are the indices */
    uint32_t size, me;
    uint32_t root;
    uint32_t stand_in; /* team rank that has the root's index; tk_list_none: as in the list */
};

struct tk_coll_phase {
    tk_coll_algorithm *next; /* NULL: we do not take part */
    uint32_t ticket;         /* in shared memory: see local.h */
    struct tk_coll_group group;
};

enum { tk_coll_phases_max = 7 };

/* State of the collectives of a team. */
struct tk_coll_team {
    uint32_t last;      /* sequence number of the collective that was started last; wraps */
    bool is_node_local; /* members of our neighbourhood meet in shared memory */
    bool is_switched;   /* broadcasts may go over a multicast switch: mcast.h */
    struct tk_local local;
};

struct tk_coll_step {
    struct tk_coll_post post; /* of a send: for the receiver's announcement */
    struct tk_peer *peer;
    char *memory;
    size_t nbytes, sent;
    struct tk_rma put;
    struct tk_rma_state put_state;
    struct tk_op putting;
    uint8_t state;
    bool is_send;
};

/* The most children of a member in a tree as large as a group of a multicast switch. */
enum { tk_coll_below_max = 8 };

struct tk_coll {
    struct tk_coll *next;
    struct tk_op *op;
    struct tk_coll_call call;
    uint32_t sequence;
    struct tk_coll_phase phases[tk_coll_phases_max];
    unsigned phase, phase_count;
    unsigned round; /* of the phase */
    uint32_t stage; /* of the algorithm, zero at the beginning of a phase */

    /* Payload so far: the source, or one of two buffers of its size; buffers[0] is the destination
     * where there is one. */
    char *value;
    char *buffers[2];
    char *scratch;
    size_t scratch_size;

    struct tk_local_op node_local; /* of a phase in shared memory: */
    bool is_node_local;            /* it is in progress */
    bool is_all_node_local; /* the collective consists of such a phase only: it needs no buffers */

    struct tk_coll_post word; /* of a broadcast over a switch: it uses the tree instead; */
    int slot;                 /* at its root: the slot of the ring; */
    bool is_switched;         /* a large one: it went over the switch. */
    /* The destination: ours, and the one that each child in the tree reports for its subtree. */
    uint64_t where[1 + tk_coll_below_max];

    struct tk_coll_step *steps;
    unsigned step_count, step_space;
};

static inline const struct tk_coll_group *tk_coll_group(const struct tk_coll *coll)
{
    return &coll->phases[coll->phase].group;
}

/* Our index as if the root had 0, and back. */
static inline uint32_t tk_coll_turned(const struct tk_coll_group *group, uint32_t index)
{
    return index >= group->root ? index - group->root : index + group->size - group->root;
}

static inline uint32_t tk_coll_turned_back(const struct tk_coll_group *group, uint32_t turned)
{
    uint32_t index = turned + group->root;
    return index < group->size ? index : index - group->size;
}

/* Puts a send to, or a receive from, a member of the group on the list of the round. `tag`
 * distinguishes messages of one pair of ranks in one phase. */
void tk_coll_send(struct tk_coll *coll, uint32_t index, const void *memory, size_t nbytes,
                  uint32_t tag);
void tk_coll_receive(struct tk_coll *coll, uint32_t index, void *memory, size_t nbytes,
                     uint32_t tag);

/* The key of a message from a member of the group. */
struct tk_coll_key tk_coll_key_from(const struct tk_coll *coll, uint32_t index, uint32_t tag);

/* Members above and below us in the binomial tree of the group. */
uint32_t tk_coll_tree_parent(const struct tk_coll_group *group);
unsigned tk_coll_tree_below(const struct tk_coll_group *group, uint32_t below[32]);

/* Memory of the collective; the contents are lost when it grows. */
char *tk_coll_scratch(struct tk_coll *coll, size_t nbytes);

void tk_coll_engine_open(void);
struct tk_coll *tk_coll_take(void);

/* `compose`, called with the lock of the engine, sets sequence number and phases. */
void tk_coll_begin(struct tk_coll *coll, void (*compose)(struct tk_coll *coll));

/* ---- node_local.c: phases in shared memory ---- */

/* The phase for our neighbourhood, which is all of the team or a part of it, and how many tickets
 * it takes. */
struct tk_coll_node_local {
    tk_coll_algorithm *next;
    uint32_t tickets;
};
struct tk_coll_node_local tk_coll_node_local_algorithm(const struct tk_coll *coll,
                                                       enum tk_coll_kind kind, bool is_all);

/* ---- choose.c ---- */

void tk_coll_choose_open(void);
/* Whether the payload goes over a multicast switch, if the team has one. */
bool tk_coll_is_switched(enum tk_coll_kind kind, const struct tk_coll_team *team, size_t nbytes);
tk_coll_algorithm *tk_coll_choose(enum tk_coll_kind kind, size_t nbytes, uint32_t ranks);

/* Whether to use neighbourhoods: false if results must not depend on placement. */
bool tk_coll_by_levels(enum tk_coll_kind kind);

/* ---- the algorithms ---- */

tk_coll_algorithm tk_coll_dissemination, tk_coll_broadcast_binomial, tk_coll_broadcast_scatter;
tk_coll_algorithm tk_coll_broadcast_flat, tk_coll_broadcast_chain, tk_coll_broadcast_switch;
tk_coll_algorithm tk_coll_reduce_binomial, tk_coll_reduce_ring;
tk_coll_algorithm tk_coll_reduce_all_doubling, tk_coll_reduce_all_ring;
tk_coll_algorithm tk_coll_scatter_linear, tk_coll_gather_linear, tk_coll_gather_all_ring;
tk_coll_algorithm tk_coll_exchange_window;

/* The buffer that does not hold the value: where the next operand is received. */
char *tk_coll_spare(struct tk_coll *coll);

/* Makes a buffer the place of the value, with or without the value in it. */
void tk_coll_value_copy(struct tk_coll *coll);
void tk_coll_value_receive(struct tk_coll *coll);

/* The `index`-th of as many parts of the payload as there are members, cut between elements. */
struct tk_coll_part {
    size_t offset, nbytes;
};
struct tk_coll_part tk_coll_part(const struct tk_coll *coll, uint32_t index);

#endif
