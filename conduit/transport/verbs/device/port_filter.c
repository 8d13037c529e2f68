/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNET_IBV_PORTS: device[:port,port]+device[:...]. Order and duplicates do not matter, and
 * unknown names are ignored: the same text serves machines with different devices. No state. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "transport/verbs/verbs.h"

/* Does the list "1,2" of `length` characters contain the port? */
static int list_holds(const char *list, size_t length, int port)
{
    const char *end = list + length;
    while (list < end) {
        if (strtol(list, NULL, 10) == port)
            return 1;
        const char *comma = memchr(list, ',', (size_t)(end - list));
        list = comma ? comma + 1 : end;
    }
    return 0;
}

/* An entry without a list admits all ports of the device but names none. */
static int any_entry(const char *filter, const char *device, int port, int without_list)
{
    while (*filter) {
        size_t entry = strcspn(filter, "+"), name = strcspn(filter, "+:");
        size_t list = entry > name ? entry - name - 1 : 0;
        if (name == strlen(device) && !strncmp(filter, device, name) &&
            (list == 0 ? without_list : list_holds(filter + name + 1, list, port)))
            return 1;
        filter += entry + (filter[entry] == '+');
    }
    return 0;
}

int tk_port_filter_admits(const char *filter, const char *device, int port)
{
    return !*filter || any_entry(filter, device, port, 1);
}

int tk_port_filter_names(const char *filter, const char *device, int port)
{
    return any_entry(filter, device, port, 0);
}

static int entry_is_good(const char *entry, size_t length)
{
    size_t name = strcspn(entry, "+:");
    if (name == 0 || name > length)
        return length == 0; /* "a++b": an empty entry matches nothing */
    if (name == length)
        return 1;
    int digits = 0;
    for (const char *at = entry + name + 1; at < entry + length; at++) {
        if (isdigit((unsigned char)*at))
            digits++;
        else if (*at != ',' || !digits)
            return 0;
        else
            digits = 0;
    }
    return digits > 0;
}

enum tk_status tk_port_filter_check(const char *name, const char *filter)
{
    for (const char *at = filter; *at;) {
        size_t entry = strcspn(at, "+");
        if (!entry_is_good(at, entry)) {
            tk_log_error("%s='%s': '%.*s' is not device or device:port,port", name, filter,
                         (int)entry, at);
            return TK_FAIL;
        }
        at += entry + (at[entry] == '+');
    }
    return TK_OK;
}
