/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records of segments in the memory of devices, as a team exchanges them: records arrive as sent,
 * and an invalid message is refused as a whole. */
#include "config.h"

#include "kind/kind_class.h"
#include "peer/peer.h"
#include "unit.h"

enum { ranks = 4, me = 1, rails = 2, other = 3 };

/* The bytes of a message with three records, two of them for device memory (peer/segment.c). */
struct wire {
    uint32_t count, unable, rails, kinds;
    struct {
        uint64_t base, size, inode;
        uint32_t endpoint;
        int32_t fd;
    } at[3];
    struct {
        uint32_t record, reserved;
        struct tk_bound_kind kind;
    } kind[2];
    uint32_t keys[3][rails];
};

static const uint32_t keys[3][rails] = {{1, 101}, {2, 102}, {3, 103}};
static struct tk_bound_kind cuda, hip;
static struct tk_bound mine[3];

static int set_up(void **state)
{
    cuda = (struct tk_bound_kind){
        .gex_class = TK_KIND_CUDA_UVA, .has_ipc = 1, .offset = 77, .uuid = "uuid of device1"};
    memset(cuda.ipc, 'i', sizeof(cuda.ipc));
    hip = (struct tk_bound_kind){.gex_class = TK_KIND_HIP, .needs_flush = 1};
    mine[0] = (struct tk_bound){
        .base = 0x1000, .size = 10, .keys = keys[0], .endpoint = 1, .fd = -1, .kind = &cuda};
    mine[1] = (struct tk_bound){
        .base = 0x2000, .size = 20, .keys = keys[1], .endpoint = tk_endpoint_staging, .fd = 5};
    mine[2] = (struct tk_bound){
        .base = 0x3000, .size = 30, .keys = keys[2], .endpoint = 32, .fd = -1, .kind = &hip};
    static uintptr_t offsets[ranks];
    if (tk_peers_open(me, ranks) != TK_OK)
        return -1;
    tk_peers_unmap(offsets, ranks);
    offsets[me] = 0;
    tk_peers.offsets = offsets;
    tk_peers.rails = rails;
    for (uint32_t e = 0; e < tk_endpoints_known; e++)
        tk_bound_set(other, &(struct tk_bound){.endpoint = e, .fd = -1});
    return 0;
}

static struct wire *offer(void)
{
    assert_int_equal(tk_bound_offer_size(mine, 3), sizeof(struct wire));
    return tk_bound_offer(mine, 3);
}

static void assert_known(const struct tk_bound *sent)
{
    struct tk_bound got = tk_bound_of(other, sent->endpoint);
    assert_int_equal(got.base, sent->base);
    assert_int_equal(got.size, sent->size);
    assert_int_equal(got.fd, sent->fd);
    assert_memory_equal(got.keys, sent->keys, sizeof(keys[0]));
    assert_int_equal(!got.kind, !sent->kind);
    if (!sent->kind)
        return;
    struct tk_bound_kind want = *sent->kind;
    want.is_registered = 1;
    assert_memory_equal(got.kind, &want, sizeof(want));
}

/* This alone selects a put by the HCA. An invalid value here is refused. */
static void without_a_key_no_hca_reaches_it(void **state)
{
    static const uint32_t none[rails];
    mine[0].keys = none;
    cuda.is_registered = 1;
    tk_bound_set(me, &mine[0]);
    assert_int_equal(tk_bound_of(me, 1).kind->is_registered, 0);
    mine[0].keys = NULL;
    tk_bound_set(me, &mine[0]);
    assert_int_equal(tk_bound_of(me, 1).kind->is_registered, 0);
}

static void kinds_arrive_with_their_records(void **state)
{
    struct wire *w = offer();
    assert_int_equal(tk_bound_accept(other, w, sizeof(*w)), TK_OK);
    memset(w, 0xff, sizeof(*w));
    free(w);
    for (int i = 0; i < 3; i++)
        assert_known(&mine[i]);
    assert_int_equal(tk_bound_of(other, tk_endpoints_known).size, 0);
}

