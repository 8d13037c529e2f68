/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet-1 puts, gets, values, fills, handles, implicit handles and access regions, to self and to
 * all others, at any alignment. Each rank writes only its own slot of each segment, and reads that
 * back or lets the owner look behind a barrier. See legacy.h. */
#include "config.h"

#include "legacy.h"

#include <string.h>

enum { BIGGEST = 150001, GUARD = 16, EACH_PUT = 6, EACH_GET = 6, EACH_FILL = 3, HANDLES = 24 };

static const size_t sizes[] = {0, 1, 3, 8, 9, 100, 4097, 65535, 65536, 65537, BIGGEST};
static char source[BIGGEST + 8], back[BIGGEST + 2 * GUARD];

/* ---- one of each kind */

/* For forms whose source is free on return the source is overwritten before the sync. */
static void put(int form, gasnet_node_t to, char *dest, char *src, size_t size)
{
    gasnet_handle_t handle;

    switch (form) {
    case 0:
        gasnet_put(to, dest, src, size);
        break;
    case 1:
        gasnet_put_bulk(to, dest, src, size);
        break;
    case 2:
        handle = gasnet_put_nb(to, dest, src, size);
        memset(src, 0xee, size);
        gasnet_wait_syncnb(handle);
        break;
    case 3:
        handle = gasnet_put_nb_bulk(to, dest, src, size);
        while (gasnet_try_syncnb(handle) == GASNET_ERR_NOT_READY)
            ;
        break;
    case 4:
        gasnet_put_nbi(to, dest, src, size);
        memset(src, 0xee, size);
        gasnet_wait_syncnbi_puts();
        break;
    case 5:
        gasnet_put_nbi_bulk(to, dest, src, size);
        while (gasnet_try_syncnbi_puts() == GASNET_ERR_NOT_READY)
            ;
        break;
    }
    memset(src, 0xee, size);
}

static void get(int form, char *dest, gasnet_node_t from, char *src, size_t size)
{
    gasnet_handle_t handle;

    switch (form) {
    case 0:
        gasnet_get(dest, from, src, size);
        break;
    case 1:
        gasnet_get_bulk(dest, from, src, size);
        break;
    case 2:
        gasnet_wait_syncnb(gasnet_get_nb(dest, from, src, size));
        break;
    case 3:
        handle = gasnet_get_nb_bulk(dest, from, src, size);
        while (gasnet_try_syncnb_nopoll(handle) == GASNET_ERR_NOT_READY)
            ;
        break;
    case 4:
        gasnet_get_nbi(dest, from, src, size);
        gasnet_wait_syncnbi_gets();
        break;
    case 5:
        gasnet_get_nbi_bulk(dest, from, src, size);
        while (gasnet_try_syncnbi_gets() == GASNET_ERR_NOT_READY)
            ;
        break;
    }
}

static void fill(int form, gasnet_node_t to, char *dest, int value, size_t size)
{
    if (form == 0)
        gasnet_memset(to, dest, value, size);
    else if (form == 1)
        gasnet_wait_syncnb(gasnet_memset_nb(to, dest, value, size));
    else {
        gasnet_memset_nbi(to, dest, value, size);
        gasnet_wait_syncnbi_puts();
    }
}

/* ---- matrices */

static void check_guards(const char *memory, size_t size)
{
    for (int i = 0; i < GUARD; i++)
        CHECK(memory[i] == 0x33 && memory[GUARD + size + (size_t)i] == 0x33, "written outside");
}

static void item_30_puts_and_gets(gasnet_node_t to, size_t size)
{
    for (int form = 0; form < EACH_PUT; form++) {
        char *src = source + form % 4, *dest = legacy_slot(to, GUARD + (size_t)form * 3 % 8);
        uint64_t seed = job_mix(size, (uint64_t)form);

        job_phase("put and get %d of %zu bytes with rank %u", form, size, (unsigned)to);
        memset(back, 0x33, sizeof back);
        gasnet_put(to, dest - GUARD, back, size + 2 * GUARD);
        job_fill(src, size, seed);
        put(form, to, dest, src, size);
        get(EACH_GET - 1 - form, back + GUARD, to, dest, size);
        CHECK_PATTERN(back + GUARD, size, seed);
        check_guards(back, size);
        gasnet_get(back, to, dest - GUARD, size + 2 * GUARD);
        check_guards(back, size);
    }
}

