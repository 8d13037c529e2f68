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

/* Counts of this rank's requests to the launcher's server, for GASNET_VERBOSEENV and tests. */
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

/* Connects to the PMIx server. Fails if a launcher of several ranks exists but can't be reached.
 * / */
enum tk_status tk_bootstrap_open(void);

/* Puts a blob under `key` for all ranks to get after the next fence. */
enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size);

/* Puts a single byte in place of a blob of this rank that nobody needs any more. */
void tk_bootstrap_withdraw(const char *key);

/* Waits for all ranks. Calls `poll` (may be NULL) repeatedly while waiting, so that messages are
 * still served; with nothing to do `poll` sleeps briefly, or until the doorbell rings for the
 * answer. `deadline` is on tk_now()'s clock, 0 for none. TK_BUSY when it passed: the fence is then
 * still pending. If a fence is already pending, here or further up on this stack (a rank leaves
 * while it waits for another fence), the call continues that one: a rank has one fence at a time,
 * and every waiter waits for it. */
enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline);

/* The same, and all data put before is visible to all afterwards. */
enum tk_status tk_bootstrap_fence_data(void (*poll)(void), uint64_t deadline);

/* The function that wakes such a poll; called by libpmix's thread, and by ours, any number of
 * times. */
void tk_bootstrap_bell(void (*ring)(void));

/* For a poll that is about to sleep: whether the pending fence has its answer. */
bool tk_bootstrap_has_answer(void);

/* Copies the blob that `rank` put under the key: malloc'ed with space for one more byte, size in
 * *size. Call only after a fence of data. */
enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size);

/* The same for `ranks`, into zeroed blobs; if it fails, those that arrived are filled in. Calls
 * `poll` as tk_bootstrap_fence() does. Fails after GASNET_CONNECT_TIMEOUT where a rank has put
 * nothing. For few ranks of a host: data that all need goes through tk_gather() (gather.h). */
struct tk_bootstrap_blob {
    void *at;
    size_t size;
};
enum tk_status tk_bootstrap_get_many(const char *key, const uint32_t *ranks, uint32_t count,
                                     struct tk_bootstrap_blob *blobs, void (*poll)(void));

/* Data that ranks of this host exchange without a fence, which goes to no other host. */
enum tk_status tk_bootstrap_put_local(const char *key, const void *blob, size_t size);

/* Waits until all of `ranks` have put it; calls `poll` as tk_bootstrap_fence() does. Fails as
 * tk_bootstrap_get_many(), but without a limit. */
enum tk_status tk_bootstrap_get_local(const char *key, const uint32_t *ranks, uint32_t count,
                                      struct tk_bootstrap_blob *blobs, void (*poll)(void));

/* The same before the first fence, with a time limit. A rank puts once. Waits until all of `ranks`
 * have put; TK_FAIL, without a message, after the time
 * limit: *missing is a rank that had not put. */
enum tk_status tk_bootstrap_await_local(const char *key, const uint32_t *ranks, uint32_t count,
                                        struct tk_bootstrap_blob *blobs, int seconds,
                                        uint32_t *missing);

/* The same for a rank that may have put nothing, or have ended: then TK_FAIL at once, without a
 * message. Likewise if it put more or less than `size` bytes. */
enum tk_status tk_bootstrap_peek(uint32_t rank, const char *key, void *blob, size_t size);

/* Asks the launcher to end the whole job with `code`; returns once the request is on its way (or
 * can't be). */
void tk_bootstrap_abort(int code, const char *why);

/* The fence by which ranks leave. Like tk_bootstrap_fence_data(), but it does not wait for ranks
 * that left before, by tk_bootstrap_close_early(), and succeeds without them. It also succeeds
 * without a rank that died in it: the launcher reports that. */
enum tk_status tk_bootstrap_part(void (*poll)(void), uint64_t deadline);

/* Our launcher's PMIx server may be stuck by the time that a rank leaves: notifies the launcher
 * without PMIx that this rank leaves in order, with a code that all agree on. True if the launcher
 * will know. Other launchers have no such channel. */
bool tk_bootstrap_leave_mark(void);

/* Gives our launcher the address of the record of waits. */
void tk_bootstrap_show_waits(const void *record);

/* Gives it the signal on which threads write their stacks. The second returns the file for these,
 * opened for appending, if the launcher waits for them, otherwise -1; it is safe in signal
 * handlers. */
void tk_bootstrap_show_stacks(uint32_t signal);
int tk_bootstrap_stack_file(void);

/* Disconnects in order; no bootstrap call may follow. */
void tk_bootstrap_close(void);

/* The same for a process that is about to end, after all ranks have come to the end of the job with
 * status 0. Under our launcher it stays connected until it ends. */
void tk_bootstrap_close_last(void);

/* As tk_bootstrap_close(), for a rank that leaves while others continue: the next fence counts it
 * as arrived. */
void tk_bootstrap_close_early(void);

#endif
