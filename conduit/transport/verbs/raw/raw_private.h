/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of raw rails only. */
#ifndef TK_VERBS_RAW_PRIVATE_H
#define TK_VERBS_RAW_PRIVATE_H

#include "transport/verbs/verbs_private.h"
#include "trunkline_rails.h"

/* The rail that the client knows as `rail`. */
const struct tk_rail *tk_raw_rail(const trunkline_rail_t *rail);

#endif
