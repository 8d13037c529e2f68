/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Moves queue pairs through their states (IBA 10.3.1). Functions return 0 or an errno. No state, no
 * lock. */
#ifndef TK_VERBS_QP_STATE_H
#define TK_VERBS_QP_STATE_H

#include <errno.h>
#include <stdint.h>

#include "transport/verbs/library.h"

struct tk_path;
struct tk_rail;

struct tk_route {
    const struct tk_rail *rail;
    const struct tk_path *path; /* NULL for datagrams */
    enum ibv_qp_type type;
    uint32_t to_qp, to_psn, psn;
};
enum { tk_datagram_key = 0x7472756e }; /* of the client's queue pairs */
int tk_qp_init(struct ibv_qp *qp, const struct tk_rail *rail, enum ibv_qp_type type, int access);
int tk_qp_rtr(struct ibv_qp *qp, const struct tk_route *route);
int tk_qp_rts(struct ibv_qp *qp, const struct tk_route *route);
/* Reads the row of our GID from the port's table, which may have changed. 0, or tk_gid_lost: it is
 * in no row. */
enum { tk_gid_lost = EADDRNOTAVAIL };
int tk_route_set(struct ibv_ah_attr *ah, const struct tk_rail *rail, const struct tk_path *path);

/* Limits that both ends agree on and that settings define, for connections whose other attributes
 * come from librdmacm. */
void tk_qp_rtr_limits(struct ibv_qp_attr *attr, const struct tk_route *route);
void tk_qp_rts_limits(struct ibv_qp_attr *attr, const struct tk_route *route);

#endif
