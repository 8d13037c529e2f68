/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks whose ports do not reach each other are found by classes of ports. Random jobs are judged
 * by a comparison of all pairs too, and the steps are counted for many ranks. No device. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "peer/peer.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/device/split.h"
#include "transport/verbs/library.h"
#include "unit.h"

enum { few_max = 14, shapes = 30000, many = 100000, steps_of_each = 12, few_steps = 4000 };

static struct tk_port_address *ports; /* by rank and rail */
static uint32_t *nbrhds;
static struct tk_split_job job;
static uint64_t steps; /* looks at a port */

static const struct tk_port_address *look(uint32_t rank, uint32_t rail)
{
    assert_true(++steps <= (uint64_t)steps_of_each * job.size + few_steps); /* else it is slow */
    return &ports[rank * job.rails + rail];
}

static void make_job(uint32_t size, uint32_t rails)
{
    ports = calloc((size_t)size * rails, sizeof(*ports));
    nbrhds = calloc(size, sizeof(*nbrhds));
    job =
        (struct tk_split_job){.size = size, .rails = rails, .nbrhd_of = nbrhds, .address_of = look};
    steps = 0;
}

static void free_job(void)
{
    free(ports);
    free(nbrhds);
}

/* ---- all pairs ---- */

static bool pair_meets(const struct tk_port_address *a, const struct tk_port_address *b)
{
    struct tk_gid from, to;
    return !(a->needs_gid || b->needs_gid) || tk_gid_pair_find(a, b, &from, &to);
}

static bool pair_is_of_one_partition(const struct tk_port_address *a,
                                     const struct tk_port_address *b)
{
    return !((a->pkey ^ b->pkey) & tk_pkey_bits) && ((a->pkey | b->pkey) & tk_pkey_full);
}

static bool pair_is_split(struct tk_split *split)
{
    const struct tk_port_address *a = &ports[split->one * job.rails + split->rail];
    const struct tk_port_address *b = &ports[split->other * job.rails + split->rail];
    split->is_by_partition = !pair_is_of_one_partition(a, b);
    return (!job.nbrhd_of || nbrhds[split->one] != nbrhds[split->other]) &&
           (split->is_by_partition || !pair_meets(a, b));
}

static struct tk_split compare_pairs(void)
{
    struct tk_split s = {.other = 0};
    for (s.rail = 0; s.rail < job.rails; s.rail++)
        for (s.one = 0; s.one < job.size; s.one++)
            for (s.other = s.one + 1; s.other < job.size; s.other++)
                if (pair_is_split(&s))
                    return s;
    return (struct tk_split){.other = 0};
}

/* ---- random jobs ---- */

static unsigned below(unsigned n)
{
    return (unsigned)rand() % n;
}

/* Networks of /62 to /65, so that two may be one with a third and not with each other; and one
 * prefix that no address has. */
static struct tk_gid random_gid(unsigned variety)
{
    static const uint8_t bits[] = {64, 62, 63, 65, 200};
    struct tk_gid gid = {.type = IBV_GID_TYPE_ROCE_V1, .network_bits = 64};
    if (below(4) == 0)
        gid.type = IBV_GID_TYPE_ROCE_V2;
    if (variety > 1 && below(2) == 0)
        gid.network_bits = bits[below(sizeof(bits))];
    gid.raw[0] = below(6) ? 0xfd : 0xfe;
    gid.raw[1] = gid.raw[0] == 0xfe ? 0x80 : 0;
    gid.raw[7] = (uint8_t)below(1 + 3 * variety);
    gid.raw[8] = variety > 1 ? (uint8_t)(below(2) << 7) : 0;
    gid.raw[15] = (uint8_t)below(200);
    return gid;
}

static void random_port(struct tk_port_address *a, unsigned variety)
{
    static const uint16_t pkeys[] = {0x8001, 0x0001, 0x8002, 0x0002};
    a->pkey = below(12) < variety ? pkeys[below(4)] : 0x8001;
    a->needs_gid = below(10) ? 1 : 0;
    a->gid_count = (uint8_t)(below(20) ? 1 + below(3) : 0);
    for (unsigned i = 0; i < a->gid_count; i++)
        a->gids[i] = random_gid(variety);
    if (variety == 0 && a->gid_count > 0) /* a common network beside others, or the reverse */
        a->gids[below(a->gid_count)].raw[7] = 0;
}

static void random_job(void)
{
    unsigned variety = below(4), hosts = 1 + below(5);
    make_job(1 + below(few_max), 1 + below(2));
    for (uint32_t r = 0; r < job.size; r++) {
        nbrhds[r] = below(hosts);
        for (uint32_t i = 0; i < job.rails; i++) {
            struct tk_port_address *a = &ports[r * job.rails + i];
            if (r > 0 && below(3) == 0)
                *a = ports[below(r) * job.rails + i];
            else
                random_port(a, variety);
        }
    }
    if (below(4) == 0)
        job.nbrhd_of = NULL;
}

