/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that meet at the first of them by TCP, on one host or several, and exchange data and
 * synchronise, as a job does by modex and barriers. Owns the sockets. Ends the process on any
 * error. */
#ifndef MCSWITCH_STAR_H
#define MCSWITCH_STAR_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #x);                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Rank 0 listens at "A.B.C.D:PORT", the others connect there. */
void star_open(const char *address, int rank, int ranks);
void star_close(void);
/* All get the bytes of rank 0. */
void star_share(void *bytes, size_t n);
void star_barrier(void);
/* All get the bytes of each rank, in the order of ranks. */
void star_gather(const void *mine, size_t n, void *all);
/* The number of ranks whose `mine` is not 0. */
int star_count(int mine);

#endif