static void fills(gasnet_node_t to, size_t size)
{
    for (int form = 0; form < EACH_FILL; form++) {
        char *dest = legacy_slot(to, GUARD + 5);
        int value = form == 0 ? 0 : form == 1 ? -1 : 0x7abc; /* the low-order byte is what counts */

        job_phase("fill %d of %zu bytes on rank %u", form, size, (unsigned)to);
        memset(back, 0x33, sizeof back);
        gasnet_put(to, dest - GUARD, back, size + 2 * GUARD);
        fill(form, to, dest, value, size);
        gasnet_get(back, to, dest - GUARD, size + 2 * GUARD);
        check_guards(back, size);
        for (size_t i = 0; i < size; i++)
            CHECK(back[GUARD + i] == (char)value, "byte %zu of %zu", i, size);
    }
}

/* Empty transfers must not access any address. */
static void item_30_nothing(gasnet_node_t to)
{
    char *nowhere = (char *)(uintptr_t)0x10;

    job_phase("nothing, with rank %u", (unsigned)to);
    for (int form = 0; form < EACH_PUT; form++) {
        put(form, to, nowhere, source, 0);
        get(form, nowhere, to, nowhere, 0);
        fill(form % EACH_FILL, to, nowhere, 1, 0);
    }
    CHECK(gasnet_put_nb_bulk(to, nowhere, source, 0) == GASNET_INVALID_HANDLE);
}

/* ---- values */

static gasnet_register_value_t low(gasnet_register_value_t value, size_t nbytes)
{
    return nbytes == 8 ? value : value & (((gasnet_register_value_t)1 << (8 * nbytes)) - 1);
}

static void values(gasnet_node_t to)
{
    gasnet_register_value_t value = (gasnet_register_value_t)0xf1e2d3c4b5a69788u, clear = ~value;
    gasnet_valget_handle_t pending[8];

    job_phase("values with rank %u", (unsigned)to);
    for (size_t nbytes = 1; nbytes <= 8; nbytes++)
        for (int form = 0; form < 3; form++) {
            char *dest = legacy_slot(to, 3 + nbytes * 16);

            gasnet_put(to, dest, &clear, sizeof clear);
            if (form == 0)
                gasnet_put_val(to, dest, value, nbytes);
            else if (form == 1)
                gasnet_wait_syncnb(gasnet_put_nb_val(to, dest, value, nbytes));
            else {
                gasnet_put_nbi_val(to, dest, value, nbytes);
                gasnet_wait_syncnbi_all();
            }
            CHECK(gasnet_get_val(to, dest, nbytes) == low(value, nbytes), "%zu bytes", nbytes);
            if (nbytes < 8)
                CHECK(gasnet_get_val(to, dest + nbytes, 1) == low(clear >> (8 * nbytes), 1));
        }
    for (size_t nbytes = 1; nbytes <= 8; nbytes++)
        pending[nbytes - 1] = gasnet_get_nb_val(to, legacy_slot(to, 3 + nbytes * 16), nbytes);
    for (size_t nbytes = 1; nbytes <= 8; nbytes++) /* the next round's cells were others' before */
        CHECK(gasnet_wait_syncnb_valget(pending[nbytes - 1]) == low(value, nbytes));
}

/* ---- many handles at once */

static void start_all(gasnet_handle_t *handles, gasnet_register_value_t round)
{
    for (unsigned i = 0; i < HANDLES; i++) {
        gasnet_node_t to = (job.rank + i) % job.size;

        handles[i] = i % 5 == 4 ? GASNET_INVALID_HANDLE
                                : gasnet_put_nb_val(to, legacy_slot(to, i * 8), round * 100 + i, 8);
    }
}

static void check_all(gasnet_register_value_t round)
{
    for (unsigned i = 0; i < HANDLES; i++) {
        gasnet_node_t to = (job.rank + i) % job.size;

        CHECK(i % 5 == 4 || gasnet_get_val(to, legacy_slot(to, i * 8), 8) == round * 100 + i);
    }
}

static int all_invalid(const gasnet_handle_t *handles)
{
    for (unsigned i = 0; i < HANDLES; i++)
        if (handles[i] != GASNET_INVALID_HANDLE)
            return 0;
    return 1;
}

static void sync_all(int form, gasnet_handle_t *handles)
{
    if (form == 0)
        gasnet_wait_syncnb_all(handles, HANDLES);
    while (form == 1 && gasnet_try_syncnb_all(handles, HANDLES) == GASNET_ERR_NOT_READY)
        ;
    while (form == 2 && gasnet_try_syncnb_all_nopoll(handles, HANDLES) == GASNET_ERR_NOT_READY)
        ;
    while (form == 3 && !all_invalid(handles))
        gasnet_wait_syncnb_some(handles, HANDLES);
    while (form == 4 && !all_invalid(handles))
        gasnet_try_syncnb_some(handles, HANDLES);
    while (form == 5 && !all_invalid(handles))
        gasnet_try_syncnb_some_nopoll(handles, HANDLES);
}

