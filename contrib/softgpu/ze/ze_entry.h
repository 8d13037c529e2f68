/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How each function of Level Zero begins and ends, and its handles: objects of this library, which
 * are looked up before they are used. sgpu_lock protects them. */
#ifndef SGPU_ZE_ENTRY_H
#define SGPU_ZE_ENTRY_H

#include "contrib/softgpu/device/device.h"
#include "contrib/softgpu/include/level_zero/ze_api.h"

struct _ze_device_handle_t {
    int number;
};

/* The library's context for each device, made on first use */
struct _ze_context_handle_t {
    struct _ze_context_handle_t *next;
    struct sgpu_context *of[SGPU_DEVICES_MAX];
};

ze_result_t ze_result(int status);
/* Locks. On any status but success it is not locked, and the caller returns the status. */
ze_result_t ze_enter(void);
ze_result_t ze_leave(int status);
/* The number of a device; negative: the handle is wrong. */
int ze_device(ze_device_handle_t handle);
ze_device_handle_t ze_device_handle(int number);
bool ze_context_known(ze_context_handle_t handle);
/* OK, or the reason why the device takes no work in this context. */
int ze_context_of(ze_context_handle_t handle, int device, struct sgpu_context **c);
/* Is it memory of this context? */
bool ze_context_holds(ze_context_handle_t handle, const struct sgpu_memory *m);

/* ze_dmabuf.c. The descriptor of memory that was allocated for export. */
enum { ZE_MEMORY_FOR_EXPORT = 1 }; /* in the flags of such memory */
int ze_dmabuf_export(ze_context_handle_t context, const struct sgpu_memory *m, int *fd);
/* Closes the descriptors of one address; 0: of all addresses of the context. */
void ze_dmabuf_forget(ze_context_handle_t context, uint64_t address);

#endif
