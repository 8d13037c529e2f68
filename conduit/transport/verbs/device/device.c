/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices in use: the objects that all rails of one device share. The first device is in tk_verbs,
 * where polls find it without a pointer; a list behind it has the others. No lock: start-up and
 * exit are single-threaded. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

void tk_device_explain_closed(int error, char *text, size_t size)
{
    const char *remedy = "see the device's driver and dmesg";
    if (error == EACCES || error == EPERM)
        remedy = "this user has no permission for /dev/infiniband";
    else if (error == ENOMEM)
        remedy = "look at the limits on address space (ulimit -v) and locked memory (ulimit -l)";
    else if (error == EMFILE || error == ENFILE)
        remedy = "raise the limit on open files (ulimit -n)";
    else if (error == ENOENT || error == ENXIO || error == ENODEV)
        remedy = "its file in /dev/infiniband is missing (is this a container?)";
    snprintf(text, size, "can't be opened: %s; %s", error ? strerror(error) : "no reason given",
             remedy);
}

void tk_devices_single_thread(void)
{
    setenv("MLX4_SINGLE_THREADED", "1", 0);
    setenv("MLX5_SINGLE_THREADED", "1", 0);
}

static struct tk_device *device_find(const struct ibv_context *context)
{
    struct tk_device *device = &tk_verbs.device;
    while (device && device->context != context)
        device = device->next;
    return device;
}

/* Allocates a device other than the first, with completion queues for all lanes. */
static struct tk_device *device_allocate(void)
{
    size_t sends = tk_lanes_max * sizeof(struct tk_sends);
    struct tk_device *device = aligned_alloc(TK_CACHE_LINE, sizeof(*device) + sends);
    if (!device)
        tk_panic("out of memory for a device (%zu bytes)", sizeof(*device) + sends);
    memset(device, 0, sizeof(*device) + sends);
    device->sends = (struct tk_sends *)(device + 1);
    return device;
}

static struct tk_device *device_add(struct ibv_context *context)
{
    struct tk_device *device = &tk_verbs.device;
    if (tk_verbs.device_count > 0) {
        device = device_allocate();
        struct tk_device **last = &tk_verbs.device.next;
        while (*last)
            last = &(*last)->next;
        *last = device;
    }
    device->context = context;
    device->index = tk_verbs.device_count++;
    tk_lock_init(&device->recv_cq_lock);
    return device;
}

void tk_devices_use(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct tk_rail *rail = &tk_verbs.rails[i];
        rail->device = device_find(rail->context);
        if (!rail->device)
            rail->device = device_add(rail->context);
    }
}

void tk_devices_close(void)
{
    for (struct tk_device *device = &tk_verbs.device, *next; device; device = next) {
        next = device->next;
        ibv_close_device(device->context);
        if (device != &tk_verbs.device)
            free(device);
    }
    tk_verbs.device = (struct tk_device){.context = NULL};
    tk_verbs.device_count = 0;
}
