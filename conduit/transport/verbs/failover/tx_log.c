/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See failover/tx_log.h. Owns the rings of notes; a link's lock guards its own. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/failover/tx_log.h"

enum tk_status tk_notes_open(struct tk_link *link)
{
    size_t ring = (size_t)tk_verbs.depth_pp * sizeof(struct tk_note);
    link->notes = calloc(1, sizeof(*link->notes) + ring);
    if (!link->notes)
        tk_complain("out of memory for notes of %d operations", tk_verbs.depth_pp);
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

static void repost_work(struct tk_link *link, const struct tk_note *note, struct tk_work *work)
{
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = note->is_inline ? 1 : note->parts};
    sge[0] = (struct ibv_sge){.addr = (uintptr_t)note->bytes, .length = note->size[0]};
    for (int i = 0; i < wr.num_sge && !note->is_inline; i++)
        sge[i] = (struct ibv_sge){
            .addr = note->part[i], .length = note->size[i], .lkey = note->keys[i][link->rail]};
    if (note->opcode != IBV_WR_SEND) {
        wr.wr.rdma.remote_addr = note->remote;
        wr.wr.rdma.rkey = note->remote_keys[link->rail];
    }
    work->link = link;
    tk_work_post(work, &wr, (enum ibv_wr_opcode)note->opcode, note->is_inline ? IBV_SEND_INLINE : 0,
                 note->is_inline ? NULL : note->keys[note->parts - 1], note->remote_keys);
}

/* As few with a completion of their own as there were: works may all wait behind it. */
static bool repost_quiet(struct tk_link *link, const struct tk_note *note)
{
    if (tk_noted_quiet_take(link)) {
        memcpy(link->quiet_data.bytes, note->bytes, note->size[0]);
        tk_quiet_post_noted(link, note->size[0]);
        return true;
    }
    struct tk_work *work = tk_work_take(link, false);
    if (!work)
        return false;
    work->nbytes = note->size[0];
    repost_work(link, note, work);
    return true;
}

bool tk_note_repost(struct tk_link *link, const struct tk_note *note)
{
    if (!note->work)
        return repost_quiet(link, note);
    if (!tk_slot_take(link))
        return false;
    tk_counter_add(&tk_verbs.works_out, -1); /* for the time that failed */
    repost_work(link, note, note->work);
    return true;
}
