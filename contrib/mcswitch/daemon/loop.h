/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The event loop of mcswitchd: waits for descriptors and for the next tick, and calls their owners.
 * There is one thread, so no code below takes a lock. Must not block anywhere else. */
#ifndef MCD_LOOP_H
#define MCD_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Part of the object that owns the descriptor. Objects are in tables and stay valid: an event of a
 * descriptor that was closed in the same round may still arrive, and finds fd = -1 or a successor
 * with nothing to read. */
struct mcd_source {
    int fd;
    void (*ready)(struct mcd_source *s, uint32_t events); /* of epoll */
};

enum { MCD_TICK_MS = 50 };

struct mcd_hooks {
    void (*tick)(uint64_t now); /* every MCD_TICK_MS, or later if nothing was to do */
    void (*round)(void);        /* after the events of a round: sends queued frames */
};

bool mcd_loop_open(void);
bool mcd_loop_add(struct mcd_source *s, uint32_t events);
void mcd_loop_change(struct mcd_source *s, uint32_t events);
/* Closes the descriptor. */
void mcd_loop_close(struct mcd_source *s);
/* Runs until mcd_loop_stop, which a signal handler may call. */
void mcd_loop_run(const struct mcd_hooks *hooks);
void mcd_loop_stop(void);

/* The exit status of main when something can't be opened: 1, or 2 after a mistake in an option. */
extern int mcd_status;

uint64_t mcd_now(void); /* ns of a monotonic clock */

#endif
