/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Teams map each of their ranks to an endpoint of a process; so do pairs of endpoints, which
 * clients pass in place of teams. All folders above this one translate ranks by the functions here.
 * A team is read-only between its creation and its destruction, unless a function below says
 * otherwise, so translation takes no lock and is thread-safe.
 *
 * A team costs each of its members constant memory if the job ranks of its members are an
 * arithmetic sequence (list.h), and a table otherwise. */
#ifndef TK_TEAM_H
#define TK_TEAM_H

#include "base/bits.h"
#include "gasnetex.h"
#include "peer/peer.h"
#include "team/list.h"

/* Teams and pairs begin with this. */
struct tk_team_head {
    const uintptr_t *offsets; /* first: read by inline code in clients (trunkline_rma.h) */
    struct tk_peer *peers;    /* entries of the peer table, by rank. NULL: the job ranks are not a
                                 range, or some endpoint, ours included, is not endpoint 0 */
};

/* Some of the ranks of a team, in ascending order, and where we are among them. */
struct tk_team_subset {
    struct tk_list ranks;
    uint32_t mine;
};

enum { tk_team_blob_size = 64 };

struct tk_coll_team;

struct trunkline_tm {
    struct tk_team_head head;
    struct trunkline_ep *ep; /* ours */
    const void *cdata;
    uint64_t id; /* equal on all members, 0 for the team of all processes. The teams that two
                    processes have in common at any time have different ids. If a process has
                    several endpoints in a team, (id, rank) identifies each */
    uint32_t rank;
    gex_Flags_t flags;
    bool is_plural;                /* some process has several members */
    struct tk_list jobranks;       /* by rank */
    struct tk_list endpoints;      /* endpoint indices, by rank */
    struct tk_team_subset nbrhd;   /* members that share memory with us; always has ourselves */
    struct tk_team_subset host;    /* members on our host */
    struct tk_team_subset leaders; /* the lowest member of each neighbourhood; mine: of ours */
    gex_Memvec_t scratch;          /* the client's memory, length 0: none */
    uint32_t exchanges;            /* collective/exchange.c: started so far; wraps */
    struct tk_coll_team *coll;     /* of the collectives, which set it in their hooks */
    uintptr_t *own_offsets;        /* head.offsets if the team owns them */
    struct trunkline_tm *next;     /* in the table of teams */
};

extern TK_HIDDEN struct trunkline_tm tk_tm; /* all processes */

/* The pairs that gex_TM_Pair() returns: entries of a table, whose index encodes the two endpoints.
 * Their address offsets are all tk_unmapped, so that inline code in clients calls the library. The
 * last column stands for all indices that no endpoint has. */
enum { tk_pair_columns = 64 };

_Static_assert((int)tk_endpoints_max < (int)tk_pair_columns,
               "a column for each endpoint, and one more");

struct tk_ep_pair {
    struct tk_team_head head;
};

extern TK_HIDDEN struct tk_ep_pair tk_pairs[tk_endpoints_max * tk_pair_columns];

static inline size_t tk_pair_place(gex_TM_t tm)
{
    return ((uintptr_t)tm - (uintptr_t)tk_pairs) / sizeof(struct tk_ep_pair);
}

static inline bool tk_is_pair(gex_TM_t tm)
{
    return (uintptr_t)tm - (uintptr_t)tk_pairs < sizeof(tk_pairs);
}

static inline gex_TM_t tk_pair(gex_EP_Index_t local, gex_EP_Index_t remote)
{
    return (
        gex_TM_t)(void *)&tk_pairs[local * tk_pair_columns + tk_min(remote, tk_pair_columns - 1)];
}

static inline gex_EP_Index_t tk_pair_remote(gex_TM_t pair)
{
    return tk_pair_place(pair) % tk_pair_columns;
}

static inline gex_EP_Index_t tk_pair_local(gex_TM_t pair)
{
    return (gex_EP_Index_t)(tk_pair_place(pair) / tk_pair_columns);
}

/* ---- Translation. `tm` may be a pair: its ranks are those of the job. Ranks must be in the team,
 * job ranks need not. ---- */

