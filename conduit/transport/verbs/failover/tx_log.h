/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notes of what was posted, from which it can be posted again over another link: a ring for each
 * link, in the order of its send queue and as long, so that the place of what is posted next is
 * free. Kept only where links stand in for each other. */
#ifndef TK_VERBS_TX_LOG_H
#define TK_VERBS_TX_LOG_H

#include <string.h>

#include "base/bits.h"
#include "transport/verbs/verbs_private.h"

/* By rail, and they stay until the work is complete. */
struct tk_note_keys {
    const uint32_t *local, *remote;
};

struct tk_note {
    struct tk_work *work; /* NULL: a quiet message */
    uint64_t remote;
    const uint32_t *remote_keys;
    uint64_t part[2];
    uint32_t size[2];
    const uint32_t *keys[2];
    uint8_t opcode; /* enum ibv_wr_opcode */
    uint8_t parts;
    bool is_inline;                       /* all of it is in `bytes`, size[0] of them */
    _Alignas(8) char bytes[tk_quiet_max]; /* may be a struct tk_short */
};

/* Of a link that dies and comes back (failover/reconnect.c). The lock of moves guards it, but for
 * what is said. */
struct tk_life {
    uint32_t
        number; /* how often it was opened again; written with the link's lock, and atomically */
    uint32_t before; /* messages that came over it in the life before */
    uint64_t ended;  /* when it died last; written with the link's lock */
    bool is_wanted;  /* it is to be opened again */
    bool is_asked;   /* the other end is open for the next life */
    bool is_passed;  /* the other end opened it for the next life, and it died before we did */
    bool is_chore;   /* it is counted among the chores for one of these, or for `must_tell` */
    uint32_t to_qp;
    struct tk_port_address to;
    /* Name the link in errors of quiet messages, in lives with even and with odd numbers: an error
     * that a thread still holds from the life before is told by that. */
    struct tk_work quiet[2];
};

/* Of a link: what failover has to know. In the order of the send queue, and as long. */
struct tk_notes {
    struct tk_life life;
    uint32_t next;          /* where in the ring the next one goes */
    uint32_t sent, arrived; /* messages that were posted; that came */
    uint32_t heard;         /* messages of ours that the other end got before it closed */
    int failed;             /* slots of the send queue whose works came back with an error */
    bool is_heard;          /* the other end has closed, and told `heard` */
    bool must_tell;         /* a notice of this link is to be sent */
    struct tk_note ring[];
};

enum tk_status tk_notes_open(struct tk_link *link);
void tk_notes_close(struct tk_link *link);

static inline struct tk_note *tk_note_next(struct tk_link *link, enum ibv_wr_opcode opcode)
{
    struct tk_notes *notes = link->notes;
    struct tk_note *note = &notes->ring[notes->next];
    notes->next = notes->next + 1 == (uint32_t)tk_verbs.depth_pp ? 0 : notes->next + 1;
    notes->sent += opcode == IBV_WR_SEND;
    note->opcode = (uint8_t)opcode;
    return note;
}

/* What is about to be posted, with the link's lock held. */
void tk_note_work(struct tk_work *work, const struct ibv_send_wr *wr,
                  const struct tk_note_keys *keys);

/* The same for a small put or a get in one piece, of which nothing else has to be remembered. The
 * usual word is copied without a call. */
static inline void __attribute__((always_inline))
tk_note_plain(struct tk_work *work, uint64_t remote, const struct ibv_sge *sge,
              enum ibv_wr_opcode opcode, const struct tk_note_keys *keys)
{
    struct tk_note *note = tk_note_next(work->link, opcode);
    const void *local = (const void *)(uintptr_t)sge->addr;
    note->work = work;
    note->remote = remote;
    note->remote_keys = keys->remote;
    note->size[0] = sge->length;
    note->is_inline = opcode == IBV_WR_RDMA_WRITE;
    if (opcode != IBV_WR_RDMA_WRITE) {
        note->parts = 1;
        note->part[0] = sge->addr;
        note->keys[0] = keys->local;
    } else if (sge->length == sizeof(uint64_t)) {
        memcpy(note->bytes, local, sizeof(uint64_t));
    } else {
        memcpy(note->bytes, local, sge->length);
    }
}

/* What lies in quiet_data. Most of it is a few words: copied by a few instructions in line. */
static inline void tk_note_quiet(struct tk_link *link, size_t size)
{
    enum { few = 32 };
    struct tk_note *note = tk_note_next(link, IBV_WR_SEND);
    note->work = NULL;
    note->is_inline = true;
    note->size[0] = (uint32_t)size;
    tk_if_likely(size <= few) memcpy(note->bytes, link->quiet_data.bytes, few);
    else memcpy(note->bytes, link->quiet_data.bytes, sizeof(note->bytes));
}

/* The `back`-th note before the next one. */
struct tk_note *tk_note_back(const struct tk_link *link, uint32_t back);

/* If it is a notice between transports (failover/failover.c); else NULL. */
const struct tk_short *tk_note_as_notice(const struct tk_note *note);

#endif
