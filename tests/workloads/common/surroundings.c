/* SPDX-License-Identifier: BSD-3-Clause */
/* See surroundings.h. Opens devices only for the duration of a query. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "surroundings.h"

int wl_cpus(void)
{
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof(mine), &mine) ? 1 : CPU_COUNT(&mine);
}

void wl_host_name(char *text, size_t size)
{
    if (gethostname(text, size))
        snprintf(text, size, "unknown");
    text[size - 1] = 0;
}

static int ports_of(struct ibv_device *device)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr device_attr;
    int ports = 0;
    if (!context)
        return 0;
    if (ibv_query_device(context, &device_attr) == 0)
        for (int port = 1; port <= device_attr.phys_port_cnt; port++) {
            struct ibv_port_attr port_attr;
            if (ibv_query_port(context, (uint8_t)port, &port_attr) == 0)
                ports += port_attr.state == IBV_PORT_ACTIVE;
        }
    ibv_close_device(context);
    return ports;
}

int wl_ports(void)
{
    int count = 0, ports = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        ports += ports_of(list[i]);
    if (list)
        ibv_free_device_list(list);
    return ports;
}

void wl_provider(char *text, size_t size)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    size_t used = 0;
    snprintf(text, size, "none");
    for (int i = 0; list && i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "," : "",
                                 ibv_get_device_name(list[i]));
    if (list)
        ibv_free_device_list(list);
}

/* Our own device by its name; those of the kernel (rxe, siw) by names that people give them. */
bool wl_software_rdma(void)
{
    char names[256];
    wl_provider(names, sizeof(names));
    return strstr(names, "softhca") || strstr(names, "rxe") || strstr(names, "siw");
}
