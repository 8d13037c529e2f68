/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What polls go on with besides completions. */
#ifndef TK_VERBS_HOUSEKEEPING_H
#define TK_VERBS_HOUSEKEEPING_H

/* Connections that are to be moved, and ACKs that found no room in the send queue; while
 * tk_verbs.pending_work is not 0. Takes the locks itself. */
void tk_acks_send(void);

#endif