static void the_same_pair_is_found_as_by_all_pairs(void **state)
{
    unsigned whole = 0;
    srand(39);
    for (unsigned i = 0; i < shapes; i++) {
        struct tk_split found;
        random_job();
        struct tk_split expected = compare_pairs();
        assert_int_equal(tk_split_find(&job, &found), TK_OK);
        assert_int_equal(found.other, expected.other);
        if (expected.other != 0) {
            assert_int_equal(found.one, expected.one);
            assert_int_equal(found.rail, expected.rail);
            assert_int_equal(found.is_by_partition, expected.is_by_partition);
        }
        whole += expected.other == 0;
        free_job();
    }
    assert_in_range(whole, shapes / 10, shapes * 9 / 10); /* the jobs are of both sorts */
}

/* ---- many ranks ---- */

static struct tk_gid gid_of(int type, uint16_t first, uint32_t network, uint32_t rank)
{
    struct tk_gid gid = {.type = (uint8_t)type, .network_bits = 64};
    gid.raw[0] = (uint8_t)(first >> 8);
    gid.raw[1] = (uint8_t)first;
    memcpy(gid.raw + 4, &network, sizeof(network));
    memcpy(gid.raw + 12, &rank, sizeof(rank));
    return gid;
}

static void make_many(void (*fill)(struct tk_port_address *a, uint32_t rank))
{
    make_job(many, 1);
    for (uint32_t r = 0; r < many; r++) {
        ports[r].pkey = 0x8001;
        ports[r].needs_gid = 1;
        nbrhds[r] = r / 2;
        fill(&ports[r], r);
    }
}

static void assert_few_steps(uint32_t one, uint32_t other)
{
    struct tk_split found;
    assert_int_equal(tk_split_find(&job, &found), TK_OK);
    assert_int_equal(found.other, other);
    assert_int_equal(found.one, one);
    free_job();
}

static void only_link_local(struct tk_port_address *a, uint32_t rank)
{
    a->gid_count = 1;
    a->gids[0] = gid_of(IBV_GID_TYPE_ROCE_V1, 0xfe80, 0, rank);
}

static void own_network_beside_a_common_one(struct tk_port_address *a, uint32_t rank)
{
    a->gid_count = 2;
    a->gids[0] = gid_of(IBV_GID_TYPE_ROCE_V1, 0xfd00, rank + 1, rank);
    a->gids[1] = gid_of(IBV_GID_TYPE_ROCE_V1, 0xfd00, 0, rank);
}

static void own_network_beside_a_routed_one(struct tk_port_address *a, uint32_t rank)
{
    a->gid_count = rank % 2 ? 2 : 1;
    a->gids[0] = gid_of(IBV_GID_TYPE_ROCE_V2, 0xfd00, 0, rank);
    a->gids[1] = gid_of(IBV_GID_TYPE_ROCE_V1, 0xfd00, rank + 1, rank);
}

static void own_network(struct tk_port_address *a, uint32_t rank)
{
    a->gid_count = 1;
    a->gids[0] = gid_of(IBV_GID_TYPE_ROCE_V1, 0xfd00, rank / 2, rank);
}

static void one_limited_member(struct tk_port_address *a, uint32_t rank)
{
    only_link_local(a, rank);
    a->pkey = rank == 7 ? 0x0001 : 0x8001;
}

static void the_last_is_another_limited_member(struct tk_port_address *a, uint32_t rank)
{
    one_limited_member(a, rank);
    if (rank == many - 1)
        a->pkey = 0x0001;
}

/* Those of a host are of partitions of their own, and reach each other by memory. */
static void first_host_is_of_two_partitions(struct tk_port_address *a, uint32_t rank)
{
    only_link_local(a, rank);
    a->pkey = rank == 1 ? 0x8002 : 0x8001;
}

static void many_ranks_take_a_few_steps_each(void **state)
{
    make_many(only_link_local);
    assert_few_steps(0, 0);
    make_many(own_network_beside_a_common_one);
    assert_few_steps(0, 0);
    make_many(own_network_beside_a_routed_one);
    assert_few_steps(0, 0);
    make_many(own_network);
    assert_few_steps(0, 2);
    make_many(one_limited_member);
    assert_few_steps(0, 0);
    make_many(the_last_is_another_limited_member);
    assert_few_steps(7, many - 1);
    make_many(first_host_is_of_two_partitions);
    assert_few_steps(1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_pair_is_found_as_by_all_pairs),
        cmocka_unit_test(many_ranks_take_a_few_steps_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
