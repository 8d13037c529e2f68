/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams between ranks that are not connected: one unreliable queue pair for each rail that has
 * such. They come through the completion queue of messages, so that polling for those, or sleeping
 * until one comes, receives them at no further cost: their first byte is not that of any message,
 * so they are recognised where malformed messages are handled. */
#ifndef TK_VERBS_DATAGRAM_H
#define TK_VERBS_DATAGRAM_H

#include "transport/verbs/conn/incarnation.h"
#include "transport/verbs/verbs_private.h"

enum {
    tk_datagram_mark = 0xff, /* the first byte; no enum tk_message_kind */
    tk_datagram_version = 2,
    tk_datagram_magic = 0x546b5544,
    tk_datagram_front = 40 /* bytes before a datagram that the device may fill: IBA 11.4.2.1 */
};

/* Shorter than the smallest packet (256 bytes) up to 50 connections to a peer. */
struct tk_datagram {
    uint8_t mark;
    uint8_t what; /* enum tk_handshake_message or tk_incarnation_message */
    uint16_t version;
    uint32_t magic;
    uint32_t from, to; /* ranks */
    uint32_t epoch;    /* connections of these two that are over */
    uint32_t number;   /* of a question to close; see conn/incarnation.h, also for these two: */
    int32_t out, owed;
    uint32_t conns;
    uint32_t credits; /* requests that the other end may have under way to this one for good */
    uint8_t secret[tk_job_secret_size];
    uint32_t qps[tk_conns_max]; /* `conns` of them, or what conn/xrc.h says */
};

/* Before completion queues are made; before the peer infos are exchanged; once they are. */
enum tk_status tk_datagrams_prepare(void);
enum tk_status tk_datagrams_open(struct tk_peer_info *info);
enum tk_status tk_datagrams_connect(void);
void tk_datagrams_close(void);

/* Completions of receives that a device may have at once. */
int tk_datagrams_received(const struct tk_device *device);

/* Is the buffer one of these? Then what it has is judged and copied, and it is posted again. False
 * too if the datagram is not sound, or not of this job for this rank. */
static inline bool tk_is_datagram_conn(const struct tk_conn *conn)
{
    return !conn->peer;
}

bool tk_is_datagram(const struct tk_buffer *buffer);
bool tk_datagram_take(struct tk_buffer *buffer, uint32_t size, struct tk_datagram *datagram);

/* Over one rail after the other; `conns` may have no queue pairs or be NULL. False: no room now;
 * nothing was sent. */
bool tk_datagram_send(uint32_t to, const struct tk_incarnation_word *word,
                      const struct tk_conn *conns);

/* The work of a datagram that failed: it counts as lost. */
bool tk_is_datagram_sent(const struct tk_tx *tx);

#endif
