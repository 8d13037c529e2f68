/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_world.h. Owns the state of all ranks that are not played now; stands in for peer/. */
#include "config.h"

#include "fake_world.h"
#include "bootstrap/bootstrap.h"
#include "op/op.h"
#include "settings/settings.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/verbs.h"
#include "topology/locality.h"
#include "transport/verbs/variants.h"
#include "unit.h"

struct node {
    struct tk_verbs verbs;
    struct tk_conns conns;
    struct tk_places places;
    struct tk_transport chosen;
    struct tk_peers peers;
    struct tk_area segment;
};

struct tk_peers tk_peers;
struct tk_peer_info *world_cards[world_max];

int world_distance[fake_devices_max];
unsigned world_parts = 1;
unsigned world_looks;

int tk_locality_distance(const char *device)
{
    int number;
    world_looks++;
    assert_int_equal(sscanf(device, "fake%d", &number), 1);
    return world_distance[number];
}

enum tk_status tk_locality_indices(const char *type, uint32_t *at, uint32_t most, uint32_t *count)
{
    world_looks++;
    *count = 0;
    for (uint32_t i = 0; i < 32 && *count < most; i++)
        if (world_parts >> i & 1)
            at[(*count)++] = i;
    return strcmp(type, "Socket") ? TK_FAIL : TK_OK;
}

void tk_locality_drop(void)
{
}

static const struct tk_transport near = {.name = "near"};
uint32_t world_group;
void (*world_machine)(uint32_t rank);
bool world_is_on_demand;
uint32_t world_hosts[world_max] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct node nodes[world_max];
static uint32_t world_size, being, begun;

/* ---- bootstrap/ */

/* The fake does not know which ranks share the host, so ranks share no ports. */
struct tk_bootstrap tk_bootstrap;

enum tk_status tk_bootstrap_put_local(const char *key, const void *blob, size_t size)
{
    (void)key, (void)blob, (void)size;
    return TK_FAIL;
}

enum tk_status tk_bootstrap_await_local(const char *key, const uint32_t *ranks, uint32_t count,
                                        struct tk_bootstrap_blob *blobs, int seconds,
                                        uint32_t *missing)
{
    (void)key, (void)ranks, (void)count, (void)blobs, (void)seconds, (void)missing;
    return TK_FAIL;
}

const struct tk_peer_info *tk_peer_info_of(uint32_t rank)
{
    return world_cards[rank];
}

void world_peers(uint32_t rank, uint32_t size)
{
    static const char *const hosts[world_max] = {"node0", "node1", "node2", "node3",
                                                 "node4", "node5", "node6", "node7"};
    tk_peers = (struct tk_peers){.size = size, .me = rank};
    tk_peers.at = calloc(size, sizeof(*tk_peers.at));
    tk_peers.rail_to = calloc(size, sizeof(*tk_peers.rail_to));
    tk_peers.keys = calloc(size, sizeof(*tk_peers.keys));
    for (uint32_t r = 0; r < size; r++)
        tk_peers.at[r] =
            (struct tk_peer){.rank = r, .pid = (int)(1000 + r), .host = hosts[r % world_max]};
}

struct tk_peer_info *world_info(uint32_t size)
{
    struct tk_peer_info *info = calloc(1, sizeof(struct tk_peer_info));
    info->ranks = size;
    return info;
}

static void save(struct node *node)
{
    *node = (struct node){.verbs = tk_verbs,
                          .conns = tk_conns,
                          .places = tk_places,
                          .chosen = tk_verbs_chosen,
                          .peers = tk_peers,
                          .segment = tk_segment_area};
}

void world_be(uint32_t rank)
{
    save(&nodes[being]);
    being = rank;
    tk_verbs = nodes[rank].verbs;
    tk_conns = nodes[rank].conns;
    tk_places = nodes[rank].places;
    tk_verbs_chosen = nodes[rank].chosen;
    tk_peers = nodes[rank].peers;
    tk_segment_area = nodes[rank].segment;
}

