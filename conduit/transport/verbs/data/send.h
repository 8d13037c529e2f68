/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages as functions of the table (struct tk_transport), and how failover/ and conn/ send
 * theirs. */
#ifndef TK_VERBS_SEND_H
#define TK_VERBS_SEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "transport/transport.h"

struct tk_region;

struct tk_conn;
struct tk_peer;
struct tk_tx;

enum {
    tk_inline_max = 512 /* inline sends are gathered on the stack; larger ones gain on no device */
};

/* data/send.c */
enum tk_status tk_verbs_send(struct tk_peer *peer, struct tk_outgoing *message);
enum tk_status tk_verbs_send_short(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy);
enum tk_status tk_verbs_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy);
/* For Mediums whose whole payload is copied. */
enum tk_status tk_verbs_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                    const void *payload, size_t nbytes, tk_medium_busy *busy);
enum tk_status tk_logged_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                     const void *payload, size_t nbytes, tk_medium_busy *busy);
enum tk_status tk_logged_send_short(struct tk_peer *peer, struct tk_message_head head,
                                    const int32_t *args, tk_short_busy *busy);
enum tk_status tk_logged_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                    tk_small_busy *busy);
enum tk_status tk_message_post(struct tk_conn *conn, struct tk_outgoing *message);

void tk_message_post_tx(struct tk_conn *conn, struct tk_tx *tx, struct tk_outgoing *message);

/* Posts the message in unsignaled_data, whose slot is taken, and logs it. */
void tk_unsignaled_post_logged(struct tk_conn *conn, size_t size);

/* data/send_long.c */
bool tk_verbs_send_long(struct tk_peer *peer, struct tk_outgoing *m, uintptr_t remote);
bool tk_logged_send_long(struct tk_peer *peer, struct tk_outgoing *m, uintptr_t remote);

/* data/am_reserve.c */
enum tk_status tk_verbs_reserve(struct tk_am_reservation *reservation, bool place, bool buffer);
enum tk_status tk_verbs_reserve_place(struct tk_am_reservation *reservation);
enum tk_status tk_verbs_send_reserved(struct tk_am_reservation *reservation,
                                      struct tk_outgoing *message);
void tk_verbs_release(struct tk_am_reservation *reservation, bool keep_credit);
void tk_verbs_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket);

/* data/gather.c */
unsigned tk_verbs_gather_max(const struct tk_region *home, const void *at, size_t nbytes);
enum tk_status tk_verbs_gather(struct tk_peer *peer, const struct tk_gather *gather);

#endif
