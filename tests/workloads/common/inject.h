/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults by name: `--inject NAME` or `--inject NAME:K` makes a workload do one wrong thing at its
 * K-th occasion (the first unless K is given), so that anyone can see the corresponding check fail.
 * A run in which the occasion never occurred proves nothing, so it does not pass. */
#ifndef WL_INJECT_H
#define WL_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wl_fault {
    const char *name, *check, *help; /* the fault must make `check` fail */
};

struct wl_injection {
    int fault;     /* place in the table; -1: none */
    uint64_t at;   /* 1: the first occasion */
    uint64_t seen; /* occasions so far */
};

/* The table ends with an entry without name. `text` NULL or "none": no fault. False with one line
 * in `why` when the table does not have the name, or K is not a number from 1 to 10^9. */
bool wl_inject_parse(struct wl_injection *injection, const struct wl_fault *table, const char *text,
                     char *why, size_t size);

bool wl_inject_counted(struct wl_injection *injection);

/* Is this the occasion? Counts it. */
static inline bool wl_inject(struct wl_injection *injection, int fault)
{
    return __builtin_expect(injection->fault == fault, 0) && wl_inject_counted(injection);
}

/* Is this the occasion or a later one? For faults that persist. */
static inline bool wl_inject_since(struct wl_injection *injection, int fault)
{
    return wl_inject(injection, fault) ||
           (injection->fault == fault && injection->seen >= injection->at);
}

/* Has the fault's occasion occurred in this process? */
bool wl_inject_came(void);

#endif
