/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The transfers of gasnet.h that EX does not have: gasnet_memset*, and gets whose value is returned
 * by the wait. Owns the pool of cells for these values, which has a lock of its own. */
#include "config.h"

#include <stdlib.h>

#include "api/check.h"
#include "base/pool.h"
#include "gasnet.h"
#include "vector/fill.h"
#include "team/objects.h"
#include "trace/trace.h"

static struct tk_fill legacy_fill(const char *call, gasnet_node_t node, void *dest, int val,
                                  size_t nbytes)
{
    (void)call;
    TK_CHECK_MAY_COMMUNICATE(call);
    TK_CHECK_RANK(call, TRUNKLINE_WORLD(call), node);
    TK_CHECK(tk_peer_has(tk_peer_of(TRUNKLINE_WORLD(call), node), (uintptr_t)dest, nbytes),
             "%s: [%p, +%zu) is not inside the segment of rank %u", call, dest, nbytes, node);
    return (struct tk_fill){.peer = tk_peer_of(TRUNKLINE_WORLD(call), node),
                            .remote = (uintptr_t)dest,
                            .nbytes = nbytes,
                            .value = (unsigned char)val};
}

void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
    struct tk_fill f = legacy_fill("gasnet_memset", node, dest, val, nbytes);
    TK_TRACED(fill, f.peer->rank, nbytes);
    tk_fill_blocking(&f);
}

gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
    struct tk_fill f = legacy_fill("gasnet_memset_nb", node, dest, val, nbytes);
    TK_TRACED(fill, f.peer->rank, nbytes);
    return tk_fill_start(&f);
}

void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
    struct tk_fill f = legacy_fill("gasnet_memset_nbi", node, dest, val, nbytes);
    TK_TRACED(fill, f.peer->rank, nbytes);
    tk_fill_implicit(&f);
}

/* The value arrives in the low-order bytes; the rest stays zero. */
struct trunkline_valget {
    struct tk_pool_item item; /* while free */
    gasnet_register_value_t value;
    gasnet_handle_t handle;
};

static struct tk_pool valget_cells = {.lock = TK_LOCK_INIT};

static struct trunkline_valget *take_cell(void)
{
    struct trunkline_valget *cell = tk_pool_take(&valget_cells);
    if (!cell && !(cell = malloc(sizeof(*cell))))
        tk_panic("out of memory for the value of a get");
    cell->value = 0;
    return cell;
}

static void *valget_low_bytes(gasnet_register_value_t *value, size_t nbytes)
{
    return (char *)value +
           (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : sizeof(*value) - nbytes);
}

gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void *src, size_t nbytes)
{
    TK_CHECK(nbytes >= 1 && nbytes <= SIZEOF_GASNET_REGISTER_VALUE_T,
             "gasnet_get_nb_val: a value has 1 to %d bytes, not %zu",
             (int)SIZEOF_GASNET_REGISTER_VALUE_T, nbytes);
    struct trunkline_valget *cell = take_cell();
    cell->handle = gex_RMA_GetNB(TRUNKLINE_WORLD("gasnet_get_nb_val"),
                                 valget_low_bytes(&cell->value, nbytes), node, src, nbytes, 0);
    return cell;
}

gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle)
{
    gex_Event_Wait(handle->handle);
    gasnet_register_value_t value = handle->value;
    tk_pool_give(&valget_cells, handle);
    return value;
}