static void open_rank(uint32_t rank, size_t segment)
{
    being = rank;
    memset(&tk_verbs, 0, sizeof(tk_verbs));
    memset(&tk_conns, 0, sizeof(tk_conns));
    memset(&tk_places, 0, sizeof(tk_places));
    tk_segment_area = (struct tk_area){.fd = -1};
    world_peers(rank, world_size);
    for (uint32_t r = 0; r < world_size; r++)
        if (r != rank && world_group && r / world_group == rank / world_group)
            tk_peer(r)->transport = &near;
    world_cards[rank] = world_info(world_size);
    if (world_machine)
        world_machine(rank);
    tk_settings.connect_static = !world_is_on_demand; /* the fake has no datagrams */
    assert_int_equal(tk_verbs_open(&world_cards[rank], rank), TK_OK);
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
    begun = rank + 1;
    world_be(rank);
    if (world_machine) /* its table of GIDs is read again */
        world_machine(rank);
    assert_int_equal(tk_verbs_connect(world_hosts), TK_OK);
    for (uint32_t r = 0; r < world_size; r++) {
        const struct node *other = &nodes[r];
        struct tk_peer *peer = tk_peer(r);
        peer->segment_base = (uintptr_t)other->segment.base;
        peer->segment_size = other->segment.size;
        tk_peers.keys[r] = other->verbs.segment ? other->verbs.segment->remote : NULL;
        peer->segment_key = tk_peers.keys[r] ? tk_peers.keys[r][tk_peers.rail_to[r]] : 0;
    }
}

void world_open_only(uint32_t size, size_t segment)
{
    assert_true(size <= world_max);
    world_size = size;
    begun = 0;
    for (uint32_t r = 0; r < size; r++)
        open_rank(r, segment);
    world_be(0);
}

bool world_connect_next(void)
{
    if (begun >= world_size)
        return false;
    connect_rank(begun);
    return true;
}

void world_open(uint32_t size, size_t segment)
{
    world_open_only(size, segment);
    while (world_connect_next())
        continue;
    world_be(0);
}

void world_close(void)
{
    for (uint32_t r = 0; r < world_size; r++) {
        world_be(r);
        tk_verbs_close();
        tk_area_close(&tk_segment_area);
        free(tk_peers.at);
        free(tk_peers.rail_to);
        free(tk_peers.keys);
        free(world_cards[r]);
    }
    world_size = 0;
    assert_int_equal(
        fake.qps + fake.cqs + fake.pds + fake.mrs + fake.contexts + fake.srqs + fake.channels, 0);
}

const struct tk_verbs *world_verbs(uint32_t rank)
{
    return rank == being ? &tk_verbs : &nodes[rank].verbs;
}

struct tk_conn *world_conn(uint32_t rank, uint32_t peer)
{
    const struct tk_verbs *verbs = world_verbs(rank);
    return verbs->conns_of[peer] + (rank + peer) % verbs->conns_pp;
}

void *world_segment(uint32_t rank)
{
    return rank == being ? tk_segment_area.base : nodes[rank].segment.base;
}

enum tk_status world_start(struct tk_op *op, struct tk_rma *rma, struct tk_rma_state *state,
                           bool is_put, size_t nbytes)
{
    tk_op_init(op);
    *rma = (struct tk_rma){.remote = (uintptr_t)world_segment(1),
                           .local = world_segment(0),
                           .nbytes = nbytes,
                           .op = op,
                           .is_put = is_put};
    *state = (struct tk_rma_state){.done = 0};
    return tk_verbs_rma(tk_peer(1), rma, state);
}

void world_settle(void)
{
    uint32_t before = being;
    bool moved = true;
    while (moved) {
        moved = fake_settle();
        for (uint32_t r = 0; r < world_size; r++) {
            world_be(r);
            moved |= tk_verbs_transport()->poll();
        }
    }
    world_be(before);
}
