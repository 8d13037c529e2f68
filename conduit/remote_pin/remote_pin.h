/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets to memory of other ranks that is not registered as a whole: segments LARGE and
 * EVERYTHING. The rank that owns the memory registers a region on request, and keeps it registered
 * until the requester gives it up for another (remote_pin/hoses.h). Small transfers, and memory
 * that can't be registered, travel in messages.
 *
 * EVERYTHING: memory may be unmapped at any time, and only its owner learns of it (see
 * firehose/monitor.c). So a region serves only the transfer for which it was requested, and the
 * next transfer requests it again; the answer confirms that it is valid, and comes from the owner's
 * cache.
 *
 * An alternative was considered: a word in registered memory that the owner raises before an
 * unmapping call returns, read by RDMA beside each transfer. It would save the answer, but it is
 * not correct. A reader learns only what the owner's library knows, and with two threads that is
 * too little: one thread may be given addresses that the other is still unmapping, and name them to
 * us, before the kernel has reported the event. Only a system call of the owner can detect that,
 * and the owner can't guarantee to have one thread only. Besides, a put would have to wait for the
 * word, because after mremap() it would write to memory that was moved. The answer serves both
 * purposes. */
#ifndef TK_REMOTE_H
#define TK_REMOTE_H

#include "base/status.h"
#include "transport/transport.h"

/* Call it before anything can arrive. */
void tk_remote_open(void);

/* Call it after the network is connected and the cache is open: returns the table through which the
 * network's peers are reached. NULL: it failed, which was logged. */
const struct tk_transport *tk_remote_connect(const struct tk_transport *network);

#endif
