/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of wordcount: the job, and its two modes of communication. Owned by the one
 * client thread. */
#ifndef WORDCOUNT_H
#define WORDCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"
#include "input.h"

enum {
    FAILED = 1,         /* exit status: something went wrong on the way */
    MISUSED = 2,        /* exit status: the command line */
    WINDOW = 256 * 1024 /* bytes of a rank's result that rank 0 fetches at a time */
};

/* What a rank sends to the others by puts. */
struct notice {
    struct tally read;
    uint64_t messages; /* sent to spread the words */
    int32_t verdict;   /* 0: can go on; else how it would exit */
};

/* A segment: our window, and a place for each rank's notice. */
struct board {
    char window[WINDOW];
    struct notice notices[];
};

struct job {
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Rank_t rank, size;
    struct board *board;
};
extern struct job job;

/* Prints "wordcount: ..." and ends the job. */
void die(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* The board of another rank, as an address there. */
struct board *board_of(gex_Rank_t rank);

void barrier(void);

/* ---- spread.c: words to their counters ---- */

void spread_register(void);

/* Has the word counted by the rank that it belongs to, some time before spread_finish() returns. */
void spread_word(const char *word, size_t length);

/* Returns when all our words are counted; how many messages that took. */
uint64_t spread_finish(void);

/* ---- gather.c: results to rank 0 ---- */

/* What is done with each word, in order. */
typedef void result_fn(const char *word, size_t length, uint64_t count);

void gather_register(void);

/* Opens our sorted table for rank 0; on every rank, before a barrier and then gather_all(). */
void gather_publish(void);

/* Rank 0: fetches and merges everybody's tables. The others must go on polling. */
void gather_all(result_fn *each);

#endif
