/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How each function of the driver API begins: initialized, not in a host function, with a current
 * context. No state; the current contexts of threads are in cuda_context.c. */
#ifndef SGPU_CUDA_ENTRY_H
#define SGPU_CUDA_ENTRY_H

#include "contrib/softgpu/device/device.h"
#include "contrib/softgpu/include/cuda.h"

/* This thread's context; NULL: none. Called without the lock. */
struct sgpu_context *cuda_current(void);
/* Locks, and finds the context. On any status but OK it is unlocked again, and the caller returns
 * the status. */
CUresult cuda_enter_context(struct sgpu_context **c);
/* The same for a stream of that context. */
CUresult cuda_enter_stream(CUstream handle, struct sgpu_context **c, struct sgpu_stream **s);
/* Locks in a function that needs no context. */
CUresult cuda_enter(void);
CUresult cuda_leave(int status);

#endif
