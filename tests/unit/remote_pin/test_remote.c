/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets to memory that is registered when it is asked for, between this process and itself:
 * its messages to rank 1 come back as if rank 1 had sent them, so that it requests, serves and
 * answers in turn. The cache of registered memory is a fake; the table of firehoses is the real
 * one. / */
#include "config.h"

#include <unistd.h>

#include "fake_job.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "message/message.h"
#include "op/op.h"
#include "progress/progress.h"
#include "remote_pin/remote_pin.h"
#include "remote_pin/remote_pin_private.h"
#include "settings/settings.h"
#include "unit.h"

enum { ranks = 3, rails = 2, granule = 8192, granules = 16, poll_limit = 10000 };

/* Each test is a process of its own, since the room opens once in each. */
#define NEED(truth) need((truth), #truth, __LINE__)

static void need(bool truth, const char *what, int line)
{
    if (truth)
        return;
    fprintf(stderr, "line %d: %s\n", line, what);
    _exit(1);
}

/* Rank 1's segment is our own segment. */
static _Alignas(granule *granules) char there[granule * granules];
static char here[sizeof(there)];

/* ---- registered memory, and the network that it is registered with */

static struct {
    struct tk_pinned regions[64];
    unsigned count, held, held_max;
    bool refuses;
    uint64_t lent;
} cache = {.lent = 8};

size_t tk_firehose_granule_size = granule;

size_t tk_firehose_granule(void)
{
    return tk_firehose_granule_size;
}

uint64_t tk_firehose_exported(void)
{
    return cache.lent;
}

bool tk_firehose_may_get(const void *address, size_t nbytes)
{
    (void)address, (void)nbytes;
    return true;
}

struct tk_pinned *tk_firehose_get(const void *address, size_t nbytes)
{
    if (cache.refuses)
        return NULL;
    NEED(cache.count < sizeof(cache.regions) / sizeof(cache.regions[0]));
    struct tk_pinned *region = &cache.regions[cache.count++];
    *region = (struct tk_pinned){.base = (uintptr_t)address, .size = nbytes, .refs = 1};
    cache.held++;
    cache.held_max = cache.held > cache.held_max ? cache.held : cache.held_max;
    return region;
}

void tk_firehose_put(struct tk_pinned *region)
{
    NEED(region->refs-- == 1);
    cache.held--;
}

/* A region's keys are its number here. */
static const uint32_t *remote_keys(const struct tk_pinned *region)
{
    static uint32_t keys[rails];
    keys[0] = 100 + (uint32_t)(region - cache.regions);
    keys[1] = keys[0] + 1000;
    return keys;
}

static struct tk_transport network;
static const struct tk_transport other = {.name = "other"};
static enum tk_status (*rma_of_fake)(struct tk_peer *peer, const struct tk_rma *rma,
                                     struct tk_rma_state *state);
static unsigned writes, wrong_writes;
static struct tk_rma last_write;
static uint32_t last_keys[rails];

/* Every buffer passed to the network lies in one region, and its keys are passed along. */
static enum tk_status look_at_rma(struct tk_peer *peer, const struct tk_rma *rma,
                                  struct tk_rma_state *state)
{
    writes++;
    last_write = *rma;
    if (rma->remote_keys) {
        memcpy(last_keys, rma->remote_keys, sizeof(last_keys));
        const struct tk_pinned *region = &cache.regions[last_keys[0] - 100];
        wrong_writes += region->refs != 1 || rma->remote < region->base ||
                        rma->remote + rma->nbytes > region->base + region->size ||
                        last_keys[1] != last_keys[0] + 1000;
    }
    return rma_of_fake(peer, rma, state);
}

static const struct tk_transport_memory network_memory = {.remote_keys = remote_keys};

/* ---- */

