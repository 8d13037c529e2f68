/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The way up from transports to messages. Written once at start-up. */
#include "config.h"

#include "transport/transport.h"

void (*tk_deliver)(struct tk_arrival *arrival);
