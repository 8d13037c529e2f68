/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Owns the tables of client handlers, one for each endpoint that has any. The function of a slot is
 * published last, so a handler registered by one thread while another polls is either absent or
 * complete. Registration takes a lock; look-up takes none. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "message/message.h"

enum { index_end = tk_handler_count };

gex_AM_Entry_t tk_handler_entries[index_end];
/* Separate from the entries: indexed by a shift instead of a multiplication. */
gex_AM_Fn_t tk_short_functions[index_end], tk_payload_functions[index_end];
static tk_lock_t handlers_lock = TK_LOCK_INIT;
static struct tk_handler_table tables[tk_endpoints_max] = {
    {tk_handler_entries, tk_short_functions, tk_payload_functions}};
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

static void handler_enter(const struct tk_handler_table *to, const gex_AM_Entry_t *entry,
                          unsigned index)
{
    to->entries[index].gex_index = (gex_AM_Index_t)index;
    to->entries[index].gex_flags = entry->gex_flags;
    to->entries[index].gex_nargs = entry->gex_nargs;
    to->entries[index].gex_cdata = entry->gex_cdata;
    to->entries[index].gex_name = entry->gex_name;
    to->entries[index].gex_fnptr = entry->gex_fnptr;
    if (entry->gex_flags & GEX_FLAG_AM_SHORT)
        __atomic_store_n(&to->shorts[index], entry->gex_fnptr, __ATOMIC_RELEASE);
    if (entry->gex_flags & GEX_FLAG_AM_MEDLONG)
        __atomic_store_n(&to->payloads[index], entry->gex_fnptr, __ATOMIC_RELEASE);
}

static int handler_enter_fixed(const char *call, const struct tk_handler_table *to,
                               const gex_AM_Entry_t *entry)
{
    unsigned index = entry->gex_index;
    if (index < GEX_AM_INDEX_BASE || to->entries[index].gex_fnptr) {
        tk_verbose_error("%s: index %u %s; clients have %d..255", call, index,
                         index < GEX_AM_INDEX_BASE ? "belongs to the library" : "is taken",
                         GEX_AM_INDEX_BASE);
        return GASNET_ERR_RESOURCE;
    }
    handler_enter(to, entry, index);
    return GASNET_OK;
}

static int handler_enter_highest(const char *call, const struct tk_handler_table *to,
                                 gex_AM_Entry_t *entry)
{
    for (unsigned index = index_end; index-- > GEX_AM_INDEX_BASE;)
        if (!to->entries[index].gex_fnptr) {
            handler_enter(to, entry, index);
            entry->gex_index = (gex_AM_Index_t)index;
            return GASNET_OK;
        }
    tk_verbose_error("%s: all %d indices are taken", call, index_end - GEX_AM_INDEX_BASE);
    return GASNET_ERR_RESOURCE;
}

const struct tk_handler_table *tk_handler_table(unsigned endpoint)
{
    const struct tk_handler_table *table = &tables[endpoint];
    return __atomic_load_n(&table->entries, __ATOMIC_ACQUIRE) ? table : NULL;
}

/* With the lock held. The entries are published last. */
static const struct tk_handler_table *table_make(unsigned endpoint)
{
    struct tk_handler_table *table = &tables[endpoint];
    if (table->entries)
        return table;
    gex_AM_Entry_t *entries = calloc(index_end, sizeof(*entries));
    table->shorts = calloc(index_end, sizeof(*table->shorts));
    table->payloads = calloc(index_end, sizeof(*table->payloads));
    if (!entries || !table->shorts || !table->payloads)
        tk_panic("out of memory for the handlers of endpoint %u", endpoint);
    __atomic_store_n(&table->entries, entries, __ATOMIC_RELEASE);
    return table;
}

/* Fixed indices first, so that automatic ones never take an index that the same table requests. */
static int enter_all(unsigned endpoint, const char *call, gex_AM_Entry_t *table, size_t count)
{
    int rc = GASNET_OK;
    tk_lock(&handlers_lock);
    const struct tk_handler_table *to = table_make(endpoint);
    for (size_t i = 0; i < count && rc == GASNET_OK; i++)
        if (table[i].gex_index)
            rc = handler_enter_fixed(call, to, &table[i]);
    for (size_t i = 0; i < count && rc == GASNET_OK; i++)
        if (!table[i].gex_index)
            rc = handler_enter_highest(call, to, &table[i]);
    tk_unlock(&handlers_lock);
    return rc;
}

int tk_handlers_enter(const char *call, gex_AM_Entry_t *table, size_t count)
{
    return enter_all(0, call, table, count);
}

int tk_handlers_register(unsigned endpoint, gex_AM_Entry_t *table, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_entry(&table[i]);
    return enter_all(endpoint, "gex_EP_RegisterHandlers", table, count);
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
