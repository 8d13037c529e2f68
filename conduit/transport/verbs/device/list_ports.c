/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNET_IBV_LIST_PORTS: lists all ports of this host with their state, whether they will be used
 * or not. No state. */
#include "config.h"

#include <errno.h>

#include "base/report.h"
#include "common/number.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs.h"

static const char *state_text(enum ibv_port_state state)
{
    static const char *const names[] = {"has no state", "is down",   "comes up",
                                        "is armed",     "is active", "is active, but deferred"};
    return state <= IBV_PORT_ACTIVE_DEFER ? names[state] : names[0];
}

static void list_port(struct ibv_context *context, const char *name, int port)
{
    struct ibv_port_attr attr;
    if (ibv_query_port(context, (uint8_t)port, &attr))
        tk_log_info("port %s:%d can't be queried", name, port);
    else
        tk_log_info("port %s:%d %s: %s, LID %u, %u Mb/s, %d partition keys, %d GIDs", name, port,
                    state_text(attr.state),
                    attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand",
                    attr.lid, tk_port_rate(&attr), attr.pkey_tbl_len, attr.gid_tbl_len);
}

static void list_device(struct ibv_device *device)
{
    struct ibv_device_attr attr;
    const char *name = ibv_get_device_name(device);
    char why[200];
    errno = 0;
    struct ibv_context *context = ibv_open_device(device);
    if (!context) {
        tk_device_explain_closed(errno, why, sizeof(why));
        tk_log_info("device %s %s", name, why);
        return;
    }
    int ports = ibv_query_device(context, &attr) ? 0 : attr.phys_port_cnt;
    for (int port = 1; port <= ports; port++)
        list_port(context, name, port);
    ibv_close_device(context);
}

static bool is_asked(const char *ranks)
{
    return tk_settings.ibv_list_ports && tk_number_in_ranges(ranks, tk_peers.me);
}

enum tk_status tk_ports_list(void)
{
    const char *ranks = tk_settings.ibv_list_ports_nodes;
    int count = 0;
    if (!is_asked(ranks))
        return TK_OK;
    if (tk_verbs_library_open() != TK_OK)
        return TK_FAIL;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list || count == 0)
        tk_log_info("there is no RDMA device on this host");
    for (int i = 0; list && i < count; i++)
        list_device(list[i]);
    if (list)
        ibv_free_device_list(list);
    return TK_OK;
}
