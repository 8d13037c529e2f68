/* SPDX-License-Identifier: BSD-3-Clause */
/* When a job ends and with which status: a state machine driven by the events of the ranks. It
 * makes no system call and reads no clock (the time is a parameter), so that every rule has a unit
 * test. No lock.
 *
 * The first failure opens a short window. All that happens within it is judged together, because a
 * crash makes the other ranks abort, and events do not arrive in the order in which they happened.
 */
#ifndef TRUNKLINE_SPAWNER_POLICY_H
#define TRUNKLINE_SPAWNER_POLICY_H

#include "spawner/util/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the window, ms: a broken connection reaches the other ranks of a host well within it.
 */
enum { POLICY_WINDOW_MS = 50 };

/* Its length when the rank that ended first, with a status, had called PMIx_Finalize: the others
 * are about to call it too, which takes longer on a busy host, or they are stuck. */
enum { POLICY_FIRST_LEAVES_MS = 500 };

/* Its length when all ranks that live have called PMIx_Finalize and one exited first with a status:
 * the others exit by themselves too, on a busy host later. */
enum { POLICY_LEAVING_MS = 2000 };

/* Its length while a rank that others no longer reach has not exited yet: a process closes its
 * devices, which its peers notice, before waitpid() returns it, on a busy host long before. If it
 * lives (a cable is out, it is stopped), the job ends this much later. */
enum { POLICY_UNREACHABLE_MS = 1000 };

enum policy_cause {
    CAUSE_NONE,       /* no failure so far */
    CAUSE_ABORT,      /* a rank called PMIx_Abort */
    CAUSE_EXIT,       /* a rank exited with a non-zero status */
    CAUSE_SIGNAL,     /* a rank was killed by a signal */
    CAUSE_UNFINISHED, /* a rank left with status 0 but without PMIx_Finalize */
    CAUSE_ABSENT,     /* a rank left with status 0 without PMIx_Init, others wait for it */
    CAUSE_LATE,       /* a rank did not call PMIx_Init in time */
    CAUSE_NO_EXEC,    /* the program could not be executed */
    CAUSE_LAUNCHER,   /* the launcher's own processes failed */
    CAUSE_USER,       /* the launcher got a signal */
};

struct policy_rank {
    int pid;
    bool connected, finalized, aborted, exited;
    bool unreachable; /* another rank aborted because it could no longer reach this one */
    int abort_code;
    int wait_status; /* once it has exited */
};

struct policy {
    uint32_t ranks;
    const struct job *job; /* for names of hosts; may be NULL */
    struct policy_rank *rank;
    uint32_t launched, exited;
    bool has_asked;   /* policy_wants_marks() */
    uint32_t running; /* neither finalized nor exited */
    uint32_t joined;  /* of these: connected */
    uint32_t awaited; /* of the running: unreachable, and not aborted themselves */
    int64_t start_ms; /* time for all ranks to join; 0 = for ever */
    int64_t late_at;  /* when that time is over */
    bool any_absent;  /* some rank has left without joining */
    uint32_t absent;  /* the first of them */
    enum policy_cause cause;
    uint32_t culprit;
    int code;       /* exit status, signal or errno, depending on the cause */
    bool core;      /* the culprit left a core file */
    char text[512]; /* text of PMIx_Abort or of the failed launcher process */
    uint32_t
        oom_rank; /* the rank that the kernel killed for lack of memory; valid if oom_text is set */
    char oom_text[512];
    int64_t decide_at; /* end of the window */
    bool closed;       /* no more events will come */
    bool decided;      /* later events do not change the verdict, but for a correction */
    int64_t decided_at;
    bool hurried;       /* the user wants the end at once: SIGKILL may be ours */
    bool corrected;     /* and the head has not been told yet */
    uint32_t remaining; /* ranks still alive at the decision */
};

/* False without memory. The time for joining counts from `began`, when the launcher was started: a
 * server that never answers lets no rank join at all. */
bool policy_init(struct policy *p, uint32_t ranks, int64_t start_ms, int64_t began);
void policy_free(struct policy *p);

/* The events. Ranks out of range are ignored. `now` is in ms. */
void policy_launched(struct policy *p, uint32_t rank, int pid);
void policy_connected(struct policy *p, uint32_t rank, int64_t now);
void policy_finalized(struct policy *p, uint32_t rank);

/* True once: a rank that left in order exited with a status. Those that leave with 0 too tell
 * nobody until they have ended, so the guards must be asked (policy_finalized()): their destructors
 * get the time of ranks that leave. */
bool policy_wants_marks(struct policy *p);
void policy_aborted(struct policy *p, uint32_t rank, int code, const char *text, size_t length,
                    int64_t now);
void policy_oom_killed(struct policy *p, uint32_t rank, const char *text, size_t length);
void policy_exited(struct policy *p, uint32_t rank, int wait_status, int64_t now);
void policy_no_exec(struct policy *p, uint32_t rank, int error, int64_t now);

/* False: the job ends for another reason, and the text is not shown. */
bool policy_launcher_failed(struct policy *p, const char *text, size_t length, int64_t now);
void policy_user_signal(struct policy *p, int signal);

/* A host is lost, and with it ranks whose end was not observed. That is reported by
 * policy_launcher_failed(). */
void policy_lost(struct policy *p, uint32_t first, uint32_t count);

/* The whole job was stopped for `ms`: that time does not count for joining. */
void policy_was_stopped(struct policy *p, int64_t ms);

/* A rank that has not joined and still runs or was never started. */
bool policy_is_missing(const struct policy *p, uint32_t rank);

/* There will be no more events, so no window stays open. */
void policy_close(struct policy *p);

/* True exactly once: the verdict is final and the ranks still alive are to be ended. */
bool policy_must_end(struct policy *p, int64_t now);

/* True exactly once, some time after policy_must_end(), if the verdict has changed: a rank that
 * others had lost was dying of a signal already, which waitpid() returned later. */
bool policy_is_corrected(struct policy *p);

/* When to call policy_must_end() again; CLOCK_NEVER if only an event can change its result. */
int64_t policy_deadline(const struct policy *p);

/* No rank that was started lives. */
bool policy_all_gone(const struct policy *p);

/* The exit status of the launcher; final once every rank is gone. */
int policy_status(const struct policy *p);

/* One sentence for the user about the verdict; false when the ranks have printed all of it
 * themselves. `wordy` adds the sentences that only repeat them. */
bool policy_sentence(const struct policy *p, bool wordy, char *text, size_t size);

#endif
