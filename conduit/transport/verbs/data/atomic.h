/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomics of the device, as functions of the table (struct tk_transport). */
#ifndef TK_VERBS_ATOMIC_H
#define TK_VERBS_ATOMIC_H

#include "base/status.h"
#include "transport/transport.h"

struct tk_peer;

void tk_atomics_allow(void); /* once the rails are chosen */
void tk_atomics_agree(void); /* with the peer infos of all ranks */
enum tk_atomic_scope tk_verbs_atomic_scope(void);
enum tk_status tk_verbs_atomic(struct tk_peer *peer, struct tk_op *op,
                               const struct tk_device_atomic *atomic);
enum tk_status tk_verbs_atomic_open(struct tk_peer *peer, struct tk_atomic_end *ours);
enum tk_status tk_verbs_atomic_connect(struct tk_peer *peer, const struct tk_atomic_end *theirs);
void tk_verbs_atomic_ready(struct tk_peer *peer);

#endif
