/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Owns the table of client handlers. The function of a slot is published last, so a handler
 * registered by one thread while another polls is either absent or complete. Registration takes a
 * lock; look-up takes none. */
#include "config.h"

#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "message/message.h"

enum { index_end = tk_handler_count };

gex_AM_Entry_t tk_handler_entries[index_end];
/* Separate from the entries: indexed by a shift instead of a multiplication. */
gex_AM_Fn_t tk_short_functions[index_end], tk_payload_functions[index_end];
static tk_lock_t handlers_lock = TK_LOCK_INIT;
static bool handlers_shut;

const char *tk_entry_name(const gex_AM_Entry_t *entry)
{
    return entry->gex_name ? entry->gex_name : "(unnamed)";
}

static void check_entry(const gex_AM_Entry_t *entry)
{
    gex_Flags_t category = entry->gex_flags & (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG);
    gex_Flags_t role = entry->gex_flags & GEX_FLAG_AM_REQREP;
    const char *name = tk_entry_name(entry);
    if (!entry->gex_fnptr)
        tk_panic("handler '%s' has no function", name);
    if (!category || category == (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG) ||
        ((category & GEX_FLAG_AM_SHORT) && category != GEX_FLAG_AM_SHORT))
        tk_panic(
            "handler '%s': gex_flags 0x%x must name one category: SHORT, MEDIUM, LONG or MEDLONG",
            name, (unsigned)entry->gex_flags);
    if (!role)
        tk_panic("handler '%s': gex_flags 0x%x must include REQUEST, REPLY or REQREP", name,
                 (unsigned)entry->gex_flags);
    if (entry->gex_nargs > tk_max_args)
        tk_panic("handler '%s': gex_nargs %u is above %d", name, entry->gex_nargs, tk_max_args);
}

static void handler_enter(const gex_AM_Entry_t *entry, unsigned index)
{
    tk_handler_entries[index].gex_index = (gex_AM_Index_t)index;
    tk_handler_entries[index].gex_flags = entry->gex_flags;
    tk_handler_entries[index].gex_nargs = entry->gex_nargs;
    tk_handler_entries[index].gex_cdata = entry->gex_cdata;
    tk_handler_entries[index].gex_name = entry->gex_name;
    tk_handler_entries[index].gex_fnptr = entry->gex_fnptr;
    if (entry->gex_flags & GEX_FLAG_AM_SHORT)
        __atomic_store_n(&tk_short_functions[index], entry->gex_fnptr, __ATOMIC_RELEASE);
    if (entry->gex_flags & GEX_FLAG_AM_MEDLONG)
        __atomic_store_n(&tk_payload_functions[index], entry->gex_fnptr, __ATOMIC_RELEASE);
}

static int handler_enter_fixed(const char *call, const gex_AM_Entry_t *entry)
{
    unsigned index = entry->gex_index;
    if (index < GEX_AM_INDEX_BASE || tk_handler_entries[index].gex_fnptr) {
        tk_verbose_error("%s: index %u %s; clients have %d..255", call, index,
                         index < GEX_AM_INDEX_BASE ? "belongs to the library" : "is taken",
                         GEX_AM_INDEX_BASE);
        return GASNET_ERR_RESOURCE;
    }
    handler_enter(entry, index);
    return GASNET_OK;
}

static int handler_enter_highest(const char *call, gex_AM_Entry_t *entry)
{
    for (unsigned index = index_end; index-- > GEX_AM_INDEX_BASE;)
        if (!tk_handler_entries[index].gex_fnptr) {
            handler_enter(entry, index);
            entry->gex_index = (gex_AM_Index_t)index;
            return GASNET_OK;
        }
    tk_verbose_error("%s: all %d indices are taken", call, index_end - GEX_AM_INDEX_BASE);
    return GASNET_ERR_RESOURCE;
}

/* Fixed indices first, so that automatic ones never take an index that the same table requests. */
int tk_handlers_enter(const char *call, gex_AM_Entry_t *table, size_t count)
{
    int rc = GASNET_OK;
    tk_lock(&handlers_lock);
    for (size_t i = 0; i < count && rc == GASNET_OK; i++)
        if (table[i].gex_index)
            rc = handler_enter_fixed(call, &table[i]);
    for (size_t i = 0; i < count && rc == GASNET_OK; i++)
        if (!table[i].gex_index)
            rc = handler_enter_highest(call, &table[i]);
    tk_unlock(&handlers_lock);
    return rc;
}

int tk_handlers_register(gex_AM_Entry_t *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_entry(&table[i]);
    return tk_handlers_enter("gex_EP_RegisterHandlers", table, count);
}

bool tk_handlers_are_shut(void)
{
    return __atomic_load_n(&handlers_shut, __ATOMIC_RELAXED);
}

/* Without the lock: its holder may have been stopped for good. */
void tk_handlers_shut(void)
{
    __atomic_store_n(&handlers_shut, true, __ATOMIC_RELAXED);
    for (unsigned index = GEX_AM_INDEX_BASE; index < index_end; index++) {
        __atomic_store_n(&tk_short_functions[index], NULL, __ATOMIC_RELEASE);
        __atomic_store_n(&tk_payload_functions[index], NULL, __ATOMIC_RELEASE);
    }
}