static void item_23_arrays_of_handles(void)
{
    gasnet_handle_t handles[HANDLES];

    for (int form = 0; form < 6; form++) {
        job_phase("arrays of handles, form %d", form);
        start_all(handles, (gasnet_register_value_t)form);
        sync_all(form, handles);
        CHECK(all_invalid(handles));
        check_all((gasnet_register_value_t)form);
        CHECK(gasnet_try_syncnb_some(handles, HANDLES) == GASNET_OK);
        CHECK(gasnet_try_syncnb_all(handles, 0) == GASNET_OK);
    }
}

/* The handle syncs operations that started inside; the implicit sync those that started before. */
static void item_28_access_regions(void)
{
    gasnet_node_t to = (job.rank + 1) % job.size;
    gasnet_register_value_t outside = 7, inside = 8, got = 0;
    gasnet_handle_t region;

    job_phase("access regions");
    gasnet_wait_syncnbi_all();
    CHECK(gasnet_try_syncnbi_all() == GASNET_OK);
    gasnet_put_nbi_bulk(to, legacy_slot(to, 0), &outside, sizeof outside);
    gasnet_begin_nbi_accessregion();
    gasnet_put_nbi(to, legacy_slot(to, 8), &inside, sizeof inside);
    gasnet_put_nbi_val(to, legacy_slot(to, 16), inside, 8);
    gasnet_memset_nbi(to, legacy_slot(to, 24), 9, 8);
    gasnet_get_nbi(&got, to, legacy_slot(to, 100 * 8), sizeof got);
    gasnet_wait_syncnb(gasnet_memset_nb(to, legacy_slot(to, 32), 10, 8)); /* not part of it */
    region = gasnet_end_nbi_accessregion();
    while (gasnet_try_syncnb(region) == GASNET_ERR_NOT_READY)
        ;
    gasnet_wait_syncnbi_puts();
    CHECK(gasnet_get_val(to, legacy_slot(to, 0), 8) == outside);
    CHECK(gasnet_get_val(to, legacy_slot(to, 8), 8) == inside);
    CHECK(gasnet_get_val(to, legacy_slot(to, 16), 8) == inside);
    CHECK(gasnet_get_val(to, legacy_slot(to, 24), 8) == 0x0909090909090909u);
    CHECK(gasnet_get_val(to, legacy_slot(to, 32), 8) == 0x0a0a0a0a0a0a0a0au);
    gasnet_begin_nbi_accessregion();
    gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
}

/* After the barrier completed puts are visible at their targets. */
static void item_33_seen_at_the_target(void)
{
    job_phase("seen at the target");
    for (gasnet_node_t to = 0; to < job.size; to++)
        gasnet_put_nbi_val(to, legacy_slot(to, 0), job.rank * 3 + 1, 4);
    gasnet_wait_syncnbi_puts();
    legacy_barrier();
    for (gasnet_node_t from = 0; from < job.size; from++) {
        uint32_t seen;

        memcpy(&seen, legacy_my_slot(from), sizeof seen);
        CHECK(seen == from * 3 + 1, "rank %u: %u", (unsigned)from, seen);
    }
    legacy_barrier();
}

/* On a device that is slow to write (LEGACY_SLOW): the call waits for a registered source that is
 * too large to be copied; a fill counts as a put and not as a get. */
static void slow_writes(void)
{
    gasnet_node_t to = (job.rank + 1) % job.size;
    char *registered = legacy_my_slot(MAX_RANKS - 1);

    job_phase("slow writes");
    job_fill(registered, BIGGEST, 5);
    gasnet_handle_t handle = gasnet_put_nb(to, legacy_slot(to, 0), registered, BIGGEST);
    memset(registered, 0xee, BIGGEST);
    gasnet_wait_syncnb(handle);
    gasnet_get(back, to, legacy_slot(to, 0), BIGGEST);
    CHECK_PATTERN(back, BIGGEST, 5);
    gasnet_memset_nbi(to, legacy_slot(to, 0), 6, BIGGEST);
    CHECK(gasnet_try_syncnbi_gets() == GASNET_OK);
    CHECK(gasnet_try_syncnbi_puts() == GASNET_ERR_NOT_READY);
    gasnet_wait_syncnbi_puts();
}

void legacy_rma(void)
{
    if (job_number("LEGACY_SLOW", 0)) {
        slow_writes();
        return;
    }
    for (gasnet_node_t i = 0; i < job.size; i++) {
        gasnet_node_t to = (job.rank + i) % job.size;

        for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            item_30_puts_and_gets(to, sizes[k]);
            fills(to, sizes[k]);
        }
        item_30_nothing(to);
        values(to);
    }
    item_23_arrays_of_handles();
    item_28_access_regions();
    item_33_seen_at_the_target();
}
