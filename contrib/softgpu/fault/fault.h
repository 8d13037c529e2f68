/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Faults on purpose: the rules of SOFTGPU_FAULT (fault-language.txt). The parser has no state; the
 * rules in force belong to the process, and the caller of sgpu_fault_judge() holds the lock of the
 * library. */
#ifndef SGPU_FAULT_H
#define SGPU_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contrib/softgpu/support/status.h"

enum sgpu_fault_kind {
    SGPU_FAULT_COPY,   /* copies and fills */
    SGPU_FAULT_ALLOC,  /* device and pinned memory */
    SGPU_FAULT_EXPORT, /* dma-buf and peer memory */
    SGPU_FAULT_IPC,    /* making and opening a handle */
    SGPU_FAULT_STREAM, /* making streams and events */
    SGPU_FAULT_LOST,   /* the device; checked in every call that needs it */
    SGPU_FAULT_KINDS
};

struct sgpu_fault_rule {
    enum sgpu_fault_kind kind;
    enum sgpu_status error; /* SGPU_OK: a delay only */
    bool run;               /* an asynchronous copy fails when it runs, not when it is called */
    int device;             /* -1: any */
    uint64_t nth, every, after, count;
    uint32_t ppb;       /* probability */
    uint64_t low, high; /* delay in ns */
    uint64_t seen, fired;
};

enum { SGPU_FAULT_RULES = 16 };

struct sgpu_fault_rules {
    unsigned n;
    struct sgpu_fault_rule rule[SGPU_FAULT_RULES];
};

/* False: `why` is one line without the name of the variable. */
bool sgpu_fault_parse(const char *text, struct sgpu_fault_rules *out, char *why, size_t n);

struct sgpu_verdict {
    enum sgpu_status error;
    bool run;
    uint64_t delay; /* ns */
};

void sgpu_fault_set(const struct sgpu_fault_rules *rules, uint64_t seed);
/* Counts one operation of a device in all rules, and adds up the effects of those that fire. */
struct sgpu_verdict sgpu_fault_judge(enum sgpu_fault_kind kind, int device);

#endif
