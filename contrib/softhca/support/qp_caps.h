/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which sizes of queue pairs a profile accepts, and what it makes of them. Owns nothing. */
#ifndef SHCA_QP_CAPS_H
#define SHCA_QP_CAPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "profiles.h"

/* 0, or the errno with which the device refuses these sizes. */
int shca_qp_caps_check(const struct shca_profile *p, const struct ibv_qp_init_attr *a);
/* The sizes that the device returns for accepted ones: at least as large, unless it has no inline
 * data. */
void shca_qp_caps_round(const struct shca_profile *p, struct ibv_qp_init_attr *a, bool shared);
/* The blocks that a send request takes with the longest list and the most inline data; wqe_block is
 * not 0. */
uint32_t shca_qp_wqe_blocks(const struct shca_profile *p, const struct ibv_qp_cap *c);

#endif
