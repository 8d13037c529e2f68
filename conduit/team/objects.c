/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The objects themselves. Owns the list of endpoints, under a lock; everything else is written
 * before clients see the handles. */
#include "config.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "team/objects.h"

_Static_assert(GASNET_MAXEPS == tk_endpoints_max, "what others may know of our endpoints");

struct trunkline_client tk_client;
struct trunkline_segment tk_segment = {.client = &tk_client, .area = {.fd = -1}};
struct trunkline_ep tk_ep = {.client = &tk_client};
struct trunkline_tm tk_tm = {.ep = &tk_ep};
struct tk_ep_pair tk_pairs[tk_endpoints_max * tk_pair_columns];

static tk_lock_t list_lock = TK_LOCK_INIT;
static struct trunkline_ep *list[GASNET_MAXEPS] = {&tk_ep};
static gex_EP_Index_t list_length = 1;

void tk_teams_open(void)
{
    tk_tm.offsets = tk_peers.offsets;
    for (size_t i = 0; i < sizeof(tk_pairs) / sizeof(tk_pairs[0]); i++)
        tk_pairs[i].offsets = tk_peers.far;
}

struct trunkline_ep *tk_ep_create(gex_Flags_t flags)
{
    struct trunkline_ep *ep = calloc(1, sizeof(*ep));
    if (!ep)
        tk_panic("out of memory for an endpoint");
    tk_lock(&list_lock);
    bool is_full = list_length == GASNET_MAXEPS;
    if (!is_full) {
        *ep = (struct trunkline_ep){.client = &tk_client, .index = list_length, .flags = flags};
        list[list_length++] = ep;
    }
    tk_unlock(&list_lock);
    if (!is_full)
        return ep;
    free(ep);
    return NULL;
}

/* Whoever has the index got it with the endpoint: the entry was written before. */
struct trunkline_ep *tk_ep_at(gex_EP_Index_t index)
{
    return index < GASNET_MAXEPS ? list[index] : NULL;
}
