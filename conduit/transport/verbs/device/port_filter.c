/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNET_IBV_PORTS: device[:port,port]+device[:...]. Order and duplicates do not matter, and
 * unknown names are ignored: the same text serves machines with different devices. No state. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

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
