/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of raw rails only. */
#ifndef TK_VERBS_RAW_PRIVATE_H
#define TK_VERBS_RAW_PRIVATE_H

#include "trunkline_rails.h"

struct tk_rail;

/* The rail that the client knows as `rail`. */
const struct tk_rail *tk_raw_rail(const trunkline_rail_t *rail);

#endif
