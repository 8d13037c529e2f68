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

/* What this rank has asked of the launcher's server, for GASNET_VERBOSEENV and tests. */
struct tk_bootstrap_counts {
    uint32_t puts, gets, fences;
    uint64_t bytes_put, bytes_got;
};

struct tk_bootstrap {
    uint32_t rank, size;
    uint32_t local_size; /* ranks that the launcher put on this host; 0: it does not say */
    uint32_t *local;     /* these ranks, ascending */
    bool alone;          /* no PMIx server: a job of one */
    struct tk_bootstrap_counts counts;
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

/* Waits for all ranks. Calls `poll` (may be NULL) again
 * and again while waiting, so that messages go on being served: it sleeps where there are none, for
 * short, or until the bell rings that says that the answer has come. `deadline` is on tk_now()'s
 * clock, 0 for none.
 * TK_BUSY when it passed: the fence is then still pending. One that is pending, here or further up
 * on this stack (a rank leaves while it waits for another fence), is gone on with: a rank has one
 * at a time, and every waiter waits for that one. */
enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline);

/* The same, and what was put before is visible to all afterwards. */
enum tk_status tk_bootstrap_fence_data(void (*poll)(void), uint64_t deadline);

/* What wakes such a poll; called by libpmix's thread, and by ours, any number of times. */
void tk_bootstrap_bell(void (*ring)(void));

/* For a poll that is about to sleep: a fence that is waited for has its answer. */
bool tk_bootstrap_has_answer(void);

/* Copies what `rank` put under the key: malloc'ed with room for one byte more, size in *size. Call
 * only after a fence of data. */
enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size);

/* The same of every rank, by rank, into blobs that are zero; those that have come are there also
 * when it fails. For few ranks of a host: what all need goes by tk_gather() (gather.h). */
struct tk_bootstrap_blob {
    void *at;
    size_t size;
};
enum tk_status tk_bootstrap_get_all(const char *key, struct tk_bootstrap_blob *blobs);

/* Before the first fence: what ranks of this host put for each other, which goes to no other host.
 * A rank puts once. Waits until all of `ranks` have put; TK_FAIL, without a word: it took longer
 * than that, and *missing is one that had not. */
enum tk_status tk_bootstrap_put_local(const char *key, const void *blob, size_t size);
enum tk_status tk_bootstrap_await_local(const char *key, const uint32_t *ranks, uint32_t count,
                                        struct tk_bootstrap_blob *blobs, int seconds,
                                        uint32_t *missing);

/* The same of a rank that may have put nothing, or be gone: TK_FAIL then, at once and without a
 * word. Also when it put more or less than `size` bytes. */
enum tk_status tk_bootstrap_peek(uint32_t rank, const char *key, void *blob, size_t size);

/* Asks the launcher to end the whole job with `code`; returns once the request is on its way (or
 * can't be). */
void tk_bootstrap_abort(int code, const char *why);

/* The fence that ranks leave by. As tk_bootstrap_fence_data(), but it does not wait for those that
 * left before, by tk_bootstrap_close_early(), and without them it is TK_OK too. Nor is a rank
 * missed that died in it: the launcher reports them. */
enum tk_status tk_bootstrap_part(void (*poll)(void), uint64_t deadline);

/* Our launcher's PMIx server may be stuck by the time that a rank leaves: notifies the launcher in
 * another way that this rank leaves in order, with a code that all agree on. True if it will know.
 * Under other launchers there is no such way. */
bool tk_bootstrap_leave_mark(void);

/* Shows our launcher where the record of waits lies. */
void tk_bootstrap_show_waits(const void *record);

/* The same of the signal that its threads write their stacks on; and the file for these, to append
 * to, if the launcher waits for them, else -1. The latter is safe in signal handlers. */
void tk_bootstrap_show_stacks(uint32_t signal);
int tk_bootstrap_stack_file(void);

/* Orderly good-bye; no bootstrap call afterwards. */
void tk_bootstrap_close(void);

/* The same of a rank that leaves while others go on: the next fence counts it as come. */
void tk_bootstrap_close_early(void);

#endif