static void open_room(void)
{
    unit_settings(NULL, NULL);
    fake_job_open(ranks);
    tk_peers.rails = rails;
    tk_peer(0)->transport = &other;
    tk_peer(2)->transport = &other; /* one asker */
    network = fake_transport;
    rma_of_fake = network.rma.post;
    network.rma.post = look_at_rma;
    network.memory = &network_memory;
    tk_peer(1)->transport = &network;
    tk_peer(1)->segment_base = (uintptr_t)there;
    tk_peer(1)->segment_size = sizeof(there);
    tk_segment_area = (struct tk_area){.base = there, .size = sizeof(there), .fd = -1};
    tk_message_open();
    tk_remote_open();
    NEED(tk_remote_connect(&network) != NULL);
    for (size_t i = 0; i < sizeof(here); i++) {
        here[i] = (char)(i * 31 >> 3);
        there[i] = (char)~here[i];
    }
}

static struct tk_rma some(bool is_put, size_t at, size_t nbytes, struct tk_op *op)
{
    tk_op_init(op);
    return (struct tk_rma){.remote = (uintptr_t)there + at,
                           .local = here + at,
                           .nbytes = nbytes,
                           .op = op,
                           .is_put = is_put};
}

static enum tk_status post(const struct tk_rma *rma, struct tk_rma_state *posted)
{
    return tk_peer(1)->transport->rma.post(tk_peer(1), rma, posted);
}

static void finish(const struct tk_rma *rma, struct tk_rma_state *posted)
{
    unsigned polls = 0;
    while (post(rma, posted) != TK_OK && ++polls < poll_limit)
        tk_poll();
    while (!tk_op_done(rma->op) && ++polls < poll_limit)
        tk_poll();
    NEED(polls < poll_limit);
    NEED(memcmp(there + (rma->remote - (uintptr_t)there), rma->local, rma->nbytes) == 0);
    NEED(wrong_writes == 0);
}

static void transfer(bool is_put, size_t at, size_t nbytes)
{
    struct tk_op op;
    struct tk_rma rma = some(is_put, at, nbytes, &op);
    struct tk_rma_state posted = {.done = 0};
    finish(&rma, &posted);
}

/* Messages sent so far; an answer is one, too. */
static unsigned messages(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < fake_job.count; i++)
        count += !fake_job.sent[i].is_rma;
    return count;
}

/* ---- asking */

static void small_put(void *unused)
{
    open_room();
    transfer(true, 100, 64);
    NEED(messages() == 2 && writes == 0);
    NEED(cache.held == 1);
}

static void a_small_put_rides_on_the_request_for_its_region(void **state)
{
    unit_assert_exit(small_put, NULL, 0);
}

static void again(void *unused)
{
    open_room();
    transfer(true, 100, 64);
    transfer(true, 5000, 64);
    transfer(false, 0, granule);
    NEED(messages() == 2 && writes == 2);
    NEED(last_write.is_pair && last_write.endpoint == 0 && last_keys[0] == 100);
}

static void a_region_is_asked_for_once_and_serves_all_that_comes_after(void **state)
{
    unit_assert_exit(again, NULL, 0);
}

static void large_put(void *unused)
{
    struct tk_op op;
    open_room();
    fake_job.hold = true;
    struct tk_rma rma = some(true, 0, granule, &op);
    struct tk_rma_state posted = {.done = 0};
    NEED(post(&rma, &posted) == TK_BUSY);
    NEED(post(&rma, &posted) == TK_BUSY);
    NEED(posted.done == 0 && tk_op_done(&op));
    NEED(messages() == 1 && fake_job.sent[0].nbytes == 0);
    fake_job.hold = false;
    finish(&rma, &posted);
    NEED(writes == 1);
}

static void a_large_put_asks_waits_and_goes_by_the_network(void **state)
{
    unit_assert_exit(large_put, NULL, 0);
}

static void over_granules(void *unused)
{
    open_room();
    transfer(true, granule / 2, 3 * granule);
    NEED(cache.count == 4);
    NEED(writes == 4);
    memset(here, 0, sizeof(here));
    transfer(false, granule / 2, 3 * granule);
    NEED(writes == 8 && cache.count == 4);
}

static void each_piece_lies_in_one_region(void **state)
{
    unit_assert_exit(over_granules, NULL, 0);
}

static void at_the_edge(void *unused)
{
    open_room();
    tk_peer(1)->segment_base = (uintptr_t)there + 512;
    tk_peer(1)->segment_size = 1024;
    tk_segment_area = (struct tk_area){.base = there + 512, .size = 1024, .fd = -1};
    transfer(true, 600, 8);
    NEED(cache.regions[0].base == (uintptr_t)there + 512 && cache.regions[0].size == 1024);
}

