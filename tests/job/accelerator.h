/* SPDX-License-Identifier: BSD-3-Clause */
/* What test programs need of an accelerator's driver, loaded as the library loads it: CUDA's, or
 * HIP with KINDS_CLASS=hip. For programs of tests/bench too. A failure ends the program. No lock;
 * any thread after acc_open(). */
#ifndef TESTS_ACCELERATOR_H
#define TESTS_ACCELERATOR_H

#include <stddef.h>

#include "gasnet_mk.h"

/* Returns the number of devices. */
int acc_open(void);
/* For the kind of a device. */
gex_MK_Create_args_t acc_args(int device);
/* Memory of a device. */
char *acc_alloc(int device, size_t size);
/* Done on return. */
void acc_write(int device, char *at, const void *from, size_t size);
void acc_read(int device, void *to, const char *at, size_t size);
void acc_copy(int device, char *to, const char *from, size_t size);

#endif
