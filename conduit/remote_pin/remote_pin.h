/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets to memory of other ranks that is not registered as a whole: segments LARGE and
 * EVERYTHING. A region of it is registered when it is asked for, by the rank that it belongs to,
 * and stays so until the requester gives it up for another (remote_pin/hoses.h). What can't be
 * registered travels in messages, and so does what is small.
 *
 * EVERYTHING: memory may go away at any time, and only the rank that it belongs to learns of it
 * (see firehose/monitor.c). So a region serves the one transfer that it was asked for, and is asked
 * for again by the next; the answer says that it is good, and comes from that rank's cache.
 *
 * A word in registered memory that the other rank raises before an unmapping call of its returns,
 * read by RDMA beside each transfer, would spare the answer, but not be right. A rank that reads
 * such a word learns what that rank's library knows, and with two threads there that is too little:
 * one thread may be given the addresses that the other is still in the middle of unmapping, and
 * name them to us, before the kernel has reported the event. Only a system call of that rank can
 * find out, and it can't promise in advance to have one thread only. Besides, a put would have to
 * wait for the word, for what was moved away (mremap) would be written to at its new address. So
 * there is an answer, which serves both purposes. */
#ifndef TK_REMOTE_H
#define TK_REMOTE_H

#include "base/status.h"
#include "transport/transport.h"

/* Before anything can arrive. */
void tk_remote_open(void);

/* After the network is connected and the cache open: its peers are reached this way over it, by
 * the table that is returned. NULL: it failed, which was logged. */
const struct tk_transport *tk_remote_connect(const struct tk_transport *network);

#endif
