/* SPDX-License-Identifier: BSD-3-Clause */
/* The head's end of standard output and standard error: one queue for both, so that their order is
 * kept and nothing is written into the middle of a line. The user's files are never made
 * non-blocking, since they are shared with the parent process. Owns the queue; one thread, no lock.
 */
#ifndef TRUNKLINE_SPAWNER_OUTPUT_H
#define TRUNKLINE_SPAWNER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output_piece;

struct output_stream {
    bool dead;          /* it has no reader any more */
    bool is_closed;     /* the reader has gone, and some output was still to come */
    bool given_up;      /* the reader exists but does not read */
    size_t unread;      /* bytes given up so far */
    bool open_line;     /* the last thing written did not end with a newline */
    uint32_t last_rank; /* the rank that wrote it */
};

struct output {
    struct output_piece *first, **end;
    size_t length;    /* bytes queued */
    uint64_t written; /* bytes written */
    struct output_stream stream[3];
    bool is_discarded; /* output_discard() */
    bool failed; /* output was lost for a reason worth a non-zero status (disk full, no reader);
                  a job that ended well has status 74 then */
};

/* The head does not read from the guard while more than this is queued for the user. */
enum { OUTPUT_BACKLOG = 1 << 20 };

void output_init(struct output *o);

/* Queues whole lines (or the unfinished rest) of one rank for stream 1 or 2. */
void output_add(struct output *o, unsigned stream, uint32_t rank, const void *data, size_t count);

/* The file to poll for POLLOUT; -1 when nothing waits. */
int output_waits_for(const struct output *o);

/* Writes while the front file is writable. Returns a stream whose reader has just gone away, 0 for
 * none. */
unsigned output_write(struct output *o);

/* Drops everything queued and all that is added later. */
void output_discard(struct output *o);

/* Queues a line of the launcher. After output_discard() it is still written, but only if that needs
 * no waiting. */
void output_show(struct output *o, const char *line, size_t length);

/* Drops everything queued, now and later, for the stream at the front of the queue, whose reader
 * blocks the rest, and counts the bytes. Returns the stream. The queue must not be empty. */
unsigned output_give_up(struct output *o);

#endif
