/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNET_IBV_GID_INDEX: an index for all ports, or device:port=index,device:port=index,... Unknown
 * device names are ignored: the same text serves machines with different devices. No state. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "settings/settings.h"
#include "transport/verbs/device/ports.h"

enum { index_max = 255, port_max = 255, digits_max = 3 };

/* Reads a number up to 255, which must fill all `length` characters; -1: not a number. */
static int small_number(const char *text, size_t length)
{
    int value = 0;
    if (length == 0 || length > digits_max)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return -1;
        value = 10 * value + text[i] - '0';
    }
    return value <= index_max ? value : -1;
}

struct entry {
    const char *device;
    size_t device_length;
    int port, index;
};

static bool read_entry(const char *text, size_t length, struct entry *entry)
{
    const char *equals = memchr(text, '=', length);
    const char *colon = equals ? memchr(text, ':', (size_t)(equals - text)) : NULL;
    if (!colon || colon == text)
        return false;
    *entry = (struct entry){.device = text, .device_length = (size_t)(colon - text)};
    entry->port = small_number(colon + 1, (size_t)(equals - colon - 1));
    entry->index = small_number(equals + 1, length - (size_t)(equals + 1 - text));
    return entry->port >= 1 && entry->index >= 0;
}

/* Accepts -1, which was once the default. */
static bool is_for_all(const char *text)
{
    return !*text || !strcmp(text, "-1") || small_number(text, strlen(text)) >= 0;
}

int tk_gid_index_of(const char *device, int port)
{
    const char *text = tk_settings.gid_index;
    struct entry entry;
    if (is_for_all(text))
        return small_number(text, strlen(text));
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        if (read_entry(at, length, &entry) && entry.port == port &&
            entry.device_length == strlen(device) &&
            !strncmp(entry.device, device, entry.device_length))
            return entry.index;
        at += length + (at[length] == ',');
    }
    return -1;
}
