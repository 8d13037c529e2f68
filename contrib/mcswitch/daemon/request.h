/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What members ask for, read from frames and judged. Owns nothing. */
#ifndef MCD_REQUEST_H
#define MCD_REQUEST_H

#include "daemon/control.h"

/* What TK_MCSW_INFO answers. */
void mcd_request_open(const struct tk_mcsw_info *info);
extern const struct mcd_control_calls mcd_request_calls;

#endif
