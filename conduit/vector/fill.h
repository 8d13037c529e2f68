/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fills remote memory with one byte value. Large fills send the value, not the bytes. Large fills
 * over the network need the target to poll. Thread-safe in PAR. */
#ifndef TK_FILL_H
#define TK_FILL_H

#include "gasnetex.h"
#include "peer/peer.h"

struct tk_fill {
    struct tk_peer *peer;
    uintptr_t remote;
    size_t nbytes;
    unsigned char value;
};

void tk_fill_blocking(const struct tk_fill *fill);
gex_Event_t tk_fill_start(const struct tk_fill *fill);

/* Counted as a put among the calling thread's implicit operations. */
void tk_fill_implicit(const struct tk_fill *fill);

#endif
