/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet-1: vector, indexed and strided transfers, each name once in each form, with the metadata
 * of the old interface; shapes of all kinds are vector.c's. Owned by the one client thread. */
#include "config.h"

#include "legacy.h"

#include <string.h>

#include "gasnet_vis.h"

enum { PIECES = 30, LENGTH = 24, STEP = 40, TOTAL = PIECES * LENGTH, FORMS = 3 };
enum { PLANES = 3, ROWS = 5, ROW = 48, PITCH = 64, PLANE = 512 };

static char source[TOTAL], back[TOTAL]; /* a box has as many bytes */

static void await(int form, gasnet_handle_t handle)
{
    if (form == 1)
        gasnet_wait_syncnb(handle);
    if (form == 2)
        gasnet_wait_syncnbi_all();
}

/* The remote side in pieces, the local one in pieces of another length. */
static void vectors(gasnet_node_t to, int form)
{
    gasnet_memvec_t there[PIECES], here[] = {{source, 100}, {source + 100, TOTAL - 100}};
    gasnet_memvec_t into[] = {{back, 1}, {back + 1, TOTAL - 1}};
    gasnet_handle_t handle = GASNET_INVALID_HANDLE;

    for (int i = 0; i < PIECES; i++)
        there[i] = (gasnet_memvec_t){legacy_slot(to, (size_t)i * STEP), LENGTH};
    if (form == 0)
        gasnet_putv_bulk(to, PIECES, there, 2, here);
    else if (form == 1)
        handle = gasnet_putv_nb_bulk(to, PIECES, there, 2, here);
    else
        gasnet_putv_nbi_bulk(to, PIECES, there, 2, here);
    await(form, handle);
    if (form == 0)
        gasnet_getv_bulk(2, into, to, PIECES, there);
    else if (form == 1)
        handle = gasnet_getv_nb_bulk(2, into, to, PIECES, there);
    else
        gasnet_getv_nbi_bulk(2, into, to, PIECES, there);
    await(form, handle);
}

static void indexes(gasnet_node_t to, int form)
{
    void *there[PIECES], *here[] = {source, source + TOTAL / 2};
    void *into[] = {back, back + TOTAL / 2};
    gasnet_handle_t handle = GASNET_INVALID_HANDLE;

    for (int i = 0; i < PIECES; i++)
        there[i] = legacy_slot(to, (size_t)i * STEP);
    if (form == 0)
        gasnet_puti_bulk(to, PIECES, there, LENGTH, 2, here, TOTAL / 2);
    else if (form == 1)
        handle = gasnet_puti_nb_bulk(to, PIECES, there, LENGTH, 2, here, TOTAL / 2);
    else
        gasnet_puti_nbi_bulk(to, PIECES, there, LENGTH, 2, here, TOTAL / 2);
    await(form, handle);
    if (form == 0)
        gasnet_geti_bulk(2, into, TOTAL / 2, to, PIECES, there, LENGTH);
    else if (form == 1)
        handle = gasnet_geti_nb_bulk(2, into, TOTAL / 2, to, PIECES, there, LENGTH);
    else
        gasnet_geti_nbi_bulk(2, into, TOTAL / 2, to, PIECES, there, LENGTH);
    await(form, handle);
}

/* count[0] is the length of a row in bytes, and no count of elements. */
static void boxes(gasnet_node_t to, int form)
{
    const size_t count[] = {ROW, ROWS, PLANES};
    const size_t there[] = {PITCH, PLANE}, here[] = {ROW, ROW * ROWS};
    gasnet_handle_t handle = GASNET_INVALID_HANDLE;

    if (form == 0)
        gasnet_puts_bulk(to, legacy_slot(to, 0), there, source, here, count, 2);
    else if (form == 1)
        handle = gasnet_puts_nb_bulk(to, legacy_slot(to, 0), there, source, here, count, 2);
    else
        gasnet_puts_nbi_bulk(to, legacy_slot(to, 0), there, source, here, count, 2);
    await(form, handle);
    if (form == 0)
        gasnet_gets_bulk(back, here, to, legacy_slot(to, 0), there, count, 2);
    else if (form == 1)
        handle = gasnet_gets_nb_bulk(back, here, to, legacy_slot(to, 0), there, count, 2);
    else
        gasnet_gets_nbi_bulk(back, here, to, legacy_slot(to, 0), there, count, 2);
    await(form, handle);
}

/* Checks that every piece arrived, and that bytes between them are unchanged. */
static void check(gasnet_node_t to, size_t length, size_t step, size_t pieces, uint64_t seed)
{
    static char all[PLANE * PLANES + PIECES * STEP];

    CHECK_PATTERN(back, TOTAL, seed);
    gasnet_get(all, to, legacy_slot(to, 0), step * pieces);
    for (size_t i = 0; i < pieces; i++) {
        CHECK(!memcmp(all + i * step, source + i * length, length), "piece %zu", i);
        for (size_t k = length; k < step; k++)
            CHECK(all[i * step + k] == 0x33, "behind piece %zu", i);
    }
}

void legacy_vis(void)
{
    void (*const transfers[])(gasnet_node_t to, int form) = {vectors, indexes, boxes};

    for (gasnet_node_t i = 0; i < job.size; i++)
        for (int form = 0; form < 3 * FORMS; form++) {
            gasnet_node_t to = (job.rank + i) % job.size;
            int is_box = form / FORMS == 2;
            uint64_t seed = job_mix(i, (uint64_t)form);

            job_phase("non-contiguous transfers, form %d, with rank %u", form, (unsigned)to);
            gasnet_memset(to, legacy_slot(to, 0), 0x33, PLANE * PLANES);
            memset(back, 0, sizeof back);
            job_fill(source, sizeof source, seed);
            transfers[form / FORMS](to, form % FORMS);
            if (is_box)
                check(to, ROW, PITCH, ROWS, seed);
            else
                check(to, LENGTH, STEP, PIECES, seed);
        }
}
