/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_world.h. Owns the state of all ranks that are not played now; stands in for peer/. */
#include "config.h"

#include "fake_world.h"
#include "unit.h"

struct node {
    struct tk_verbs verbs;
    struct tk_peers peers;
    struct tk_area segment;
};

struct tk_peers tk_peers;
struct tk_card *world_cards[world_max];

static struct node nodes[world_max];
static uint32_t world_size, being;

const struct tk_card *tk_card_of(uint32_t rank)
{
    return world_cards[rank];
}

void world_peers(uint32_t rank, uint32_t size)
{
    static const char *const hosts[world_max] = {"node0", "node1", "node2", "node3",
                                                 "node4", "node5", "node6", "node7"};
    tk_peers = (struct tk_peers){.size = size, .me = rank};
    tk_peers.at = calloc(size, sizeof(*tk_peers.at));
    for (uint32_t r = 0; r < size; r++)
        tk_peers.at[r] =
            (struct tk_peer){.rank = r, .pid = (int)(1000 + r), .host = hosts[r % world_max]};
}

struct tk_card *world_card(uint32_t size)
{
    return calloc(1, sizeof(struct tk_card) + size * sizeof(uint32_t));
}

static void save(struct node *node)
{
    *node = (struct node){.verbs = tk_verbs, .peers = tk_peers, .segment = tk_segment_area};
}

void world_be(uint32_t rank)
{
    save(&nodes[being]);
    being = rank;
    tk_verbs = nodes[rank].verbs;
    tk_peers = nodes[rank].peers;
    tk_segment_area = nodes[rank].segment;
}

static void open_rank(uint32_t rank, size_t segment)
{
    being = rank;
    memset(&tk_verbs, 0, sizeof(tk_verbs));
    tk_segment_area = (struct tk_area){.fd = -1};
    world_peers(rank, world_size);
    world_cards[rank] = world_card(world_size);
    assert_int_equal(tk_verbs_open(world_cards[rank]), TK_OK);
    if (segment > 0) {
        assert_int_equal(tk_area_open(&tk_segment_area, "segment", segment, false), TK_OK);
        struct tk_region region = {.base = tk_segment_area.base, .size = segment};
        assert_int_equal(tk_verbs_register(&region), TK_OK);
        tk_verbs_use_segment(&region);
    }
    save(&nodes[rank]);
}

static void connect_rank(uint32_t rank)
{
    world_be(rank);
    assert_int_equal(tk_verbs_connect(), TK_OK);
    for (uint32_t r = 0; r < world_size; r++) {
        const struct node *other = &nodes[r];
        struct tk_peer *peer = tk_peer(r);
        peer->segment_base = (uintptr_t)other->segment.base;
        peer->segment_size = other->segment.size;
        peer->segment_key = other->verbs.segment_mr ? other->verbs.segment_mr->rkey : 0;
    }
}

void world_open(uint32_t size, size_t segment)
{
    assert_true(size <= world_max);
    world_size = size;
    for (uint32_t r = 0; r < size; r++)
        open_rank(r, segment);
    for (uint32_t r = 0; r < size; r++)
        connect_rank(r);
    world_be(0);
}

void world_close(void)
{
    for (uint32_t r = 0; r < world_size; r++) {
        world_be(r);
        tk_verbs_close();
        tk_area_close(&tk_segment_area);
        free(tk_peers.at);
        free(world_cards[r]);
    }
    world_size = 0;
    assert_int_equal(fake.qps + fake.cqs + fake.pds + fake.mrs + fake.contexts, 0);
}

struct tk_link *world_link(uint32_t rank, uint32_t peer)
{
    return rank == being ? &tk_verbs.links[peer] : &nodes[rank].verbs.links[peer];
}

const struct tk_verbs *world_verbs(uint32_t rank)
{
    return rank == being ? &tk_verbs : &nodes[rank].verbs;
}

void *world_segment(uint32_t rank)
{
    return rank == being ? tk_segment_area.base : nodes[rank].segment.base;
}

void world_settle(void)
{
    uint32_t before = being;
    bool moved = true;
    while (moved) {
        moved = fake_settle();
        for (uint32_t r = 0; r < world_size; r++) {
            world_be(r);
            moved |= tk_verbs_poll();
        }
    }
    world_be(before);
}