static void host_segments_cost_nothing_for_kinds(void **state)
{
    mine[0].kind = mine[2].kind = NULL;
    assert_int_equal(tk_bound_offer_size(mine, 3), sizeof(struct wire) - 2 * (8 + sizeof(cuda)));
}

/* Ours, as those of others. */
static void a_record_has_a_copy_of_its_kind(void **state)
{
    tk_bound_set(me, &mine[0]);
    cuda.offset = 1;
    assert_int_equal(tk_bound_of(me, 1).kind->offset, 77);
    mine[0].kind = NULL;
    tk_bound_set(me, &mine[0]);
    assert_null(tk_bound_of(me, 1).kind);
}

/* Staging buffers are published with each segment, and transfers in flight use their keys. */
static void a_record_that_comes_again_changes_nothing(void **state)
{
    static const uint32_t new_keys[rails] = {2, 103};
    for (int i = 0; i < 3; i++)
        tk_bound_set(other, &mine[i]);
    for (int i = 0; i < 3; i++) {
        const struct tk_bound before = tk_bound_of(other, mine[i].endpoint);
        tk_bound_set(other, &mine[i]);
        const struct tk_bound after = tk_bound_of(other, mine[i].endpoint);
        assert_ptr_equal(after.keys, before.keys);
        assert_ptr_equal(after.kind, before.kind);
    }
    mine[1].keys = new_keys;
    tk_bound_set(other, &mine[1]);
    assert_known(&mine[1]);
    cuda.ipc[63] ^= 1;
    tk_bound_set(other, &mine[0]);
    assert_known(&mine[0]);
}

/* The CPU of a neighbour must not map it. */
static void device_segments_are_not_found_as_published(void **state)
{
    struct tk_bound bound;
    tk_bound_set(me, &mine[0]);
    assert_false(tk_bound_find_published(0x1000, 1, &bound));
}

static void assert_refused(struct wire *w, size_t size)
{
    unit_listen();
    enum tk_status status = tk_bound_accept(other, w, size);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, "rank 3 sent");
    unit_assert_says(said, "invalid segment records");
    for (uint32_t e = 0; e < tk_endpoints_known; e++)
        assert_int_equal(tk_bound_of(other, e).size, 0);
    free(w);
}

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        struct wire *w = offer();                                                                  \
        w->change;                                                                                 \
        assert_refused(w, sizeof(*w));                                                             \
    } while (0)

static void records_that_make_no_sense_are_refused(void **state)
{
    assert_refused(offer(), sizeof(struct wire) - 1);
    assert_refused(offer(), sizeof(struct wire) + 1);
    REFUSED(kinds = 1);
    REFUSED(kinds = 4);
    REFUSED(kinds = 0xffffffff);
    REFUSED(count = 2);
    REFUSED(count = 0xffffffff);
    REFUSED(at[1].endpoint = tk_endpoints_known);
    REFUSED(kind[0].record = 2); /* one record, two kinds */
    REFUSED(kind[1].record = 0);
    REFUSED(kind[1].record = 3);
    REFUSED(kind[1].record = 0xffffffff);
}

static void kinds_that_make_no_sense_are_refused(void **state)
{
    REFUSED(kind[0].kind.gex_class = TK_KIND_HOST);
    REFUSED(kind[0].kind.gex_class = TK_KIND_NUMBERS);
    REFUSED(kind[1].kind.gex_class = 255);
    REFUSED(kind[0].kind.has_ipc = 2);
    REFUSED(kind[1].kind.needs_flush = 2);
    REFUSED(at[0].endpoint = 0);
    REFUSED(at[2].endpoint = tk_endpoint_staging);
    REFUSED(at[0].fd = 0); /* a file that the CPU would map */
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

static const struct CMUnitTest tests[] = {
    TEST(kinds_arrive_with_their_records),
    TEST(host_segments_cost_nothing_for_kinds),
    TEST(a_record_has_a_copy_of_its_kind),
    TEST(device_segments_are_not_found_as_published),
    TEST(a_record_that_comes_again_changes_nothing),
    TEST(records_that_make_no_sense_are_refused),
    TEST(without_a_key_no_hca_reaches_it),
    TEST(kinds_that_make_no_sense_are_refused),
};

UNIT_MAIN(tests)
