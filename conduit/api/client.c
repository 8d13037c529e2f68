/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_Client_* and gex_EP_*: start-up and queries of the objects. No state, no lock. */
#include "config.h"

#include <string.h>

#include "api/check.h"
#include "base/report.h"
#include "collective/mcast.h"
#include "message/message.h"
#include "progress/threads.h"
#include "start/start.h"
#include "team/objects.h"

int gex_Client_Init(gex_Client_t *client_p, gex_EP_t *ep_p, gex_TM_t *tm_p, const char *client_name,
                    int *argc, char ***argv, gex_Flags_t flags)
{
    (void)argc;
    (void)argv;
    if (tk_is_started())
        tk_panic("gex_Client_Init was called twice; a process has one client");
    if (!client_p || !ep_p || !tm_p || !client_name) {
        tk_verbose_error("gex_Client_Init: client, endpoint, team and name must be given");
        return GASNET_ERR_BAD_ARG;
    }
    if (flags & ~(GEX_FLAG_USES_GASNET1 | GEX_FLAG_DEFER_THREADS)) {
        tk_verbose_error(
            "gex_Client_Init: flags 0x%x are not a subset of GEX_FLAG_USES_GASNET1 and "
            "GEX_FLAG_DEFER_THREADS",
            flags);
        return GASNET_ERR_BAD_ARG;
    }
    tk_start();
    tk_teams_open();
    tk_mcast_begin();
    tk_client.name = strdup(client_name);
    tk_client.flags = flags;
    if (!(flags & GEX_FLAG_DEFER_THREADS))
        tk_progress_threads_start();
    *client_p = &tk_client;
    *ep_p = &tk_ep;
    *tm_p = &tk_tm;
    return GASNET_OK;
}

gex_Flags_t gex_Client_QueryFlags(gex_Client_t client)
{
    TK_CHECK_CLIENT("gex_Client_QueryFlags", client);
    return client->flags;
}

const char *gex_Client_QueryName(gex_Client_t client)
{
    TK_CHECK_CLIENT("gex_Client_QueryName", client);
    return client->name;
}

void gex_Client_SetCData(gex_Client_t client, const void *value)
{
    TK_CHECK_CLIENT("gex_Client_SetCData", client);
    client->cdata = value;
}

void *gex_Client_QueryCData(gex_Client_t client)
{
    TK_CHECK_CLIENT("gex_Client_QueryCData", client);
    return (void *)client->cdata;
}

gex_Client_t gex_EP_QueryClient(gex_EP_t ep)
{
    TK_CHECK_EP("gex_EP_QueryClient", ep);
    return ep->client;
}

gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep)
{
    TK_CHECK_EP("gex_EP_QueryFlags", ep);
    return ep->flags;
}

gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep)
{
    TK_CHECK_EP("gex_EP_QuerySegment", ep);
    return ep->segment;
}

gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep)
{
    TK_CHECK_EP("gex_EP_QueryIndex", ep);
    return ep->index;
}

void gex_EP_SetCData(gex_EP_t ep, const void *value)
{
    TK_CHECK_EP("gex_EP_SetCData", ep);
    ep->cdata = value;
}

void *gex_EP_QueryCData(gex_EP_t ep)
{
    TK_CHECK_EP("gex_EP_QueryCData", ep);
    return (void *)ep->cdata;
}

int gex_EP_Create(gex_EP_t *ep_p, gex_Client_t client, gex_EP_Capabilities_t capabilities,
                  gex_Flags_t flags)
{
    TK_CHECK_MAY_COMMUNICATE("gex_EP_Create");
    if (!ep_p || client != &tk_client || capabilities == 0 ||
        (capabilities & ~GEX_EP_CAPABILITY_ALL) || (flags & ~GEX_FLAG_HINT_ACCEL_ALL)) {
        tk_refused(
            "gex_EP_Create: capabilities 0x%x must be a non-empty subset of GEX_EP_CAPABILITY_ALL, "
            "flags 0x%x a subset of GEX_FLAG_HINT_ACCEL_ALL, ep_p not NULL, client not "
            "GEX_CLIENT_INVALID",
            capabilities, flags);
        return GASNET_ERR_BAD_ARG;
    }
    struct trunkline_ep *ep = tk_ep_create(capabilities, flags);
    if (!ep) {
        tk_verbose_error("gex_EP_Create: there are GASNET_MAXEPS, %d, already", GASNET_MAXEPS);
        return GASNET_ERR_RESOURCE;
    }
    *ep_p = ep;
    return GASNET_OK;
}

int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t numentries)
{
    if (ep == GEX_EP_INVALID) {
        tk_refused("gex_EP_RegisterHandlers: the endpoint is GEX_EP_INVALID");
        return GASNET_ERR_BAD_ARG;
    }
    if (!(ep->capabilities & GEX_EP_CAPABILITY_AM))
        tk_misused("gex_EP_RegisterHandlers: endpoint %u was created without GEX_EP_CAPABILITY_AM",
                   ep->index);
    TK_CHECK_MAY_COMMUNICATE("gex_EP_RegisterHandlers");
    return tk_handlers_register(ep->index, table, numentries);
}
