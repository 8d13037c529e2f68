/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet-1 in the mix: puts, gets and fills of each kind, to the same areas as random_mix_rma.c.
 * Owns nothing. */
#include "config.h"

#include "random_mix.h"

#include <string.h>

static void explicit_handles(struct worker *w, gex_Rank_t to)
{
    uint64_t seed = job_random(&w->random);
    char *there = mix_area(to, w);
    gasnet_handle_t handles[3];

    job_fill(w->data, CELL, seed);
    handles[0] = gasnet_put_nb(to, there, w->data, 100);
    handles[1] = gasnet_put_nb_bulk(to, there + 100, w->data + 100, 3000);
    handles[2] = gasnet_put_nb(to, there + 3100, w->data + 3100, CELL - 3100);
    while (mix_below(w, 3) && gasnet_try_syncnb_some(handles, 3) == GASNET_ERR_NOT_READY)
        gasnet_AMPoll();
    if (mix_below(w, 2))
        gasnet_wait_syncnb_all(handles, 3);
    else
        while (gasnet_try_syncnb_all(handles, 3) == GASNET_ERR_NOT_READY)
            gasnet_AMPoll();
    handles[0] = gasnet_get_nb(w->back, to, there, 77);
    handles[1] = gasnet_get_nb_bulk(w->back + 77, to, there + 77, CELL - 77);
    gasnet_wait_syncnb(handles[0]);
    while (gasnet_try_syncnb(handles[1]) == GASNET_ERR_NOT_READY)
        gasnet_AMPoll();
    CHECK_PATTERN(w->back, CELL, seed);
}

static void implicit_handles(struct worker *w, gex_Rank_t to)
{
    uint64_t seed = job_random(&w->random);
    char *there = mix_area(to, w);

    job_fill(w->data, CELL, seed);
    gasnet_put_nbi(to, there, w->data, 1000);
    gasnet_put_nbi_bulk(to, there + 1000, w->data + 1000, CELL - 1000);
    if (mix_below(w, 2))
        gasnet_wait_syncnbi_puts();
    else
        while (gasnet_try_syncnbi_puts() == GASNET_ERR_NOT_READY)
            gasnet_AMPoll();
    gasnet_get_nbi(w->back, to, there, 10);
    gasnet_get_nbi_bulk(w->back + 10, to, there + 10, CELL - 10);
    if (mix_below(w, 2))
        gasnet_wait_syncnbi_gets();
    else
        while (gasnet_try_syncnbi_all() == GASNET_ERR_NOT_READY)
            gasnet_AMPoll();
    CHECK_PATTERN(w->back, CELL, seed);
}

static void blocking(struct worker *w, gex_Rank_t to)
{
    uint64_t seed = job_random(&w->random);
    char *there = mix_area(to, w);

    job_fill(w->data, CELL, seed);
    gasnet_put(to, there, w->data, 333);
    gasnet_put_bulk(to, there + 333, w->data + 333, CELL - 333);
    gasnet_get(w->back, to, there, 4000);
    gasnet_get_bulk(w->back + 4000, to, there + 4000, CELL - 4000);
    CHECK_PATTERN(w->back, CELL, seed);
}

static void fills(struct worker *w, gex_Rank_t to)
{
    int byte = (int)mix_below(w, 256);
    size_t size = 1 + mix_below(w, AREA);
    char *there = mix_area(to, w);

    switch (mix_below(w, 3)) {
    case 0:
        gasnet_memset(to, there, byte, size);
        break;
    case 1:
        gasnet_wait_syncnb(gasnet_memset_nb(to, there, byte, size));
        break;
    default:
        gasnet_memset_nbi(to, there, byte, size);
        gasnet_wait_syncnbi_all();
    }
    memset(w->data, byte, size);
    gasnet_get(w->back, to, there, size);
    CHECK(memcmp(w->data, w->back, size) == 0, "a fill of %zu bytes", size);
}

static void values(struct worker *w, gex_Rank_t to)
{
    char *there = mix_area(to, w);
    gasnet_register_value_t value = job_random(&w->random) & 0xffffffff;
    gasnet_valget_handle_t handle;

    gasnet_put_val(to, there, value, 4);
    CHECK(gasnet_get_val(to, there, 4) == value);
    gasnet_wait_syncnb(gasnet_put_nb_val(to, there + 8, value, 4));
    gasnet_put_nbi_val(to, there + 16, value, 4);
    gasnet_wait_syncnbi_puts();
    handle = gasnet_get_nb_val(to, there + 8, 4);
    CHECK(gasnet_get_val(to, there + 16, 4) == value);
    CHECK(gasnet_wait_syncnb_valget(handle) == value);
}

static void region(struct worker *w, gex_Rank_t to)
{
    uint64_t seed = job_random(&w->random);
    char *there = mix_area(to, w);

    job_fill(w->data, CELL, seed);
    gasnet_begin_nbi_accessregion();
    gasnet_put_nbi_bulk(to, there, w->data, CELL / 2);
    gasnet_put_nbi(to, there + CELL / 2, w->data + CELL / 2, CELL / 2);
    gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
    gasnet_get_bulk(w->back, to, there, CELL);
    CHECK_PATTERN(w->back, CELL, seed);
}

static mix_action *const actions[] = {
    explicit_handles, implicit_handles, blocking, fills, values, region};
const struct mix_part mix_legacy = {actions, sizeof actions / sizeof *actions};
