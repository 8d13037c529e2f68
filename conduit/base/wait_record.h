/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What each thread of this process waits for, in memory that the launcher reads from outside, so
 * that a hang can be explained even if this process is stopped. Written with plain stores by the
 * thread concerned, only once a wait is slow: it has spun for a while, or is about to yield or to
 * sleep. A reader may see half of a change, and therefore reads twice.
 *
 * The launcher, of the same build, includes this header for the layout; it must not contain
 * anything that depends on the threading mode. */
#ifndef TK_WAIT_RECORD_H
#define TK_WAIT_RECORD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

enum tk_wait_kind {
    TK_WAITS_NOT,
    TK_WAITS_EVENT,     /* an operation under way */
    TK_WAITS_SOURCE,    /* the same, for its source to be free again */
    TK_WAITS_SEND,      /* to send a message to the peer */
    TK_WAITS_RMA,       /* to post a transfer to the peer */
    TK_WAITS_CONDITION, /* GASNET_BLOCKUNTIL; nothing says when such a wait is over */
    TK_WAITS_LAUNCHER,  /* a fence of the launcher, or the end of the job; likewise */
    TK_WAITS_LOCK,      /* number: address of the gex_HSL_t, more: the thread that holds it */
    TK_WAITS_NAMED,     /* gasnet_barrier_wait */
    TK_WAITS_TEAM,      /* members of a team that is being created */
    TK_WAITS_CONNECTION /* connections that were requested */
};

struct tk_wait_why {
    uint32_t kind; /* enum tk_wait_kind */
    uint32_t peer; /* tk_wait_nobody: none */
    uint64_t number, more;
};

/* The cause of a wait, described by the room concerned. */
enum tk_wait_reason {
    TK_REASON_CREDIT,     /* all credits of the peer are out: number */
    TK_REASON_UNANSWERED, /* requests to the peer: number */
    TK_REASON_CONNECTING, /* the peer is being connected */
    TK_REASON_BARRIER,    /* number: which; more: round among leaders, or 0 */
    TK_REASON_NAMED,      /* likewise */
    TK_REASON_COLLECTIVE, /* number: of the collective on its team; more: the team */
    TK_REASON_TEAM        /* members of a team: number: in which call, as below; more: the team */
};

/* Calls in which members of a team exchange records. */
enum tk_wait_call {
    TK_CALL_INIT,
    TK_CALL_SPLIT,
    TK_CALL_CREATE,
    TK_CALL_DESTROY,
    TK_CALL_PUBLISH,
    TK_CALL_AD_CREATE /* debug builds */
};

enum {
    tk_wait_magic = 0x74776169,
    tk_wait_version = 2,
    tk_wait_rows = 16,
    tk_wait_teams = 8,
    tk_wait_threads = 8 /* further threads that wait at the same time have no record */
};

#define tk_wait_nobody UINT32_MAX

struct tk_wait_row {
    uint32_t reason; /* enum tk_wait_reason */
    uint32_t peer;
    uint64_t number, more;
};

/* Times are of CLOCK_MONOTONIC, in ns; 0: never. */
struct tk_wait_thread {
    uint32_t tid; /* 0: free */
    uint32_t row_count;
    struct tk_wait_why why;
    uint64_t since;
    uint64_t beat;       /* the last time that it polled while it waited */
    uint64_t ended;      /* the last slow wait */
    uint64_t in_handler; /* address of the thread's depth in handlers */
    struct tk_wait_row rows[tk_wait_rows];
};

/* The collectives that this rank has started; the same order everywhere. */
struct tk_wait_progress {
    uint32_t barriers, barriers_over;
    uint32_t named, named_over;
    uint32_t named_id, named_flags;
    /* The last collective started on a team; of teams that share a slot only the latest is
     * visible. */
    struct {
        uint64_t team;
        uint64_t sequence;
    } started[tk_wait_teams];
};

/* Where this rank has its counters (stats/stats.h), for gasnetrun_ibv --top: addresses of the block
 * of all threads, of the pointer to the first block of a thread, and of the counts as of the last
 * reset. A block is a struct tk_stats, of which `layout` must be known, then the pointer to the
 * next one. */
struct tk_wait_counters {
    uint64_t shared, list, at_reset;
    uint32_t layout; /* tk_stats_layout */
    uint32_t rails;  /* ports in use; 0: not known yet, or none */
};

struct tk_wait_page {
    uint32_t magic, version, size; /* of this struct */
    uint32_t rank, pid;
    uint32_t is_leaving;
    uint64_t opened;
    struct tk_wait_counters counters;
    struct tk_wait_progress progress;
    struct tk_wait_thread threads[tk_wait_threads];
};

extern TK_HIDDEN struct tk_wait_page tk_wait_page;

static inline void tk_wait_collective(uint64_t team, uint32_t sequence)
{
    unsigned place = (unsigned)(team ^ team >> 32) % tk_wait_teams;
    tk_wait_page.progress.started[place].team = team;
    tk_wait_page.progress.started[place].sequence = sequence;
}

/* Registered at start-up only; few. A waiter calls them now and then, with space for rows; they
 * must not wait. */
struct tk_wait_rows {
    struct tk_wait_row *at;
    uint32_t count;
};
void tk_wait_describe_add(void (*describe)(struct tk_wait_rows *rows));
void tk_wait_row_add(struct tk_wait_rows *rows, enum tk_wait_reason reason, uint32_t peer,
                     uint64_t number, uint64_t more);

/* Creates the record, once the process has a rank. */
void tk_wait_record_open(uint32_t rank);

/* This thread begins to wait; *in_handler: its depth in handlers. */
void tk_wait_note(const struct tk_wait_why *why, const unsigned *in_handler, bool is_new);

/* The thread that holds a mutex, where libc says so; else 0. */
uint32_t tk_wait_holder_of(const pthread_mutex_t *mutex);

/* This thread no longer waits. */
void tk_wait_note_end(void);

#endif
