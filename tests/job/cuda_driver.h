/* SPDX-License-Identifier: BSD-3-Clause */
/* What test programs need of CUDA's driver, loaded as the library loads it. No lock. */
#ifndef TESTS_CUDA_DRIVER_H
#define TESTS_CUDA_DRIVER_H

#include <stddef.h>

/* Returns the number of devices. */
int cuda_open(void);
/* Memory of a device, whose primary context is retained. */
char *cuda_alloc(int device, size_t size);
void cuda_write(int device, char *at, const void *from, size_t size);
void cuda_read(int device, void *to, const char *at, size_t size);

#endif
