/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bootstrap: rank and size, and exchange of small blobs with all other ranks before there is a
 * network. Uses PMIx only, with any server (gasnetrun_ibv, mpirun, srun, prte). Single-threaded
 * use, except tk_bootstrap_abort(). */
#ifndef TK_BOOTSTRAP_H
#define TK_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct tk_bootstrap {
    uint32_t rank, size;
    uint32_t local_size; /* ranks that the launcher put on this host; 0: it does not say */
    uint32_t *local;     /* these ranks, ascending */
    bool alone;          /* no PMIx server: a job of one */
};

extern struct tk_bootstrap tk_bootstrap;

/* Of the list of `local` ranks. */
static inline size_t tk_bootstrap_local_bytes(size_t local)
{
    return local * sizeof(uint32_t);
}

/* Connects to the PMIx server. Fails when a launcher of several ranks exists that can't be reached.
 */
enum tk_status tk_bootstrap_open(void);

/* Puts a blob under `key` for all ranks to get after the next fence. */
enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size);

/* Waits for all ranks; what was put before is visible afterwards. Calls `poll` (may be NULL) while
 * waiting so that messages go on being served. `deadline` is on tk_now()'s clock, 0 for none.
 * TK_BUSY when it passed: the fence is then still pending. One that is pending, here or further up
 * on this stack (a rank leaves while it waits for another fence), is gone on with: a rank has one
 * at a time, and every waiter waits for that one. */
enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline);

/* Copies what `rank` put: malloc'ed, size in *size. Call only after a fence. */
enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size);

/* The same of a rank that may have put nothing, or be gone: TK_FAIL then, at once and without a
 * word. Also when it put more or less than `size` bytes. */
enum tk_status tk_bootstrap_peek(uint32_t rank, const char *key, void *blob, size_t size);

/* Asks the launcher to end the whole job with `code`; returns once the request is on its way (or
 * can't be). */
void tk_bootstrap_abort(int code, const char *why);

/* The fence that ranks leave by. As tk_bootstrap_fence(), but it does not wait for those that left
 * before, by tk_bootstrap_close_early(), and without them it is TK_OK too. Nor is a rank missed
 * that died in it: the launcher reports them. */
enum tk_status tk_bootstrap_part(void (*poll)(void), uint64_t deadline);

/* Our launcher's PMIx server may be stuck by the time that a rank leaves: notifies the launcher in
 * another way that this rank leaves in order, with a code that all agree on. True if it will know.
 * Under other launchers there is no such way. */
bool tk_bootstrap_leave_mark(void);

/* Orderly good-bye; no bootstrap call afterwards. */
void tk_bootstrap_close(void);

/* The same of a rank that leaves while others go on: the next fence counts it as come. */
void tk_bootstrap_close_early(void);

#endif
