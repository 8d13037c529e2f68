/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of a channel, which local_team.c hands out and local.c uses. Its owner alone writes
 * it. */
#ifndef TK_LOCAL_PRIVATE_H
#define TK_LOCAL_PRIVATE_H

#include "collective/local.h"
#include "transport/neighbour.h"

/* Flag and acknowledgement have a line each: one is read by members that the owner sends to, the
 * other by members that send to it, and a barrier needs only the first. Data is at a multiple of
 * 16, the largest alignment of a built-in type. */
struct tk_local_slot {
    _Alignas(TK_CACHE_LINE) _Atomic uint64_t word; /* pieces published */
    uint64_t reserved;
    char data[tk_local_inline]; /* all of a small operation, or a struct tk_local_place */
    _Alignas(TK_CACHE_LINE) _Atomic uint64_t ack; /* pieces of others that are consumed */
};

/* Where the bytes of a large operation lie: in memory of their owner, or in pieces in the slot's
 * buffer (address 0). */
struct tk_local_place {
    uint64_t address; /* the owner's */
    uint64_t inode;   /* of the segment; others compare it with the one they know */
    uint32_t endpoint;
};
_Static_assert(sizeof(struct tk_local_place) <= tk_local_inline, "it fits a slot");

struct tk_local_channel {
    _Alignas(TK_CACHE_LINE) _Atomic uint64_t retired; /* now and then */
    struct tk_local_slot slots[tk_local_slots];
};

enum { tk_local_buffers_at = 4096 };
_Static_assert(sizeof(struct tk_local_channel) <= tk_local_buffers_at, "buffers begin behind it");
_Static_assert(tk_local_buffers_at + tk_local_slots * tk_local_buffer == tk_scratch_channel,
               "transports know how much that is");

static inline char *tk_local_buffer_at(struct tk_local_channel *channel, uint32_t ticket)
{
    return (char *)channel + tk_local_buffers_at +
           (size_t)(ticket % tk_local_slots) * tk_local_buffer;
}

static inline struct tk_local_slot *tk_local_slot_at(struct tk_local_channel *channel,
                                                     uint32_t ticket)
{
    return &channel->slots[ticket % tk_local_slots];
}

/* The least value of a word of this member once the operation has made progress; the number of
 * pieces is added to it. */
static inline uint64_t tk_local_stamp(const struct tk_local_member *member, uint32_t ticket)
{
    return (member->base + ticket + 1) << 32;
}

/* The value of `retired` when all tickets below this one are done with. */
static inline uint64_t tk_local_retired_stamp(const struct tk_local_member *member, uint32_t ticket)
{
    return (member->base + ticket) << 32;
}

/* Whether memory of ours lies in a segment that all neighbours know and can map; sets *place then,
 * and leaves it unchanged otherwise. */
bool tk_local_place_of(const void *address, size_t nbytes, struct tk_local_place *place);

/* Such memory of another member at our address; NULL: not known here yet, or it can't be mapped,
 * which ends the job. */
const char *tk_local_place_map(const struct tk_local_member *member,
                               const struct tk_local_place *place);

/* Maps the channel of a member; NULL: mapping failed, which ends the job, or the job is ending. */
struct tk_local_channel *tk_local_map(struct tk_local_member *member);

static inline struct tk_local_channel *tk_local_channel_of(const struct tk_local *local, uint32_t i)
{
    struct tk_local_member *member = &local->members[i];
    tk_if_unlikely(!member->at) return tk_local_map(member);
    return member->at;
}

#endif