/* Ours. */
static inline gex_Rank_t tk_team_rank(gex_TM_t tm)
{
    return tk_is_pair(tm) ? tk_peers.me : tm->rank;
}

static inline gex_Rank_t tk_team_size(gex_TM_t tm)
{
    return tk_is_pair(tm) ? tk_peers.size : tm->jobranks.count;
}

static inline gex_Rank_t tk_team_jobrank(gex_TM_t tm, gex_Rank_t rank)
{
    return tk_is_pair(tm) ? rank : tk_list_at(&tm->jobranks, rank);
}

static inline gex_EP_Index_t tk_team_ep_index(gex_TM_t tm, gex_Rank_t rank)
{
    return tk_is_pair(tm) ? tk_pair_remote(tm) : (gex_EP_Index_t)tk_list_at(&tm->endpoints, rank);
}

/* GEX_RANK_INVALID if there is none. The lowest one if several endpoints of that process are
 * members. */
gex_Rank_t tk_team_rank_of_jobrank(gex_TM_t tm, gex_Rank_t jobrank);

/* This process's endpoint; NULL: the pair names an endpoint that does not exist. */
struct trunkline_ep *tk_team_ep(gex_TM_t tm);

/* The peers by rank if all endpoints concerned, ours included, are endpoints 0 and the job ranks a
 * range: for fast paths. Otherwise NULL. */
static inline struct tk_peer *tk_team_peers(gex_TM_t tm)
{
    return ((const struct tk_team_head *)(const void *)tm)->peers;
}

struct tk_peer *tk_team_peer(gex_TM_t tm, gex_Rank_t rank);

/* The peer that (tm, rank) names. */
static inline struct tk_peer *tk_peer_of(gex_TM_t tm, gex_Rank_t rank)
{
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_likely(peers) return &peers[rank];
    return tk_team_peer(tm, rank);
}

/* The segment bound to the endpoint that (tm, rank) names, as far as it is known here. */
static inline struct tk_bound tk_bound_by(gex_TM_t tm, gex_Rank_t rank)
{
    return tk_bound_of(tk_team_jobrank(tm, rank), tk_team_ep_index(tm, rank));
}

/* ---- Creation and destruction of this member's part: no communication ---- */

struct tk_team_plan {
    const uint32_t *jobranks;  /* by rank */
    const uint32_t *endpoints; /* by rank; NULL: all 0 */
    const void *blobs;         /* by rank, tk_team_blob_size bytes each */
    uint64_t id;
    uint32_t count;
    uint32_t rank;
    struct trunkline_ep *ep;
    gex_Flags_t flags;
    gex_Memvec_t scratch;
};

struct trunkline_tm *tk_team_make(const struct tk_team_plan *plan);
void tk_team_drop(struct trunkline_tm *tm);

/* An id for a team whose rank 0 is in this process. */
uint64_t tk_team_next_id(void);

/* This process's team of an id and rank; NULL: there is none (yet, or any more). For handlers;
 * takes a lock. */
struct trunkline_tm *tk_team_find(uint64_t id, gex_Rank_t rank);

/* Sets up the team of all processes and the pairs. Before any client thread has a handle, after the
 * topology is known. */
void tk_teams_open(void);

/* Functions that manage another folder's state in a team. Set before tk_teams_open(). */
struct tk_team_hooks {
    /* Fills in the contribution of this process to a new team: `blob` is zeroed, aligned for
     * any type and reaches all members. */
    void (*fill)(void *blob);
    /* Called when the team has been created on this member. Other members may call it earlier or
     * later; a member sends messages for the team only after every member has returned from this.
     * `blobs` by rank, tk_team_blob_size bytes each; NULL for the team of all processes. */
    void (*open)(struct trunkline_tm *tm, const void *blobs);
    /* The last use of the team has completed here. */
    void (*close)(struct trunkline_tm *tm);
};
void tk_team_use_hooks(const struct tk_team_hooks *hooks);
void tk_team_fill_blob(void *blob);

#endif