static void a_region_ends_with_the_segment(void **state)
{
    unit_assert_exit(at_the_edge, NULL, 0);
}

static void ask_several(void *unused)
{
    struct tk_op op;
    open_room();
    fake_job.hold = true;
    transfer(true, 15 * granule, 0); /* nothing is nothing */
    NEED(fake_job.count == 0);
    fake_job.hold = false;
    transfer(true, 15 * granule, 8); /* the answer says how many are lent */
    unsigned before = messages();
    fake_job.hold = true;
    struct tk_rma rma = some(true, 0, 8 * granule, &op);
    struct tk_rma_state posted = {.done = 0};
    NEED(post(&rma, &posted) == TK_BUSY && post(&rma, &posted) == TK_BUSY);
    NEED(messages() - before == 1 + cache.lent / 2);
    fake_job.hold = false;
    finish(&rma, &posted);
}

static void behind_the_region_that_is_waited_for_others_are_asked_for_up_to_half(void **state)
{
    unit_assert_exit(ask_several, NULL, 0);
}

static void few_regions(void *unused)
{
    cache.lent = 2;
    open_room();
    for (int round = 0; round < 2; round++)
        for (size_t g = 0; g < 5; g++)
            transfer(true, g * granule, 200);
    NEED(cache.held_max <= 2);
    NEED(cache.held == 2);
    NEED(messages() == 20); /* giving one up costs no message of its own */
}

static void a_region_is_given_up_in_the_request_for_another(void **state)
{
    unit_assert_exit(few_regions, NULL, 0);
}

/* As where messages are small (--with-ibv-max-medium=1024): GASNET_PUTINMOVE_LIMIT may be more than
 * one of them carries. */
static void too_large_to_ride(void *unused)
{
    tk_firehose_granule_size = sizeof(there);
    open_room();
    tk_settings.putinmove_limit = sizeof(there);
    transfer(true, 0, tk_data_max() + 1);
    NEED(writes == 1);
    for (unsigned i = 0; i < fake_job.count; i++)
        NEED(fake_job.sent[i].is_rma || fake_job.sent[i].nbytes <= tk_data_max());
}

static void a_put_that_no_message_holds_does_not_ride(void **state)
{
    unit_assert_exit(too_large_to_ride, NULL, 0);
}

/* ---- ways around */

static void refused(void *unused)
{
    cache.refuses = true;
    open_room();
    transfer(true, 3, 3 * granule);
    memset(here, 0, sizeof(here));
    transfer(false, 3, 3 * granule);
    NEED(writes == 0 && cache.held == 0);
}

static void what_cannot_be_registered_travels_in_messages(void **state)
{
    unit_assert_exit(refused, NULL, 0);
}

static void in_pieces(void *unused)
{
    cache.refuses = true;
    open_room();
    transfer(false, 0, sizeof(there));
    for (unsigned i = 0; i < fake_job.count; i++)
        NEED(fake_job.sent[i].nbytes <= tk_data_max());
}

static void no_message_carries_more_than_fits(void **state)
{
    unit_assert_exit(in_pieces, NULL, 0);
}

static void unfinished(void *unused)
{
    struct tk_op op;
    cache.refuses = true;
    open_room();
    struct tk_rma rma = some(false, 0, 100, &op);
    struct tk_rma_state posted = {.done = 0};
    while (post(&rma, &posted) != TK_OK)
        tk_poll();
    NEED(!tk_op_done(&op));
    fake_job_deliver();
    NEED(!tk_op_done(&op));
    fake_job_deliver();
    NEED(tk_op_done(&op));
}

static void an_operation_is_done_when_the_answer_is_there(void **state)
{
    unit_assert_exit(unfinished, NULL, 0);
}

