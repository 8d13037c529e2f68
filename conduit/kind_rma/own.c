/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Device memory of this process by endpoint, when devices are given back, and the end of a job
 * whose ranks do not understand each other. No state, no lock of its own. */
#include "config.h"

#include "base/report.h"
#include "kind_rma/kind_rma_private.h"
#include "team/objects.h"

const struct tk_kind_memory *tk_kind_memory_of(uint32_t endpoint)
{
    const struct trunkline_ep *ep = endpoint < tk_endpoints_max ? tk_ep_at(endpoint) : NULL;
    return ep && ep->segment ? ep->segment->kind_memory : NULL;
}

void tk_kind_release(struct tk_kind_device *device)
{
    if (tk_kind_device_uses(device) != tk_kind_copy_holds(device) + tk_kind_ipc_holds(device) + 1)
        return;
    tk_kind_ipc_release(device);
    tk_kind_copy_release(device);
}

void tk_kind_nonsense(const struct tk_peer *from, const char *what)
{
    tk_panic("rank %u (%s, pid %d) %s; the ranks of a job must be built against one version of "
             "this library",
             from->rank, from->host, from->pid, what);
}
