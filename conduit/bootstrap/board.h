/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The board of a host: a file in memory in which one rank, the leader, shares the data that it has
 * gathered with the others, so that they need not ask the launcher's server for the data of every
 * rank. Editions replace each other; a fence of all ranks separates them, so no rank reads an
 * edition that is being replaced. Tables exist as long as a process has them mapped. All ranks take
 * editions and tables in the order in which the leader publishes them. One thread at a time. */
#ifndef TK_BOARD_H
#define TK_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the others find it: an open file of the leader. The file begins with the same nonce, which
 * distinguishes it from another file that these numbers may denote in another container. */
struct tk_board_place {
    uint8_t nonce[16];
    int32_t pid;
    int32_t fd; /* -1: there is no board */
};

/* Called by the leader. Lack of memory or descriptors means no board, which is not an error. */
void tk_board_open(struct tk_board_place *place);

/* Called by the others. False: it can't be opened from here, which is not an error either. */
bool tk_board_join(const struct tk_board_place *place);

/* Called by the leader: publishes the next edition, and keeps no mapping of it. `write` NULL: the
 * job can't continue. False: there is no memory for it, and the others have to ask the server
 * themselves. */
bool tk_board_publish(size_t size, void (*write)(void *edition, const void *what),
                      const void *what);

/* Called by the others: waits for the next edition. Writes to it are private to this process. NULL:
 * there is none, and *failed says whether the leader, or the job, has failed. Valid until the next
 * call, or tk_board_drop(). Calls `poll`, which may be NULL, as tk_bootstrap_fence() does. */
void *tk_board_wait(size_t *size, bool *failed, void (*poll)(void));
void tk_board_drop(void);

/* A table, read-only in each process: the leader copies it to the board, the others wait for it.
 * The caller unmaps it. NULL: not available, and the caller needs a table of its own: there is no
 * board, no memory for it, the leader has ended, or the function is not for this rank. *where is
 * its position, for tk_board_copy(). */
const void *tk_board_keep(const void *table, size_t size, uint64_t *where);
const void *tk_board_kept(size_t *size, uint64_t *where);

/* Of a table that was kept there: a copy to which this process may write. Its pages are those of
 * the table until they are written. NULL: not available. */
void *tk_board_copy(uint64_t where, size_t size);

/* A barrier of the `ranks` that have joined, once. False, in all of them: one has not come for
 * some seconds, because it is late, has ended or could not join; then another barrier is needed. */
bool tk_board_meet(uint32_t ranks);

#endif