static void no_room(void *unused)
{
    struct tk_op op;
    open_room();
    struct tk_rma rma = some(true, 0, 64, &op);
    struct tk_rma_state posted = {.done = 0};
    fake_job.busy_sends = 2;
    NEED(post(&rma, &posted) == TK_BUSY && post(&rma, &posted) == TK_BUSY);
    NEED(posted.done == 0 && tk_op_done(&op) && messages() == 0);
    finish(&rma, &posted);
    fake_job.busy_rmas = 1;
    rma = some(true, 0, 2000, &op);
    posted = (struct tk_rma_state){.done = 0};
    NEED(post(&rma, &posted) == TK_BUSY && tk_op_done(&op));
    finish(&rma, &posted);
}

static void without_space_nothing_is_done_and_it_may_be_tried_again(void **state)
{
    unit_assert_exit(no_room, NULL, 0);
}

static void pair(void *unused)
{
    struct tk_op op;
    static const uint32_t keys[] = {100, 1100};
    open_room();
    tk_firehose_get(there, sizeof(there));
    struct tk_rma rma = some(true, 0, 2 * granule, &op);
    struct tk_rma_state posted = {.done = 0};
    rma.is_pair = true;
    rma.endpoint = 1;
    rma.remote_keys = keys;
    finish(&rma, &posted);
    NEED(messages() == 0 && writes == 1);
    /* Endpoint 0 of the peer has no segment; that also holds for our other endpoints. */
    rma = some(true, 0, 2 * granule, &op);
    rma.is_pair = true;
    posted = (struct tk_rma_state){.done = 0};
    finish(&rma, &posted);
    NEED(messages() > 0);
}

static void segments_with_keys_of_their_own_need_no_request(void **state)
{
    unit_assert_exit(pair, NULL, 0);
}

static void short_way(void *unused)
{
    struct tk_op op;
    open_room();
    const struct tk_transport *t = tk_peer(1)->transport;
    NEED(t != &network && tk_peer(2)->transport == &other);
    NEED(!t->rma.put(tk_peer(1), &op, (uintptr_t)there, here, 8));
    NEED(!t->rma.get(tk_peer(1), &op, (uintptr_t)there, here, 8));
}

static void peers_of_the_network_and_no_others_have_no_shorter_way(void **state)
{
    unit_assert_exit(short_way, NULL, 0);
}

/* ---- what a peer cannot make us do */

static void send_ask(uint32_t rank, const struct tk_ask *what, unsigned nargs)
{
    int32_t args[tk_max_args] = {0};
    memcpy(args, what, sizeof(*what));
    struct tk_internal_medium medium = {
        .handler = TK_HANDLER_REMOTE_ASK, .nargs = nargs, .args = args, .payload = here};
    medium.nbytes = what->what & TK_ASK_PUT ? 64 : 0;
    tk_peer(rank)->transport = &network;
    NEED(tk_internal_request(tk_peer(rank), &medium) == TK_OK);
    while (fake_job_deliver())
        ;
}

static void ask(void *what)
{
    open_room();
    send_ask(1, what, tk_ask_args);
}

