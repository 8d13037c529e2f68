/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The path of transfers with device memory: the whole decision table, and rules that hold in all of
 * it. */
#include "config.h"

#include "kind_rma/kind_path.h"
#include "unit.h"

enum { H = TK_KIND_LOCAL_HOST, D = TK_KIND_LOCAL_DEVICE, R = TK_KIND_LOCAL_REGISTERED };
enum {
    HOST = TK_KIND_REMOTE_HOST,
    DEMAND = TK_KIND_REMOTE_ON_DEMAND,
    MAPPED = TK_KIND_REMOTE_MAPPED,
    DEVICE = TK_KIND_REMOTE_DEVICE,
    IPC = TK_KIND_REMOTE_IPC,
    KEYS = TK_KIND_REMOTE_KEYS
};
enum { SELF = TK_REACH_SELF, NEAR = TK_REACH_NEIGHBOUR, FAR = TK_REACH_NETWORK };

static const struct row {
    int reach, local, remote;
    enum tk_kind_path paths[2]; /* of large transfers: by AUTO, by STAGED */
} table[] = {
    {SELF, H, MAPPED, {TK_KIND_BY_COPY, TK_KIND_BY_COPY}},
    {SELF, D, MAPPED, {TK_KIND_BY_COPY, TK_KIND_BY_SLOT}},
    {SELF, R, MAPPED, {TK_KIND_BY_COPY, TK_KIND_BY_SLOT}},
    {NEAR, D, MAPPED, {TK_KIND_BY_COPY, TK_KIND_BY_SLOT}},
    {NEAR, R, MAPPED, {TK_KIND_BY_COPY, TK_KIND_BY_SLOT}},
    {NEAR, D, HOST, {TK_KIND_BY_SLOT, TK_KIND_BY_SLOT}},
    {NEAR, R, HOST, {TK_KIND_BY_SLOT, TK_KIND_BY_SLOT}},
    {NEAR, H, DEVICE, {TK_KIND_BY_TARGET, TK_KIND_BY_TARGET}},
    {NEAR, D, DEVICE, {TK_KIND_BY_TARGET, TK_KIND_BY_TARGET}},
    {NEAR, R, DEVICE, {TK_KIND_BY_TARGET, TK_KIND_BY_TARGET}},
    {NEAR, H, IPC, {TK_KIND_BY_IPC, TK_KIND_BY_TARGET}},
    {NEAR, D, IPC, {TK_KIND_BY_IPC, TK_KIND_BY_TARGET}},
    {NEAR, R, IPC, {TK_KIND_BY_IPC, TK_KIND_BY_TARGET}},
    {FAR, D, HOST, {TK_KIND_BY_SLOT, TK_KIND_BY_SLOT}},
    {FAR, R, HOST, {TK_KIND_BY_HCA, TK_KIND_BY_SLOT}},
    {FAR, D, DEMAND, {TK_KIND_BY_SLOT, TK_KIND_BY_SLOT}},
    {FAR, R, DEMAND, {TK_KIND_BY_SLOT, TK_KIND_BY_SLOT}},
    {FAR, H, DEVICE, {TK_KIND_BY_TARGET, TK_KIND_BY_TARGET}},
    {FAR, D, DEVICE, {TK_KIND_BY_TARGET, TK_KIND_BY_TARGET}},
    {FAR, R, DEVICE, {TK_KIND_BY_TARGET, TK_KIND_BY_TARGET}},
    {FAR, H, KEYS, {TK_KIND_BY_HCA, TK_KIND_BY_TARGET}},
    {FAR, D, KEYS, {TK_KIND_BY_SLOT, TK_KIND_BY_TARGET}},
    {FAR, R, KEYS, {TK_KIND_BY_HCA, TK_KIND_BY_TARGET}},
};

static enum tk_kind_path path(const struct row *row, enum tk_kind_way way, bool is_put,
                              size_t nbytes, bool are_two)
{
    const struct tk_kind_ends ends = {.reach = (enum tk_reach)row->reach,
                                      .local = (enum tk_kind_local)row->local,
                                      .remote = (enum tk_kind_remote)row->remote,
                                      .way = way,
                                      .are_two_classes = are_two,
                                      .is_put = is_put,
                                      .nbytes = nbytes};
    return tk_kind_path(&ends);
}

