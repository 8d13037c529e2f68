/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the program atomics. */
#ifndef TESTS_JOB_ATOMICS_H
#define TESTS_JOB_ATOMICS_H

#include "gasnet_ratomic.h"
#include "job.h"

/* Offsets into each segment: cells that have one writer each, words that all use, histories. */
enum { CELLS = 0, CELL_SIZE = 64, WORDS = 64 << 10, HISTORY = 128 << 10, SEGMENT = 1 << 20 };

/* All operations that a device can do. */
#define DEVICE_OPS                                                                                 \
    (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC | GEX_OP_CAS | GEX_OP_FADD | GEX_OP_FSUB |  \
     GEX_OP_FINC | GEX_OP_FDEC | GEX_OP_FCAS | GEX_OP_GET)

/* Waits for an operation, which the flags allow to be refused. */
void finish_event(gex_Event_t event);

/* atomics_types.c: each operation of each type against a serial model. */
void check_types(void);

/* atomics_words.c: few words, all ranks and threads: sums are conserved. */
void hammer(unsigned turns);

/* atomics_history.c: short histories have a serial order that agrees with the clock. */
void check_histories(unsigned rounds);

/* atomics_misuse.c: does what is forbidden. */
void make_mistake(const char *name);

#endif
