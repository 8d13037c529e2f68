/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Owns the objects behind the interface's handles and the list of endpoints. A lock guards the
 * list; everything else is written before clients see the handles. */
#include "config.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "team/objects.h"

_Static_assert(GASNET_MAXEPS == tk_endpoints_max,
               "tables of peers have a record for each endpoint");

struct trunkline_client tk_client;
struct trunkline_segment tk_segment = {.client = &tk_client, .area = {.fd = -1}};
struct trunkline_ep tk_ep = {.client = &tk_client, .capabilities = GEX_EP_CAPABILITY_ALL};
struct trunkline_tm tk_tm = {.ep = &tk_ep};
struct tk_ep_pair tk_pairs[tk_endpoints_max * tk_pair_columns];

static tk_lock_t eps_lock = TK_LOCK_INIT;
static struct trunkline_ep *eps[GASNET_MAXEPS] = {&tk_ep};
static gex_EP_Index_t ep_count = 1;

struct trunkline_ep *tk_ep_create(gex_EP_Capabilities_t capabilities, gex_Flags_t flags)
{
    struct trunkline_ep *ep = calloc(1, sizeof(*ep));
    if (!ep)
        tk_panic("out of memory for an endpoint");
    tk_lock(&eps_lock);
    bool is_full = ep_count == GASNET_MAXEPS;
    if (!is_full) {
        *ep = (struct trunkline_ep){
            .client = &tk_client, .index = ep_count, .capabilities = capabilities, .flags = flags};
        eps[ep_count++] = ep;
    }
    tk_unlock(&eps_lock);
    if (!is_full)
        return ep;
    free(ep);
    return NULL;
}

/* No lock: a caller got the index together with the endpoint, so the entry was written before. */
struct trunkline_ep *tk_ep_at(gex_EP_Index_t index)
{
    return index < GASNET_MAXEPS ? eps[index] : NULL;
}
