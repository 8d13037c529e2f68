/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard's side of the ranks' standard files: a pump forwards one output stream of one rank to
 * the head, a feed forwards the launcher's standard input to rank 0. Each owns its pipe; one
 * thread, no lock. Both stop reading when the other side is slow, so data is buffered in the
 * kernel's pipes only. */
#ifndef TRUNKLINE_SPAWNER_PUMP_H
#define TRUNKLINE_SPAWNER_PUMP_H

#include "lines.h"
#include "spawner/wire/wire.h"

struct pump {
    int fd; /* read end, non-blocking; -1 when closed */
    uint16_t stream;
    struct lines lines;
};

/* Pumps rest while more than this waits for the head. */
enum { PUMP_BACKLOG = 256 << 10 };

/* Forwards the available data, at most one pipe's worth; closes the pump at end of file. */
void pump_transfer(struct pump *p, struct wire_channel *head);

/* Passes on the unfinished line and closes. */
void pump_close(struct pump *p, struct wire_channel *head);

struct feed {
    int fd; /* write end, non-blocking; -1 when closed */
    bool finished;
    struct bytes queue;
};

/* The head is not read while more than this waits for rank 0. */
enum { FEED_BACKLOG = 64 << 10 };

/* Queues bytes; 0 bytes mean end of file. Dropped when rank 0 no longer reads. */
void feed_put(struct feed *f, const void *data, size_t count);

/* Writes what the pipe takes now. */
void feed_write(struct feed *f);
void feed_close(struct feed *f);

#endif
