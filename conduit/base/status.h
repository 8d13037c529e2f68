/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What internal functions return. */
#ifndef TK_STATUS_H
#define TK_STATUS_H

enum tk_status {
    TK_OK = 0,
    TK_BUSY, /* no room now: nothing was done, try again after a poll */
    TK_FAIL  /* failed, and the cause has been printed */
};

#endif
