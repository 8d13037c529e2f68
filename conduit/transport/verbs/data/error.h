/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens when a work request, a receive or a registration fails: another connection takes
 * over, or the job ends with a message. */
#ifndef TK_VERBS_ERROR_H
#define TK_VERBS_ERROR_H

#include <stddef.h>

#include "transport/verbs/library.h"

struct tk_conn;
struct tk_device;
struct tk_peer;
struct tk_tx;

void tk_post_failed(struct tk_tx *tx, int error);
void tk_tx_failed(struct tk_tx *tx, const struct ibv_wc *wc);
void tk_datagram_failed(struct tk_tx *tx, const struct ibv_wc *wc);
void tk_recv_failed(struct tk_conn *conn, const struct ibv_wc *wc);
void tk_buffers_exhausted(struct tk_conn *conn);
void tk_conns_exhausted(const struct tk_peer *peer); /* no connection reaches it any more */
_Noreturn void tk_wire_error(struct tk_conn *conn, const char *what);
void tk_explain_registration(const struct tk_device *device, const char *what, size_t size,
                             int error);
void tk_warn_registration(const struct tk_device *device, size_t size,
                          int error); /* for a transfer */

#endif
