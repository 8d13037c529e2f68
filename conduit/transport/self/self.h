/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transport to ourselves. */
#ifndef TK_SELF_H
#define TK_SELF_H

#include "transport/transport.h"

extern const struct tk_transport tk_transport_self;

#endif
