/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of open devices, under one lock, which is held while a device is opened: two threads
 * that create kinds of one device must not open it twice. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "kind/kind.h"

static tk_lock_t devices_lock = TK_LOCK_INIT;
static struct tk_kind_device *devices;

static bool is_same(const struct tk_kind_args *a, const struct tk_kind_args *b)
{
    return a->gex_class == b->gex_class && a->ordinal == b->ordinal &&
           a->ze_device == b->ze_device && a->ze_context == b->ze_context &&
           a->ze_memory_ordinal == b->ze_memory_ordinal;
}

static struct tk_kind_device *device_open(const struct tk_kind_args *args, struct tk_kind_why *why)
{
    struct tk_kind_device *device = calloc(1, sizeof(*device));
    if (!device)
        tk_panic("out of memory for the description of a device");
    *device = (struct tk_kind_device){.class = tk_kind_class_of(args->gex_class), .args = *args};
    if (device->class->open(device, why) == TK_OK)
        return device;
    free(device);
    return NULL;
}

struct tk_kind_device *tk_kind_device_get(const struct tk_kind_args *args, struct tk_kind_why *why)
{
    tk_lock(&devices_lock);
    struct tk_kind_device *device = devices;
    while (device && !is_same(&device->args, args))
        device = device->next;
    if (!device) {
        device = device_open(args, why);
        if (device) {
            device->next = devices;
            devices = device;
        }
    }
    if (device)
        device->use++;
    tk_unlock(&devices_lock);
    return device;
}

void tk_kind_device_hold(struct tk_kind_device *device)
{
    tk_lock(&devices_lock);
    device->use++;
    tk_unlock(&devices_lock);
}

static void device_close(struct tk_kind_device *device)
{
    struct tk_kind_device **at = &devices;
    while (*at != device)
        at = &(*at)->next;
    *at = device->next;
    device->class->close(device);
    free(device);
}

void tk_kind_device_put(struct tk_kind_device *device)
{
    tk_lock(&devices_lock);
    if (--device->use == 0)
        device_close(device);
    tk_unlock(&devices_lock);
}

unsigned tk_kind_device_uses(const struct tk_kind_device *device)
{
    tk_lock(&devices_lock);
    unsigned use = device->use;
    tk_unlock(&devices_lock);
    return use;
}

struct tk_kind_device *tk_kind_device_like(int gex_class, const unsigned char *uuid)
{
    struct tk_kind_device *any = NULL;
    tk_lock(&devices_lock);
    for (struct tk_kind_device *device = devices; device; device = device->next) {
        if (device->class->gex_class != gex_class)
            continue;
        any = device;
        if (memcmp(device->facts.uuid, uuid, sizeof(device->facts.uuid)) == 0)
            break;
    }
    tk_unlock(&devices_lock);
    return any;
}

const char *tk_kind_device_text(const struct tk_kind_device *device, char *text, size_t size)
{
    const struct tk_kind_facts *facts = &device->facts;
    char number[16] = "";
    if (device->args.ordinal >= 0)
        snprintf(number, sizeof(number), " %d", device->args.ordinal);
    snprintf(text, size, "%s device%s (%s, PCI %s)", device->class->name, number, facts->name,
             facts->pci[0] ? facts->pci : "unknown");
    return text;
}
