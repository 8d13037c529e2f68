/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the library makes of its one device: the row of doc/devices.md (contrib/check/devices.sh),
 * out of what it decided at the start of a job of two processes. No state. */
#include "config.h"

#include "contrib/info/info.h"
#include "gasnetex.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/verbs_state.h"

#include <stdio.h>
#include <string.h>

static const char *link_text(const struct tk_rail *rail)
{
    return rail->is_iwarp ? "iWARP" : rail->address.is_ethernet ? "RoCE" : "InfiniBand";
}

static const char *atomics_text(void)
{
    return tk_verbs.atomics == TK_ATOMIC_NONE     ? "by message"
           : tk_verbs.atomics == TK_ATOMIC_DEVICE ? "by the device, also on a rank's own memory"
                                                  : "by the device";
}

/* Only devices matter here: ranks that share no memory do not use XRC. */
static const char *xrc_text(void)
{
    const char *answer = tk_xrc_describe();
    bool is_refused = !strncmp(answer, "no XRC", strlen("no XRC"));
    return is_refused && !strstr(answer, "no ranks share memory") ? "no" : "yes";
}

static void print_row(void)
{
    const struct tk_rail *rail = &tk_verbs.rails[0];
    printf("| %s | %s | %zu B | %d | %s | %s | %s | %s |\n", link_text(rail),
           rail->by_cm ? "librdmacm" : "by itself", tk_verbs.inline_limit, tk_verbs.list_max,
           tk_srq_in_use() ? "shared" : "for each peer", xrc_text(), atomics_text(),
           rail->address.paging == TK_PAGING_USED ? "paged" : "pinned");
    fflush(stdout);
}

int info_device_job(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team;
    if (gex_Client_Init(&client, &endpoint, &team, "trunkline_info", &argc, &argv, 0) != GASNET_OK)
        return 1;
    if (gex_TM_QueryRank(team) == 0)
        print_row();
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(0);
}
