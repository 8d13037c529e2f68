/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The RDMA devices of this host with their ports and GIDs, and which ports a process would use and
 * why, by the functions with which a job chooses, for the first process of the host. Owns the
 * verdicts. / */
#include "config.h"

#include "contrib/info/info.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ports_max = 64, name_max = 80, gids_shown = 16 };

static struct {
    char device[32];
    int port;
    bool is_used;
    char text[200];
} verdicts[ports_max];
static unsigned verdict_count, used_count, broken_count;

static void take_verdict(const char *device, int port, bool is_used, const char *text)
{
    used_count += is_used;
    broken_count += port == 0;
    if (verdict_count == ports_max)
        return;
    snprintf(verdicts[verdict_count].device, sizeof(verdicts[0].device), "%s", device);
    snprintf(verdicts[verdict_count].text, sizeof(verdicts[0].text), "%s", text);
    verdicts[verdict_count].port = port;
    verdicts[verdict_count++].is_used = is_used;
}

static const char *state_text(enum ibv_port_state state)
{
    return state == IBV_PORT_ACTIVE ? "active"
           : state == IBV_PORT_DOWN ? "down"
           : state == IBV_PORT_INIT ? "waiting for a subnet manager"
                                    : "not active yet";
}

static void print_verdict(const char *device, int port)
{
    for (unsigned i = 0; i < verdict_count; i++)
        if (verdicts[i].port == port && !strcmp(verdicts[i].device, device))
            info_fact("", "%s%s", verdicts[i].is_used ? "used: " : "not used: it ",
                      verdicts[i].text);
}

bool info_port_is_used(const char *device, int port)
{
    for (unsigned i = 0; i < verdict_count; i++)
        if (verdicts[i].port == port && !strcmp(verdicts[i].device, device))
            return verdicts[i].is_used;
    return false;
}

static void print_gid(const struct ibv_gid_entry *entry)
{
    struct tk_gid gid = {.type = (uint8_t)entry->gid_type};
    char text[tk_gid_text_size], interface[IF_NAMESIZE] = "";
    memcpy(gid.raw, entry->gid.raw, sizeof(gid.raw));
    tk_gid_text(&gid, text);
    if (entry->ndev_ifindex > 0)
        if_indextoname(entry->ndev_ifindex, interface);
    info_fact("", "GID %u: %s, %s%s%s", entry->gid_index, text, tk_gid_type_text(&gid),
              *interface ? ", " : "", interface);
}

static void print_gids(struct ibv_context *context, int port, int length)
{
    int shown = 0;
    for (int i = 0; i < length && shown < gids_shown; i++) {
        static const union ibv_gid none;
        struct ibv_gid_entry entry;
        if (ibv_query_gid_ex(context, (uint32_t)port, (uint32_t)i, &entry, 0) ||
            !memcmp(&entry.gid, &none, sizeof(none)))
            continue;
        print_gid(&entry);
        shown++;
    }
}

static void print_port(struct ibv_context *context, const char *device, int port)
{
    struct ibv_port_attr attr;
    char name[name_max];
    snprintf(name, sizeof(name), "%s:%d", device, port);
    if (ibv_query_port(context, (uint8_t)port, &attr)) {
        info_fact(name, "can't be queried");
        return;
    }
    info_fact(name, "%s, %s, LID %u, %u Mb/s, MTU %d (of %d)", state_text(attr.state),
              attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", attr.lid,
              tk_port_rate(&attr), 128 << attr.active_mtu, 128 << attr.max_mtu);
    print_gids(context, port, attr.gid_tbl_len);
    print_verdict(device, port);
}

static void print_open_device(struct ibv_context *context, const char *name)
{
    struct ibv_device_attr_ex attr;
    memset(&attr, 0, sizeof(attr));
    if (ibv_query_device_ex(context, NULL, &attr)) {
        info_fact(name, "can't be queried");
        return;
    }
    const struct ibv_device_attr *a = &attr.orig_attr;
    bool is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
    info_fact(name, "%s, vendor 0x%x, firmware %s", is_iwarp ? "iWARP" : "InfiniBand or RoCE",
              a->vendor_id, a->fw_ver[0] ? a->fw_ver : "unknown");
    info_fact("", "queue pairs %d, work requests %d, atomics %s, shared receive queues %d",
              a->max_qp, a->max_qp_wr, a->atomic_cap == IBV_ATOMIC_NONE ? "no" : "yes", a->max_srq);
    info_fact("", "on-demand paging %s, XRC %s",
              attr.odp_caps.general_caps & IBV_ODP_SUPPORT ? "yes" : "no",
              a->device_cap_flags & IBV_DEVICE_XRC ? "yes" : "no");
    for (int port = 1; port <= a->phys_port_cnt; port++)
        print_port(context, name, port);
}

static void print_device(struct ibv_device *device)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_context *context = ibv_open_device(device);
    if (context)
        print_open_device(context, name);
    else
        print_verdict(name, 0);
    if (context)
        ibv_close_device(context);
}

static void judge(int devices)
{
    if (devices == 0 && !strcmp(tk_settings.softhca, "never"))
        info_finding(INFO_WRONG,
                     "this host has no RDMA device, and GASNET_SOFTHCA=never forbids the software "
                     "one: jobs of several hosts fail; load the device's driver");
    else if (devices == 0)
        info_finding(INFO_ADVICE,
                     "this host has no RDMA device: jobs share memory inside the host and go over "
                     "softhca between hosts; if it should have one, load its driver");
    else if (used_count == 0)
        info_finding(INFO_WRONG, "none of the ports of this host can be used (--devices has the "
                                 "reason for each): jobs of several hosts fail or go over softhca");
    else
        info_finding(INFO_GOOD, "%u port%s would be used", used_count, used_count > 1 ? "s" : "");
    for (unsigned i = 0; i < verdict_count; i++)
        if (verdicts[i].port == 0)
            info_finding(INFO_WRONG, "device %s %s", verdicts[i].device, verdicts[i].text);
}

static void close_chosen(struct tk_choice *choice)
{
    for (uint32_t i = 0; i < choice->count; i++) {
        bool is_last = true;
        for (uint32_t j = i + 1; j < choice->count; j++)
            is_last &= choice->rails[j].context != choice->rails[i].context;
        if (is_last)
            ibv_close_device(choice->rails[i].context);
    }
    free(choice->rails);
}

void info_devices(void)
{
    struct tk_choice choice;
    int devices = 0;
    struct ibv_device **list =
        tk_verbs_library_open() == TK_OK ? ibv_get_device_list(&devices) : NULL;
    info_section("RDMA devices");
    if (!list || devices == 0)
        info_fact("none", "found by libibverbs");
    if (tk_rails_explain(&choice, take_verdict) != TK_OK)
        info_finding(INFO_WRONG, "ports can't be chosen (see the line above)");
    for (int i = 0; list && i < devices; i++)
        print_device(list[i]);
    close_chosen(&choice);
    if (list)
        ibv_free_device_list(list);
    judge(list ? devices : 0);
}
