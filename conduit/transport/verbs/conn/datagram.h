/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams between ranks that are not connected: one unreliable queue pair for each rail that
 * needs one. They use the completion queue of messages, so a rank that polls for messages, or
 * sleeps until one arrives, receives datagrams at no further cost. No message starts with a
 * datagram's first byte, so the code that handles malformed messages recognises datagrams. */
#ifndef TK_VERBS_DATAGRAM_H
#define TK_VERBS_DATAGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "peer/peer.h"
#include "transport/verbs/conn/conn.h"

struct tk_buffer;
struct tk_device;
struct tk_incarnation_word;
struct tk_tx;

enum {
    tk_datagram_mark = 0xff, /* the first byte; not a value of enum tk_message_kind */
    tk_datagram_version = 2,
    tk_datagram_magic = 0x546b5544,
    tk_datagram_front = 40 /* bytes before a datagram that the device may fill: IBA 11.4.2.1 */
};

/* With up to 50 connections to a peer it fits the smallest packet (256 bytes). */
struct tk_datagram {
    uint8_t mark;
    uint8_t what; /* enum tk_handshake_message or tk_incarnation_message */
    uint16_t version;
    uint32_t magic;
    uint32_t from, to; /* ranks */
    uint32_t epoch;    /* how often connections of these two ranks were closed */
    uint32_t number;   /* of a question to close; for this, out and owed see conn/incarnation.h */
    int32_t out, owed;
    uint32_t conns;
    uint32_t credits; /* requests that the other end may always have in flight to us */
    uint8_t secret[tk_job_secret_size];
    uint32_t qps[tk_conns_max]; /* `conns` of them, or what conn/xrc.h describes */
};

/* Start-up calls tk_datagrams_prepare() before completion queues are created, tk_datagrams_open()
 * before the peer infos are exchanged, and tk_datagrams_connect() after that. */
enum tk_status tk_datagrams_prepare(void);
enum tk_status tk_datagrams_open(struct tk_peer_info *info);
enum tk_status tk_datagrams_connect(void);
void tk_datagrams_close(void);

/* The largest number of datagrams that a device may complete at once. */
int tk_datagrams_received(const struct tk_device *device);

/* Does the buffer belong to datagrams? Then tk_datagram_take() checks and copies its contents and
 * posts it again; it returns false if the datagram is malformed, of another job or for another
 * rank. */
static inline bool tk_is_datagram_conn(const struct tk_conn *conn)
{
    return !conn->peer;
}

bool tk_is_datagram(const struct tk_buffer *buffer);
bool tk_datagram_take(struct tk_buffer *buffer, uint32_t size, struct tk_datagram *datagram);

/* Do our ports have the GIDs of the paths to this rank? They lack them while an address is removed
 * from an interface: then connecting waits. */
bool tk_datagram_may_connect(uint32_t rank);
/* Has one been missing for so many seconds? Logs it. */
bool tk_datagram_address_is_lost(uint64_t now, double limit);

/* Uses the rails in turn; `conns` may have no queue pairs or be NULL. False: no space, or no
 * GID, now; nothing was sent. */
bool tk_datagram_send(uint32_t to, const struct tk_incarnation_word *word,
                      const struct tk_conn *conns);

/* The descriptor of a datagram that failed: it counts as lost. */
bool tk_is_datagram_sent(const struct tk_tx *tx);

#endif
