/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Status returned by internal functions. */
#ifndef TK_STATUS_H
#define TK_STATUS_H

enum tk_status {
    TK_OK = 0,
    TK_BUSY, /* no resources now: nothing was done, try again after a poll */
    TK_FAIL  /* failed; the cause has been printed */
};

#endif
