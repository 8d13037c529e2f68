/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Raw rails as the client's calls see them: implements what trunkline_rails.h describes, with
 * checked arguments. Causes of failures have been logged. */
#ifndef TK_VERBS_RAW_H
#define TK_VERBS_RAW_H

#include <stdbool.h>

#include "base/status.h"
#include "transport/verbs/library.h" /* before trunkline_rails.h, which has headers of verbs */
#include "trunkline_rails.h"

/* Are the settings that name ports valid? */
enum tk_status tk_raw_check(void);

/* At least one, or TK_FAIL. `turn` as in tk_verbs_open(). */
enum tk_status tk_raw_open(const trunkline_rail_t **rails, unsigned *count, uint32_t turn);
void tk_raw_close(void);

/* Does the device allow these options? */
enum tk_status tk_raw_qp_check(const trunkline_domain_t *domain, const trunkline_rail_t *rail,
                               const trunkline_qp_options_t *options);

enum tk_status tk_raw_domain_open(trunkline_domain_t *domain, const trunkline_rail_t *rail,
                                  bool own_context);
void tk_raw_domain_close(trunkline_domain_t *domain);
enum tk_status tk_raw_memory_open(struct ibv_mr **memory, const trunkline_domain_t *domain,
                                  void *address, size_t size, int access);
enum tk_status tk_raw_cq_open(struct ibv_cq **cq, const trunkline_domain_t *domain, uint32_t depth,
                              struct ibv_comp_channel *channel);
enum tk_status tk_raw_qp_open(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                              const trunkline_rail_t *rail, const trunkline_qp_options_t *options);
enum tk_status tk_raw_qp_connect(trunkline_qp_t *qp, const trunkline_address_t *to);
enum tk_status tk_raw_qp_reach(struct ibv_ah **ah, const trunkline_qp_t *qp,
                               const trunkline_address_t *to);
void tk_raw_qp_close(trunkline_qp_t *qp);

#endif
