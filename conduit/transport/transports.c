/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The transports in use, and functions that call all of them. Owns tk_transports. No lock: it is
 * written at start-up only, and a signal handler may read it at any time. */
#include "config.h"

#include <string.h>

#include "base/report.h"
#include "transport/transport.h"

struct tk_transports tk_transports;

static const struct tk_transport **transports_place_of(const char *name)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (strcmp(tk_transports.at[i]->name, name) == 0)
            return &tk_transports.at[i];
    return NULL;
}

static void find_node_local(void)
{
    const struct tk_transport_neighbour *node_local = NULL;
    for (unsigned i = 0; i < tk_transports.count && !node_local; i++)
        node_local = tk_transports.at[i]->neighbour;
    __atomic_store_n(&tk_transports.node_local, node_local, __ATOMIC_RELEASE);
}

void tk_transport_use(const struct tk_transport *transport)
{
    const struct tk_transport **place = transports_place_of(transport->name);
    if (!place && tk_transports.count == tk_transports_max)
        tk_panic("more than %d transports", tk_transports_max);
    if (!place)
        place = &tk_transports.at[tk_transports.count++];
    *place = transport;
    find_node_local();
}

void tk_transport_drop(const struct tk_transport *transport)
{
    const struct tk_transport **place = transports_place_of(transport->name);
    const struct tk_transport **end = tk_transports.at + tk_transports.count;
    if (!place)
        return;
    memmove(place, place + 1, (size_t)(end - place - 1) * sizeof(*place));
    tk_transports.count--;
    find_node_local();
}

bool tk_transports_connect_later(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_transport *transport = tk_peer(r)->transport;
        if (transport && transport->demand && !transport->demand->is_connected(r))
            return true;
    }
    return false;
}

enum tk_status tk_transports_register(struct tk_region *region)
{
    unsigned done = 0;
    for (; done < tk_transports.count; done++) {
        const struct tk_transport *t = tk_transports.at[done];
        if (t->memory && t->memory->register_region(region) != TK_OK)
            break;
    }
    if (done == tk_transports.count)
        return TK_OK;
    while (done-- > 0)
        if (tk_transports.at[done]->memory)
            tk_transports.at[done]->memory->unregister_region(region);
    return TK_FAIL;
}

void tk_transports_unregister(struct tk_region *region)
{
    for (unsigned i = tk_transports.count; i-- > 0;)
        if (tk_transports.at[i]->memory)
            tk_transports.at[i]->memory->unregister_region(region);
}

bool tk_transports_pin(void)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->memory && tk_transports.at[i]->memory->pins())
            return true;
    return false;
}

void tk_transports_use_segment(const struct tk_region *region)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->memory)
            tk_transports.at[i]->memory->use_segment(region);
}

void tk_transports_report_stall(void)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->reports.stall)
            tk_transports.at[i]->reports.stall();
}

void tk_transports_describe_waits(struct tk_wait_rows *rows)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->reports.waits)
            tk_transports.at[i]->reports.waits(rows);
}

void tk_transports_report_end(void)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->reports.end)
            tk_transports.at[i]->reports.end();
}

void tk_transports_close(void)
{
    while (tk_transports.count > 0) {
        const struct tk_transport *last = tk_transports.at[tk_transports.count - 1];
        tk_transport_drop(last);
        if (last->lifecycle)
            last->lifecycle->close();
    }
}
