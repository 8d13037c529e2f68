/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of gasnet.h that are not inline functions over EX calls: attach, and access to the
 * objects behind the interface. Owns the handle of the team used by legacy calls, a constant; no
 * lock. */
#include "config.h"

#include <stdlib.h>

#include "api/check.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "gasnet.h"
#include "message/message.h"
#include "start/start.h"
#include "team/objects.h"

const gex_TM_t trunkline_world = &tk_tm;

gex_TM_t trunkline_world_for(const char *call)
{
    if (!(tk_client.flags & GEX_FLAG_USES_GASNET1))
        tk_panic("%s was called, but gex_Client_Init was called without GEX_FLAG_USES_GASNET1",
                 call);
    return &tk_tm;
}

void trunkline_wrong_count(const char *call, int numargs, int given)
{
    tk_panic("%s: numargs is %d, but %d arguments are given", call, numargs, given);
}

/* Legacy entries do not state the category or the number of arguments of a handler: any is
 * accepted. */
static gex_AM_Entry_t entry_of(const gasnet_handlerentry_t *old)
{
    return (gex_AM_Entry_t){.gex_index = old->index,
                            .gex_fnptr = old->fnptr,
                            .gex_flags =
                                GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP,
                            .gex_nargs = tk_nargs_any};
}

static int register_handlers(gasnet_handlerentry_t *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!table[i].fnptr) {
            tk_verbose_error("gasnet_attach: entry %zu, index %u, has no function", i,
                             table[i].index);
            return GASNET_ERR_RESOURCE;
        }
    gex_AM_Entry_t *entries = calloc(count, sizeof(*entries));
    if (!entries)
        tk_panic("out of memory for %zu handlers", count);
    for (size_t i = 0; i < count; i++)
        entries[i] = entry_of(&table[i]);
    int rc = tk_handlers_enter("gasnet_attach", entries, count);
    for (size_t i = 0; i < count && rc == GASNET_OK; i++)
        table[i].index = entries[i].gex_index;
    free(entries);
    return rc;
}

/* GASNET_OK if the segment may be created. */
static int check_attach(uintptr_t segsize, int numentries)
{
    if (!tk_is_started() || tk_ep.segment) {
        tk_verbose_error("gasnet_attach: %s", tk_is_started() ? "this process has a segment already"
                                                              : "gasnet_init must be called first");
        return GASNET_ERR_NOT_INIT;
    }
    bool is_wrong = segsize % GASNET_PAGESIZE != 0 || segsize > gasnet_getMaxLocalSegmentSize();
    if (is_wrong && !tk_is_everything) {
        tk_verbose_error("gasnet_attach: segsize %zu is not a multiple of %d up to %zu",
                         (size_t)segsize, GASNET_PAGESIZE, (size_t)gasnet_getMaxLocalSegmentSize());
        return GASNET_ERR_BAD_ARG;
    }
    if (numentries < 0) {
        tk_verbose_error("gasnet_attach: numentries is %d", numentries);
        return GASNET_ERR_BAD_ARG;
    }
    return GASNET_OK;
}

/* A rank whose arguments or handlers are wrong still takes part, because the others wait for all
 * ranks. */
int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
                  uintptr_t minheapoffset)
{
    gex_Segment_t segment;
    (void)minheapoffset;
    int rc = check_attach(segsize, numentries);
    if (rc == GASNET_ERR_BAD_ARG)
        tk_attach(0);
    if (rc != GASNET_OK)
        return rc;
    rc = gex_Segment_Attach(&segment, &tk_tm, segsize ? segsize : GASNET_PAGESIZE);
    if (rc != GASNET_OK)
        return rc;
    if (table && numentries > 0)
        rc = register_handlers(table, (size_t)numentries);
    gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED);
    return rc;
}

void gasnet_QueryGexObjects(gex_Client_t *client_p, gex_EP_t *endpoint_p, gex_TM_t *tm_p,
                            gex_Segment_t *segment_p)
{
    if (client_p)
        *client_p = &tk_client;
    if (endpoint_p)
        *endpoint_p = &tk_ep;
    if (tm_p)
        *tm_p = &tk_tm;
    if (segment_p)
        *segment_p = tk_ep.segment;
}
