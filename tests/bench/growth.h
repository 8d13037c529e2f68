/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process has asked of its devices so far (growth_counts.c). */
#ifndef TESTS_BENCH_GROWTH_H
#define TESTS_BENCH_GROWTH_H

struct growth_counts {
    unsigned long messages;  /* work requests to connected queue pairs */
    unsigned long bytes;     /* theirs */
    unsigned long datagrams; /* work requests to others; repeated on a busy machine */
    long queue_pairs;        /* that there are */
    long connections;        /* of these, connected */
};

struct growth_counts growth_counts(void);

#endif
