/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects themselves. No lock: fields are written before clients see the handles. */
#include "config.h"

#include "team/objects.h"

struct trunkline_client tk_client;
struct trunkline_segment tk_segment = {.client = &tk_client};
struct trunkline_ep tk_ep = {.client = &tk_client};
struct trunkline_tm tk_tm = {.ep = &tk_ep};
