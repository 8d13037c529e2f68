/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The data that a rank writes for the guard of its host, in a file of the session directory that
 * the guard has created, with a slot for each rank of the job. Ranks only open it: creating and
 * removing a file per rank took an eighth of the start-up time of 256 ranks. The file is sparse.
 *
 * The launcher, of the same build, includes this header for the layout. */
#ifndef TK_RANK_SLOT_H
#define TK_RANK_SLOT_H

#include <stddef.h>
#include <stdint.h>

/* Other launchers do not create such a file. There a rank keeps a socket whose name, in the
 * abstract name space, contains the same data: user, pid, rank, ranks, address, and a number for
 * the job, the same in all its ranks. It ends with the process. For printf and scanf. */
#define TK_RANK_SOCKET_NAME "trunkline-rank-%u-%d-%u-%u-%llx-%llx"

#define TK_RANK_SLOTS_NAME "ranks"
#define TK_RANK_STACK_NAME "stack.%u" /* of rank */

struct tk_rank_slot {
    uint64_t wait_page; /* address of its record of waits */
    uint32_t pid;       /* of the process that opened the library; 0: none yet */
    /* Signal on which a thread appends its stack to the file TK_RANK_STACK_NAME, if the guard has
     * created it; 0: the rank does not catch it. */
    uint32_t stack_signal;
    uint32_t unused;
    uint32_t has_left; /* it leaves in order: all ranks agreed on the exit code */
};

static inline long tk_rank_slot_place(uint32_t rank)
{
    return (long)(rank * sizeof(struct tk_rank_slot));
}

#endif
