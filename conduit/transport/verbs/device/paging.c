/* SPDX-License-Identifier: BSD-3-Clause
 *
 * On-demand paging (ODP): may registrations of segments, and those made on the fly, follow the page
 * tables instead of pinning? Owns the decision, made once before anything is registered; no lock.
 * Buffers of messages stay pinned: a receive that waits for a page is answered by RNR. */
#include "config.h"

#include "base/report.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* The operations that access paged memory, from either end. */
static const struct capability {
    uint32_t bit;
    const char *name;
} needed[] = {{IBV_ODP_SUPPORT_SEND, "sends"},
              {IBV_ODP_SUPPORT_WRITE, "RDMA writes"},
              {IBV_ODP_SUPPORT_READ, "RDMA reads"}};

/* Names a capability that the device of this rail lacks; NULL: it lacks none. */
static const char *find_lack(const struct tk_rail *rail, const struct ibv_device_attr_ex *attr)
{
    if (rail->is_iwarp || !(attr->odp_caps.general_caps & IBV_ODP_SUPPORT))
        return "anything";
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!(attr->odp_caps.per_transport_caps.rc_odp_caps & needed[i].bit))
            return needed[i].name;
    return NULL;
}

static bool can_page(const struct tk_rail *rail, bool *has_atomics)
{
    struct ibv_device_attr_ex attr = {.comp_mask = 0};
    if (ibv_query_device_ex(rail->context, NULL, &attr) != 0)
        attr.odp_caps.general_caps = 0;
    const char *lack = find_lack(rail, &attr);
    if (lack && tk_settings.odp_verbose > 1)
        tk_log_warn("GASNET_USE_ODP=1, but device %s has no on-demand paging for %s on reliable "
                    "connections, so memory is pinned",
                    rail->address.device, lack);
    if (!(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC))
        *has_atomics = false;
    return !lack;
}

/* All devices of this process use paging or none: memory is registered with each, and a device that
 * pins it removes the benefit. An atomic may hit a missing page: if a device can't wait for the
 * page then, devices execute no atomics. */
void tk_paging_choose(void)
{
    bool can = tk_settings.use_odp, has_atomics = true;
    for (uint32_t i = 0; tk_settings.use_odp && i < tk_verbs.rail_count; i++)
        can = can_page(&tk_verbs.rails[i], &has_atomics) && can;
    for (uint32_t i = 0; tk_settings.use_odp && i < tk_verbs.rail_count; i++) {
        struct tk_port_address *address = &tk_verbs.rails[i].address;
        address->paging = can ? TK_PAGING_USED : TK_PAGING_MISSED;
        if (can && !has_atomics)
            address->atomics = IBV_ATOMIC_NONE;
    }
    tk_verbs.is_paged = can;
}

/* Rank 0 reports for all, in one line. */
void tk_paging_report(void)
{
    uint32_t missed = 0, first = 0;
    if (tk_peers.me != 0 || tk_settings.odp_verbose == 0)
        return;
    for (uint32_t r = tk_peers.size; r-- > 0;) {
        const struct tk_peer_info *info = tk_peer_info_of(r);
        if (info->rails == 0 || tk_peer_info_rail(info, 0)->paging != TK_PAGING_MISSED)
            continue;
        missed++;
        first = r;
    }
    if (missed > 0)
        tk_log_warn(
            "GASNET_USE_ODP=1, but the devices of %u of %u ranks (the first: rank %u on %s) "
            "have no on-demand paging for what this library does; these ranks pin memory. "
            "GASNET_ODP_VERBOSE=2 names the devices, 0 suppresses this line",
            missed, tk_peers.size, first, tk_peer_info_of(first)->host.name);
}
