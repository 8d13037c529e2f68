/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The board of a host: a file in memory in which one of its ranks, the leader, shows the others
 * what it has gathered, so that not each of them asks the launcher's server for the data of every
 * rank. Editions replace each other; between two of them lies a fence of all ranks, so nobody reads
 * an edition that is being replaced. Tables stay for as long as a process has them mapped. All take
 * editions and tables in the order in which the leader shows them. One thread at a time. */
#ifndef TK_BOARD_H
#define TK_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the others find it: an open file of the leader. The nonce, with which the file begins too,
 * tells it from any other that these numbers may denote in another container. */
struct tk_board_place {
    uint8_t nonce[16];
    int32_t pid;
    int32_t fd; /* -1: there is no board */
};

/* By the leader. No memory, no descriptor: no board, which is no error. */
void tk_board_open(struct tk_board_place *place);

/* By the others. False: it can't be reached from here, which is no error either. */
bool tk_board_join(const struct tk_board_place *place);

/* By the leader: the next edition, of which it keeps no mapping. `write` NULL: the job can't go on.
 * False: there is no memory for it, and the others are left to ask for themselves. */
bool tk_board_publish(size_t size, void (*write)(void *edition, const void *what),
                      const void *what);

/* By the others: waits for the next edition. What is written to it changes it for this process
 * alone. NULL: there is none, and *failed says whether the leader, or the job, has failed. Good
 * until the next call, or tk_board_drop(). */
void *tk_board_wait(size_t *size, bool *failed);
void tk_board_drop(void);

/* A table, read-only in each process: the leader copies it to the board, the others wait for it.
 * The caller unmaps it. NULL: it is not there, and the caller is left with one of its own: there is
 * no board, no memory for it, the leader has gone, or the caller is not whom the function is for.
 */
const void *tk_board_keep(const void *table, size_t size);
const void *tk_board_kept(size_t *size);

#endif
