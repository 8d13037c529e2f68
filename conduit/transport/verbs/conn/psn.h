/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First packet sequence numbers of queue pairs. Both ends compute those of a connection from the
 * job's secret, so no message carries them. A sender that does not know the secret has to guess 24
 * bits for each direction before its packet is taken for the peer's. Where neither end computes the
 * other's number, it comes from the kernel. No lock: the only state is the secret, which is set
 * before the first connection. */
#ifndef TK_VERBS_PSN_H
#define TK_VERBS_PSN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct tk_peer_info;

/* Kinds of connections between two ranks; each has packet numbers of its own. */
enum tk_psn_kind { TK_PSN_MESSAGES, TK_PSN_ATOMICS };

struct tk_psn_pair {
    uint32_t mine, theirs; /* first numbers that we send and that the peer sends */
};

/* `number`: of the connection; `incarnation`: how often it was opened. */
struct tk_psn_pair tk_psn_of_conn(enum tk_psn_kind kind, uint32_t peer, uint32_t number,
                                  uint32_t incarnation);

/* From an XRC sender to the target that a group of ranks shares. */
uint32_t tk_psn_of_xrc(uint32_t sender, uint32_t group, uint32_t number);

/* From the kernel's random source; false: it has no bytes, errno says why. */
bool tk_psn_random(uint32_t *psn);

/* Rank 0 draws the job's secret for its peer info. All take it when the infos are known. */
enum tk_status tk_psn_secret_draw(struct tk_peer_info *info);
void tk_psn_secret_agree(void);

/* Another secret of the job, which follows from the first and does not betray it: connects of
 * librdmacm carry it. */
void tk_psn_cm_secret(uint8_t *secret, uint32_t size);

#endif
