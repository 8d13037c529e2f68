/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See failover/tx_log.h. Owns the rings of log entries; a connection's lock guards its own. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum tk_status tk_tx_log_open(struct tk_conn *conn)
{
    if (!conn->tx_log)
        conn->tx_log = calloc(1, tk_tx_log_bytes((size_t)tk_verbs.depth_pp));
    if (!conn->tx_log)
        tk_log_error("out of memory for a log of %d operations", tk_verbs.depth_pp);
    return conn->tx_log ? TK_OK : TK_FAIL;
}

void tk_tx_log_reset(struct tk_conn *conn)
{
    struct tk_tx_log *tx_log = conn->tx_log;
    memset(&tx_log->incarnation, 0, offsetof(struct tk_log_incarnation, name));
    memset(&tx_log->next, 0, offsetof(struct tk_tx_log, ring) - offsetof(struct tk_tx_log, next));
}

void tk_tx_log_close(struct tk_conn *conn)
{
    free(conn->tx_log);
    conn->tx_log = NULL;
}

struct tk_tx_entry *tk_tx_entry_back(const struct tk_conn *conn, uint32_t back)
{
    uint32_t depth = (uint32_t)tk_verbs.depth_pp;
    return &conn->tx_log->ring[(conn->tx_log->next + depth - back) % depth];
}

static void keep_bytes(struct tk_tx_entry *entry, const struct ibv_send_wr *wr)
{
    entry->size[0] = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *sge = &wr->sg_list[i];
        memcpy(entry->bytes + entry->size[0], (void *)(uintptr_t)sge->addr, sge->length);
        entry->size[0] += sge->length;
    }
}

static void keep_places(struct tk_tx_entry *entry, const struct tk_tx *tx,
                        const struct ibv_send_wr *wr, const struct tk_tx_entry_keys *keys)
{
    entry->parts = (uint8_t)wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++) {
        entry->part[i] = wr->sg_list[i].addr;
        entry->size[i] = wr->sg_list[i].length;
        entry->keys[i] =
            i == 0 && tx->kind == TK_TX_GENERAL && tx->bounce ? tx->bounce->keys : keys->local;
    }
}

void tk_tx_entry_work(struct tk_tx *tx, const struct ibv_send_wr *wr,
                      const struct tk_tx_entry_keys *keys)
{
    struct tk_tx_entry *entry = tk_tx_entry_next(tx->conn, wr->opcode);
    entry->tx = tx;
    entry->is_inline = wr->send_flags & IBV_SEND_INLINE;
    entry->remote = wr->opcode == IBV_WR_SEND ? 0 : wr->wr.rdma.remote_addr;
    entry->remote_keys = keys->remote;
    if (entry->is_inline)
        keep_bytes(entry, wr);
    else
        keep_places(entry, tx, wr, keys);
}

const struct tk_short *tk_tx_entry_as_notice(const struct tk_tx_entry *entry)
{
    if (entry->opcode != IBV_WR_SEND)
        return NULL;
    /* the message's address, which is not the start of the buffer if the client built it there */
    const void *bytes = entry->is_inline ? entry->bytes : (const void *)(uintptr_t)entry->part[0];
    const struct tk_short *message = bytes;
    return message->head.kind == TK_NOTICE ? message : NULL;
}