#define EACH(row)                                                                                  \
    for (const struct row *row = table; row < table + sizeof(table) / sizeof(table[0]); row++)

static void large_transfers_travel_by_the_table(void **state)
{
    (void)state;
    EACH(row)
    for (int is_put = 0; is_put < 2; is_put++) {
        assert_int_equal(path(row, TK_KIND_WAY_AUTO, is_put, 1 << 20, false), row->paths[0]);
        assert_int_equal(path(row, TK_KIND_WAY_STAGED, is_put, 1 << 20, false), row->paths[1]);
    }
}

static void small_gets_never_arrive_in_device_memory_by_the_hca(void **state)
{
    (void)state;
    EACH(row)
    for (size_t nbytes = 1; nbytes <= 2 * tk_rma_scattered_max; nbytes++) {
        bool is_small = nbytes <= tk_rma_scattered_max;
        enum tk_kind_path large = row->paths[0];
        enum tk_kind_path get = path(row, TK_KIND_WAY_AUTO, false, nbytes, false);
        if (large == TK_KIND_BY_HCA && row->local == R && is_small)
            assert_int_equal(get, TK_KIND_BY_SLOT);
        else
            assert_int_equal(get, large);
        assert_int_equal(path(row, TK_KIND_WAY_AUTO, true, nbytes, false), large);
    }
}

static void no_device_copies_for_two_vendors(void **state)
{
    (void)state;
    EACH(row)
    for (int way = TK_KIND_WAY_AUTO; way <= TK_KIND_WAY_STAGED; way++) {
        enum tk_kind_path p = path(row, (enum tk_kind_way)way, true, 1000, true);
        assert_int_not_equal(p, TK_KIND_BY_COPY);
        assert_int_not_equal(p, TK_KIND_BY_IPC);
    }
    const struct row two_devices = {SELF, D, MAPPED, {0}}, keys = {FAR, R, KEYS, {0}};
    assert_int_equal(path(&two_devices, TK_KIND_WAY_AUTO, true, 1000, true), TK_KIND_BY_SLOT);
    assert_int_equal(path(&keys, TK_KIND_WAY_AUTO, true, 1000, true), TK_KIND_BY_HCA);
}

static void the_hca_never_reaches_memory_that_is_not_registered(void **state)
{
    (void)state;
    for (int reach = TK_REACH_NETWORK; reach <= TK_REACH_SELF; reach++)
        for (int remote = HOST; remote <= KEYS; remote++)
            for (int way = TK_KIND_WAY_AUTO; way <= TK_KIND_WAY_STAGED; way++) {
                const struct row row = {reach, D, remote, {0}};
                assert_int_not_equal(path(&row, (enum tk_kind_way)way, true, 1 << 20, false),
                                     TK_KIND_BY_HCA);
            }
}

static void pieces_fill_slots_and_overlap(void **state)
{
    (void)state;
    const size_t slot = 256 << 10;
    assert_int_equal(tk_kind_piece_size(1, slot), 32 << 10);
    assert_int_equal(tk_kind_piece_size(SIZE_MAX / 2, slot), slot);
    for (size_t nbytes = 1; nbytes < 3 * slot; nbytes += 999) {
        size_t piece = tk_kind_piece_size(nbytes, slot);
        assert_true(piece > 0 && piece <= slot && piece % 4096 == 0);
        assert_true(nbytes < 64 << 10 || (nbytes + piece - 1) / piece >= 2);
    }
    assert_int_equal(tk_kind_piece_size(1 << 20, 4096), 4096);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(large_transfers_travel_by_the_table),
    cmocka_unit_test(small_gets_never_arrive_in_device_memory_by_the_hca),
    cmocka_unit_test(no_device_copies_for_two_vendors),
    cmocka_unit_test(the_hca_never_reaches_memory_that_is_not_registered),
    cmocka_unit_test(pieces_fill_slots_and_overlap),
};

UNIT_MAIN(tests)
