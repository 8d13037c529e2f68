/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How each function of HIP begins and ends: the library starts at the first call, a context is that
 * of the thread's device, and the last error is kept. The state of threads is in hip_device.c. */
#ifndef SGPU_HIP_ENTRY_H
#define SGPU_HIP_ENTRY_H

#include "contrib/softgpu/device/device.h"
#include "contrib/softgpu/include/hip/hip_runtime_api.h"

/* Locks. On any status but success it is not locked, and the caller returns the status. */
hipError_t hip_enter(void);
hipError_t hip_enter_context(struct sgpu_context **c);
hipError_t hip_enter_stream(hipStream_t handle, struct sgpu_context **c, struct sgpu_stream **s);
/* Unlocks. */
hipError_t hip_leave(int status);
/* Records an error for hipGetLastError(). Called without the lock. */
hipError_t hip_result(int status);

#endif