static void no_peer_reaches_memory_outside_of_the_segment(void **state)
{
    uint64_t end = (uintptr_t)there + sizeof(there);
    struct tk_ask wrong[] = {{.what = TK_ASK_PUT, .at = end - 63},
                             {.what = TK_ASK_PUT, .at = (uintptr_t)there - 1},
                             {.what = TK_ASK_GET, .at = end - 63, .nbytes = 64},
                             {.what = TK_ASK_REGION, .from = end - granule, .size = granule + 1},
                             {.what = TK_ASK_REGION, .from = (uintptr_t)here, .size = 1}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        unit_assert_panic(ask, &wrong[i], "not inside this rank's segment");
}

static void nobody_gets_more_than_an_answer_holds(void **state)
{
    struct tk_ask much = {
        .what = TK_ASK_GET, .at = (uintptr_t)there, .nbytes = (uint32_t)tk_data_max() + 1};
    unit_assert_panic(ask, &much, "asked for more than an answer holds");
}

static void no_rank_gives_up_a_region_it_does_not_have(void **state)
{
    struct tk_ask none = {.give_up = 1}, beyond = {.give_up = 1000000};
    unit_assert_panic(ask, &none, "gave a region up that it did not have");
    unit_assert_panic(ask, &beyond, "gave a region up that it did not have");
}

static void give_up_anothers(void *unused)
{
    struct tk_ask theft = {.give_up = 1};
    open_room();
    transfer(true, 0, 8);
    NEED(cache.held == 1);
    send_ask(2, &theft, tk_ask_args);
}

static void no_rank_gives_up_anothers_region(void **state)
{
    unit_assert_panic(give_up_anothers, NULL, "rank 2 (elsewhere, pid 1002) gave a region up");
}

static void ask_in_few_words(void *unused)
{
    struct tk_ask what = {.what = 0};
    open_room();
    send_ask(1, &what, tk_ask_args - 1);
}

static void a_request_of_another_version_ends_the_process(void **state)
{
    unit_assert_panic(ask_in_few_words, NULL, "asked in a way that makes no sense");
}

/* The message comes back as the answer to a request that we did not send. */
static void an_unrequested_answer_ends_the_process(void **state)
{
    struct tk_ask no_flight = {.flight = 5}, no_hose = {.hose = 3}, beyond = {.flight = 1u << 31};
    unit_assert_panic(ask, &no_flight, "rank 1 (elsewhere, pid 1001) answered what was not asked");
    unit_assert_panic(ask, &no_hose, "answered what was not asked");
    unit_assert_panic(ask, &beyond, "answered what was not asked");
}

static void answer_as(uint32_t rank)
{
    struct {
        struct tk_message_head head;
        struct tk_answer answer;
    } message = {.head = {.kind = TK_REPLY,
                          .category = TK_MEDIUM,
                          .nargs = tk_answer_args,
                          .handler = TK_HANDLER_REMOTE_ANSWER},
                 .answer = {.flight = 1}};
    struct tk_arrival arrival = {
        .peer = tk_peer(rank), .head = &message.head, .payload = &message + 1};
    tk_deliver(&arrival);
}

static void answer_for_another(void *unused)
{
    struct tk_op op;
    open_room();
    struct tk_rma rma = some(true, 0, 64, &op);
    struct tk_rma_state posted = {.done = 0};
    NEED(post(&rma, &posted) == TK_OK && !tk_op_done(&op));
    answer_as(2);
}

static void answer_twice(void *unused)
{
    open_room();
    transfer(true, 0, 64);
    answer_as(1);
}

static void an_answer_of_another_rank_or_a_second_one_ends_the_process(void **state)
{
    unit_assert_panic(answer_for_another, NULL, "rank 2 (elsewhere, pid 1002) answered what");
    unit_assert_panic(answer_twice, NULL, "rank 1 (elsewhere, pid 1001) answered what");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_small_put_rides_on_the_request_for_its_region),
    cmocka_unit_test(a_region_is_asked_for_once_and_serves_all_that_comes_after),
    cmocka_unit_test(a_large_put_asks_waits_and_goes_by_the_network),
    cmocka_unit_test(each_piece_lies_in_one_region),
    cmocka_unit_test(a_region_ends_with_the_segment),
    cmocka_unit_test(behind_the_region_that_is_waited_for_others_are_asked_for_up_to_half),
    cmocka_unit_test(a_region_is_given_up_in_the_request_for_another),
    cmocka_unit_test(a_put_that_no_message_holds_does_not_ride),
    cmocka_unit_test(what_cannot_be_registered_travels_in_messages),
    cmocka_unit_test(no_message_carries_more_than_fits),
    cmocka_unit_test(an_operation_is_done_when_the_answer_is_there),
    cmocka_unit_test(without_space_nothing_is_done_and_it_may_be_tried_again),
    cmocka_unit_test(segments_with_keys_of_their_own_need_no_request),
    cmocka_unit_test(peers_of_the_network_and_no_others_have_no_shorter_way),
    cmocka_unit_test(no_peer_reaches_memory_outside_of_the_segment),
    cmocka_unit_test(nobody_gets_more_than_an_answer_holds),
    cmocka_unit_test(no_rank_gives_up_a_region_it_does_not_have),
    cmocka_unit_test(no_rank_gives_up_anothers_region),
    cmocka_unit_test(a_request_of_another_version_ends_the_process),
    cmocka_unit_test(an_unrequested_answer_ends_the_process),
    cmocka_unit_test(an_answer_of_another_rank_or_a_second_one_ends_the_process),
};

UNIT_MAIN(tests)
