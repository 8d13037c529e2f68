/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See failover/tx_log.h. Owns the rings of notes; a link's lock guards its own. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "transport/verbs/failover/tx_log.h"

enum tk_status tk_notes_open(struct tk_link *link)
{
    size_t ring = (size_t)tk_verbs.depth_pp * sizeof(struct tk_note);
    link->notes = calloc(1, sizeof(*link->notes) + ring);
    if (!link->notes)
        tk_log_error("out of memory for notes of %d operations", tk_verbs.depth_pp);
    return link->notes ? TK_OK : TK_FAIL;
}

void tk_notes_close(struct tk_link *link)
{
    free(link->notes);
    link->notes = NULL;
}

struct tk_note *tk_note_back(const struct tk_link *link, uint32_t back)
{
    uint32_t depth = (uint32_t)tk_verbs.depth_pp;
    return &link->notes->ring[(link->notes->next + depth - back) % depth];
}

static void keep_bytes(struct tk_note *note, const struct ibv_send_wr *wr)
{
    note->size[0] = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *sge = &wr->sg_list[i];
        memcpy(note->bytes + note->size[0], (void *)(uintptr_t)sge->addr, sge->length);
        note->size[0] += sge->length;
    }
}

static void keep_places(struct tk_note *note, const struct tk_work *work,
                        const struct ibv_send_wr *wr, const struct tk_note_keys *keys)
{
    note->parts = (uint8_t)wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++) {
        note->part[i] = wr->sg_list[i].addr;
        note->size[i] = wr->sg_list[i].length;
        note->keys[i] =
            i == 0 && !work->is_plain && work->bounce ? work->bounce->keys : keys->local;
    }
}

void tk_note_work(struct tk_work *work, const struct ibv_send_wr *wr,
                  const struct tk_note_keys *keys)
{
    struct tk_note *note = tk_note_next(work->link, wr->opcode);
    note->work = work;
    note->is_inline = wr->send_flags & IBV_SEND_INLINE;
    note->remote = wr->opcode == IBV_WR_SEND ? 0 : wr->wr.rdma.remote_addr;
    note->remote_keys = keys->remote;
    if (note->is_inline)
        keep_bytes(note, wr);
    else
        keep_places(note, work, wr, keys);
}

const struct tk_short *tk_note_as_notice(const struct tk_note *note)
{
    if (note->opcode != IBV_WR_SEND)
        return NULL;
    const void *bytes = note->is_inline ? note->bytes : note->work->bounce->data;
    const struct tk_short *message = bytes;
    return message->head.kind == TK_NOTICE ? message : NULL;
}
