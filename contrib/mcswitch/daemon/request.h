/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses and checks the requests of members. Owns nothing. */
#ifndef MCD_REQUEST_H
#define MCD_REQUEST_H

#include "daemon/control.h"

/* The answer to TK_MCSW_INFO. */
void mcd_request_open(const struct tk_mcsw_info *info);
extern const struct mcd_control_calls mcd_request_calls;

#endif
