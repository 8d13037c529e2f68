/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of a job over time, for --report: what --top --json prints, in a file without a name
 * and of bounded size. Each second at first; when the file is full, every second record is removed
 * and the time between two is doubled. */
#ifndef TRUNKLINE_SPAWNER_SAMPLES_H
#define TRUNKLINE_SPAWNER_SAMPLES_H

#include <stdint.h>
#include <stdio.h>

enum { SAMPLES_BYTES = 32 << 20 };

struct samples {
    const char *parent; /* where the file is made */
    long full;          /* its size, SAMPLES_BYTES */
    int64_t period_ms;
    FILE *file; /* NULL: no sample has come */
};

/* Takes an answer of counts.h. Returns the time until the next one is wanted; 0: none is. */
int64_t samples_take(void *samples, const uint8_t *answer);

void samples_close(struct samples *s);

#endif
