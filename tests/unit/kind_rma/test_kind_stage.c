/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfers with memory of a fake device, looped back in this process: what it sends to rank 1
 * comes back as if rank 1 had sent it, so this process is initiator and target in turn. The
 * device's addresses are mapped PROT_NONE; its copies use another view of the same memory, and
 * complete after a few polls. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/nbi.h"
#include "fake_job.h"
#include "kind_rma/kind_open.h"
#include "kind_rma/kind_rma_private.h"
#include "op/op.h"
#include "tests/unit/kind_rma/paper_device.h"
#include "progress/progress.h"
#include "team/objects.h"
#include "unit.h"

/* ---- what lies around */

static struct trunkline_segment segment = {.kind_memory = &memory};
static struct trunkline_ep ep = {.segment = &segment, .index = endpoint};
static char *host; /* the segment of host_endpoint, at rank 1 */
static char *here; /* in no segment */

struct trunkline_ep *tk_ep_at(gex_EP_Index_t index)
{
    return index == endpoint ? &ep : NULL;
}

struct tk_bound tk_bound_of(uint32_t rank, uint32_t index)
{
    struct tk_bound bound = {.endpoint = index, .fd = -1};
    (void)rank;
    if (index == tk_endpoint_staging)
        tk_staging.bound(&bound);
    return bound;
}

uintptr_t tk_neighbour_addr_offset(struct tk_peer *peer, uint32_t index)
{
    (void)peer, (void)index;
    return tk_unmapped;
}

/* ---- transfers */

static struct tk_kind_transfer transfer(bool is_put, const char *remote, char *local, size_t nbytes)
{
    return (struct tk_kind_transfer){
        .t = {.peer = tk_peer(1),
              .rma = {.remote = (uintptr_t)remote,
                      .local = local,
                      .nbytes = nbytes,
                      .is_put = is_put,
                      .is_pair = true,
                      .endpoint = is_on_device((uintptr_t)remote) ? endpoint : host_endpoint}},
        .local = is_on_device((uintptr_t)local) ? &memory : NULL,
        .remote = is_on_device((uintptr_t)remote) ? &kind : NULL};
}

static enum tk_status (*rma_of_fake)(struct tk_peer *peer, const struct tk_rma *rma,
                                     struct tk_rma_state *state);

static enum tk_status count_piece(const struct tk_rma *rma, struct tk_rma_state *state)
{
    size_t number = (rma->remote - (uintptr_t)host) / piece;
    unsigned char bit = (unsigned char)(1 << number % 8);
    assert_true(number / 8 < sizeof(gpu.pieces));
    assert_int_equal(gpu.pieces[number / 8] & bit, 0);
    gpu.pieces[number / 8] |= bit;
    gpu.posted += rma->nbytes;
    state->done = rma->nbytes;
    return TK_OK;
}

/* A posted buffer lies on the device only if it is registered there; slots are posted with the key
 * of their registration. */
static struct tk_region registered = {.handle = &registered};

static enum tk_status look_at_rma(struct tk_peer *peer, const struct tk_rma *rma,
                                  struct tk_rma_state *state)
{
    bool is_slot = tk_area_holds(&tk_kind_staging.area, rma->local, rma->nbytes);
    assert_int_equal(rma->is_on_device, rma->home == &registered);
    assert_int_equal(is_slot, rma->home == &tk_kind_staging.region);
    if (gpu.only_counts)
        return count_piece(rma, state);
    struct tk_rma seen_by_hca = *rma;
    if (rma->is_on_device)
        seen_by_hca.local = seen((uintptr_t)rma->local, &device);
    return rma_of_fake(peer, &seen_by_hca, state);
}

static void fill(char *at, size_t nbytes, unsigned seed)
{
    struct unit_random r = unit_random(seed + 1);
    for (size_t i = 0; i < nbytes; i++)
        at[i] = (char)unit_below(&r, 256);
}

static unsigned sent_by(enum tk_internal_handler handler)
{
    unsigned count = 0;
    for (unsigned i = 0; i < fake_job.count; i++)
        count += !fake_job.sent[i].is_rma && fake_job.sent[i].head->handler == handler;
    return count;
}

static unsigned rmas(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < fake_job.count; i++)
        count += fake_job.sent[i].is_rma;
    return count;
}

static unsigned free_slots(void)
{
    unsigned count = 0;
    for (struct tk_kind_slot *s = tk_kind_staging.own; s; s = s->next)
        count++;
    return count;
}

/* The list of what was sent is short. */
static void forget_sent(void)
{
    while (fake_job.delivered < fake_job.count || fake_job.reaped < fake_job.count)
        tk_poll();
    for (unsigned i = 0; i < fake_job.count; i++)
        free(fake_job.sent[i].head);
    fake_job.count = fake_job.delivered = fake_job.reaped = 0;
}

static void assert_idle(void)
{
    for (int i = 0; i < 20; i++)
        tk_poll();
    assert_int_equal(tk_counter_read(&tk_deferred_work_wanted), 0);
    assert_int_equal(free_slots(), slots);
    assert_int_equal(gpu.in_flight, 0);
    assert_int_equal(tk_kind_copies, 0);
}

static int set_up(void **state)
{
    (void)state;
    static bool is_open;
    fake_job_open(3);
    memset(&gpu, 0, sizeof(gpu));
    device.facts = (struct tk_kind_facts){.needs_flush = false};
    if (!is_open) {
        rma_of_fake = fake_transport.rma.post;
        fake_transport.rma.post = look_at_rma;
        unit_settings("GASNET_MK_STAGING=131072", "GASNET_MK_PIECE=32768", NULL);
        tk_message_open();
        tk_kind_rma_open();
        assert_int_equal(tk_staging.open(), TK_OK);
        int fd = memfd_create("paper", 0);
        assert_int_equal(ftruncate(fd, size), 0);
        view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        device_at = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);
        memory.base = (uintptr_t)device_at;
        host = malloc(size);
        here = malloc(size);
        is_open = true;
    }
    fill(view, size, 1);
    fill(host, size, 2);
    fill(here, size, 3);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_idle();
    fake_job_close();
    return 0;
}

/* ---- tests */

static void small_data_travels_in_messages(void **state)
{
    (void)state;
    struct tk_kind_transfer k = transfer(true, device_at + 5, here + 3, 4000);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(view + 5, here + 3, 4000);
    assert_int_equal(sent_by(TK_HANDLER_KIND_ASK), 1);
    assert_int_equal(sent_by(TK_HANDLER_KIND_ANSWER), 1);
    k = transfer(false, device_at + 5, here + 9000, 4000);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(view + 5, here + 9000, 4000);
    assert_int_equal(sent_by(TK_HANDLER_KIND_ASK), 2);
    assert_int_equal(sent_by(TK_HANDLER_KIND_ANSWER), 2);
    assert_int_equal(rmas(), 0);
}

static void large_transfers_pass_through_slots_in_pieces(void **state)
{
    (void)state;
    enum { nbytes = 5 * piece + 77 };
    gpu.looks = 3;
    struct tk_kind_transfer k = transfer(true, device_at + 1, here + 2, nbytes);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(view + 1, here + 2, nbytes);
    assert_in_range(rmas(), 5, 6); /* the sixth piece travels in its message, if there is a slot */
    k = transfer(false, device_at + 1, here + 2 * nbytes, nbytes);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(view + 1, here + 2 * nbytes, nbytes);
    assert_in_range(rmas(), 10, 11);
}

static void device_memory_here_passes_through_our_slots(void **state)
{
    (void)state;
    enum { nbytes = 3 * piece + 1 };
    struct tk_kind_transfer k = transfer(true, host + 1, device_at + 2, nbytes);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(host + 1, view + 2, nbytes);
    k = transfer(false, host + nbytes, device_at + 2, nbytes);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(host + nbytes, view + 2, nbytes);
    assert_int_equal(sent_by(TK_HANDLER_KIND_ASK), 0);
    assert_int_equal(rmas(), 8);
    k = transfer(true, device_at + 400000, device_at + 7, 2 * piece);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(view + 400000, view + 7, 2 * piece);
}

static unsigned copies_of(bool is_put, char *remote, char *local, struct tk_kind_device *theirs)
{
    const struct tk_kind_plan plan = {.path = TK_KIND_BY_COPY, .remote_device = theirs};
    struct tk_kind_transfer k = transfer(is_put, remote, local, size);
    struct tk_op op;
    gpu.copies = 0;
    tk_op_init(&op);
    tk_lock(&tk_kind_lock);
    assert_int_equal(tk_kind_transfer_begin(&k, &plan, &op, NULL), TK_OK);
    tk_unlock(&tk_kind_lock);
    tk_wait_done(&op);
    return gpu.copies;
}

/* Copies of host memory block in drivers, with the lock held. */
static void copies_of_host_memory_are_cut(void **state)
{
    (void)state;
    assert_int_equal(copies_of(true, device_at, here, &device), 2);
    assert_memory_equal(view, here, size);
    fill(here, size, 4);
    assert_int_equal(copies_of(false, device_at, here, &device), 2);
    assert_memory_equal(view, here, size);
    assert_int_equal(copies_of(true, host, device_at, NULL), 2);
    assert_memory_equal(view, host, size);
    assert_int_equal(copies_of(true, device_at, device_at, &device), 1);
}

/* More bytes than an int, or 32 bits, count: each piece is put to a place of its own. */
static void lengths_have_64_bits(void **state)
{
    static const size_t lengths[] = {(1ull << 31) + 5, (1ull << 32) + 7};
    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(&gpu, 0, sizeof(gpu));
        gpu.only_counts = true;
        struct tk_kind_transfer k = transfer(true, host, device_at, lengths[i]);
        assert_int_equal(tk_kind_blocking(&k), 0);
        assert_true(gpu.copied == lengths[i] && gpu.posted == lengths[i]);
        assert_int_equal(gpu.copies, lengths[i] / piece + 1);
        for (size_t n = 0; n <= lengths[i] / piece; n++)
            assert_true(gpu.pieces[n / 8] & 1 << n % 8);
    }
}

/* So have the places in a segment that targets are asked for. */
static void places_have_64_bits(void **state)
{
    enum { nbytes = 2 * piece + 3 };
    const size_t place = (1ull << 33) + 12345;
    (void)state;
    memory.size = place + nbytes;
    gpu.no_bytes = true;
    struct tk_kind_transfer k = transfer(true, device_at, here, nbytes);
    k.t.rma.remote += place;
    assert_int_equal(tk_kind_blocking(&k), 0);
    memory.size = size;
    assert_int_equal(gpu.copied, nbytes);
    assert_int_equal(gpu.lowest, memory.base + place);
}

/* If a put finds no slot, its data goes into a slot later. */
static void a_target_without_slots_lets_initiators_wait_in_order(void **state)
{
    (void)state;
    enum { puts = 9, nbytes = 3000 };
    gex_Event_t events[puts];
    gpu.looks = 30;
    for (size_t i = 0; i < puts; i++) {
        struct tk_kind_transfer k =
            transfer(true, device_at + i * nbytes, here + i * nbytes, nbytes);
        events[i] = tk_kind_start(&k, GEX_EVENT_DEFER);
    }
    for (size_t i = 0; i < puts; i++)
        tk_wait_done(tk_op_of(events[i]));
    for (size_t i = 0; i < puts; i++)
        tk_op_give(tk_op_of(events[i]));
    assert_memory_equal(view, here, puts * nbytes);
    assert_true(rmas() > 0);
    assert_true(rmas() < puts);
}

static void immediate_transfers_begin_at_once_or_not_at_all(void **state)
{
    (void)state;
    gpu.looks = 1000000;
    struct tk_kind_transfer k = transfer(true, host, device_at, (slots + 1) * piece);
    gex_Event_t first = tk_kind_start(&k, GEX_EVENT_DEFER);
    struct tk_kind_transfer other = transfer(false, host, device_at, 8);
    other.t.rma.immediate = true;
    assert_int_equal(tk_kind_blocking(&other), 1);
    assert_ptr_equal(tk_kind_start(&other, GEX_EVENT_DEFER), GEX_EVENT_NO_OP);
    assert_int_equal(tk_kind_implicit(&other, GEX_EVENT_DEFER), 1);
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
    gpu.looks = 0;
    for (unsigned i = 0; !tk_op_done(tk_op_of(first)); i++) {
        assert_true(i < 3000000);
        tk_poll();
    }
    tk_op_give(tk_op_of(first));
    other.t.rma.immediate = true;
    assert_int_equal(tk_kind_blocking(&other), 0);
}

/* With GEX_EVENT_NOW, and when a leaf is done, the source may be changed. */
static void sources_are_free_when_that_is_reported(void **state)
{
    (void)state;
    const size_t sizes[] = {8, 64, 65, 3000, 2 * piece};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int form = 0; form < 3; form++) {
            size_t n = sizes[i];
            gex_Event_t leaf = GEX_EVENT_INVALID, root = GEX_EVENT_INVALID;
            char *before = malloc(n);
            memcpy(before, here, n);
            gpu.looks = 5;
            struct tk_kind_transfer k = transfer(true, device_at, here, n);
            if (form == 0)
                root = tk_kind_start(&k, GEX_EVENT_NOW);
            else if (form == 1)
                root = tk_kind_start(&k, &leaf);
            else
                assert_int_equal(tk_kind_implicit(&k, GEX_EVENT_NOW), 0);
            if (leaf != GEX_EVENT_INVALID)
                tk_wait_source_free(tk_op_of(leaf));
            fill(here, n, (unsigned)(100 * i) + (unsigned)form);
            if (root != GEX_EVENT_INVALID) {
                tk_wait_done(tk_op_of(root));
                tk_op_give(tk_op_of(root));
            }
            while (!tk_nbi_done(tk_nbi_now, GEX_EC_ALL))
                tk_poll();
            assert_memory_equal(view, before, n);
            free(before);
        }
}

static void nothing_is_complete_at_once(void **state)
{
    (void)state;
    gex_Event_t leaf = (gex_Event_t)here;
    struct tk_kind_transfer k = transfer(true, device_at, here, 0);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_ptr_equal(tk_kind_start(&k, &leaf), GEX_EVENT_INVALID);
    assert_ptr_equal(leaf, GEX_EVENT_INVALID);
    assert_int_equal(tk_kind_implicit(&k, GEX_EVENT_GROUP), 0);
    assert_int_equal(fake_job.count, 0);
}

/* Rows at distances on both sides: one copy for each piece that is staged. */
static void rows_pass_through_slots_as_pieces(void **state)
{
    (void)state;
    enum { row = 300, rows = 200, most = 2 * (row * rows / piece + 1) };
    const struct {
        char *remote, *local, *remote_seen, *local_seen;
    } mixtures[] = {{device_at, here, view, here},
                    {host, device_at, host, view},
                    {device_at, device_at + size / 2, view, view + size / 2}};
    for (size_t m = 0; m < 6; m++) {
        bool is_put = m % 2;
        struct tk_op op;
        tk_op_init(&op);
        struct tk_kind_transfer k =
            transfer(is_put, mixtures[m / 2].remote + 5, mixtures[m / 2].local + 3, row);
        k.rows = (struct tk_kind_rows){.count = rows, .local_pitch = 310, .remote_pitch = 400};
        char *to = is_put ? mixtures[m / 2].remote_seen + 5 : mixtures[m / 2].local_seen + 3;
        char *from = is_put ? mixtures[m / 2].local_seen + 3 : mixtures[m / 2].remote_seen + 5;
        size_t to_pitch = is_put ? 400 : 310, from_pitch = is_put ? 310 : 400;
        fill(view, size, 10 + (unsigned)m);
        char *expected = malloc(rows * to_pitch);
        memcpy(expected, to, rows * to_pitch);
        for (size_t i = 0; i < rows; i++)
            memcpy(expected + i * to_pitch, from + i * from_pitch, row);
        gpu.copies = 0;
        gpu.looks = 2;
        fake_job.busy_rmas = 3;
        tk_kind_post(&k, &op, NULL);
        tk_wait_done(&op);
        assert_memory_equal(to, expected, rows * to_pitch);
        assert_in_range(gpu.copies, 1, 2 * most);
        free(expected);
        forget_sent();
    }
}

/* Transports and devices that are busy, sizes, mixtures and delays at random. */
static void a_random_mix_moves_each_byte(void **state)
{
    (void)state;
    struct unit_random r = unit_random(42);
    enum { rounds = 150, at_once = 6, part = 150000, most = 70000 };
    char *model[3], *real[3] = {device_at, host, here};
    for (int m = 0; m < 3; m++) {
        model[m] = malloc(size);
        memcpy(model[m], m == 0 ? view : real[m], size);
    }
    for (unsigned round = 0; round < rounds; round++) {
        struct tk_op ops[at_once];
        for (size_t i = 0; i < at_once; i++) {
            int local = unit_below(&r, 2) ? 0 : 2, remote = local == 2 ? 0 : (int)unit_below(&r, 2);
            size_t n = 1 + unit_below(&r, unit_below(&r, 2) ? most : 300);
            size_t to = i * part + unit_below(&r, 1000), from = to + part / 2;
            bool is_put = unit_below(&r, 2);
            struct tk_kind_transfer k = transfer(is_put, real[remote] + to, real[local] + from, n);
            if (is_put)
                memcpy(model[remote] + to, model[local] + from, n);
            else
                memcpy(model[local] + from, model[remote] + to, n);
            gpu.looks = unit_below(&r, 10);
            gpu.busy += unit_below(&r, 3);
            fake_job.busy_sends += unit_below(&r, 3);
            fake_job.busy_rmas += unit_below(&r, 3);
            fake_job.rma_piece = unit_below(&r, 2) ? 0 : 10000;
            tk_op_init(&ops[i]);
            tk_kind_post(&k, &ops[i], NULL);
        }
        for (size_t i = 0; i < at_once; i++)
            tk_wait_done(&ops[i]);
        forget_sent();
        assert_memory_equal(view, model[0], size);
        assert_memory_equal(host, model[1], size);
        assert_memory_equal(here, model[2], size);
    }
    for (int m = 0; m < 3; m++)
        free(model[m]);
}

/* ---- what an HCA writes to memory here */

static struct tk_kind_transfer get_in_place(char *local, size_t nbytes)
{
    struct tk_kind_transfer k = transfer(false, host + 2, local, nbytes);
    k.t.rma.home = &registered;
    return k;
}

/* Before the get is complete, whichever call waits for it. */
static void gets_are_flushed_where_the_class_can_flush(void **state)
{
    (void)state;
    device.facts.needs_flush = device.facts.can_flush = true;
    gpu.expected = host + 2;
    struct tk_kind_transfer k = get_in_place(device_at + 1, 1000);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_int_equal(gpu.flushes, 1);
    gex_Event_t event = tk_kind_start(&k, GEX_EVENT_DEFER);
    tk_wait_done(tk_op_of(event));
    tk_op_give(tk_op_of(event));
    assert_int_equal(gpu.flushes, 2);
    assert_int_equal(tk_kind_implicit(&k, GEX_EVENT_DEFER), 0);
    while (!tk_nbi_done(tk_nbi_now, GEX_EC_ALL))
        tk_poll();
    assert_int_equal(gpu.flushes, 3);
    assert_int_equal(rmas(), 3);
    assert_int_equal(gpu.copies, 0);
}

static void gets_are_staged_where_it_can_not(void **state)
{
    (void)state;
    device.facts.needs_flush = true;
    struct tk_kind_transfer k = get_in_place(device_at + 1, 1000);
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(view + 1, host + 2, 1000);
    assert_int_equal(gpu.flushes, 0);
    assert_int_equal(gpu.copies, 1);
}

/* The HCA reads memory of a device as it is. */
static void puts_are_not_flushed_here(void **state)
{
    (void)state;
    device.facts.needs_flush = device.facts.can_flush = true;
    struct tk_kind_transfer k = get_in_place(device_at + 1, 1000);
    k.t.rma.is_put = true;
    assert_int_equal(tk_kind_blocking(&k), 0);
    assert_memory_equal(host + 2, view + 1, 1000);
    assert_int_equal(gpu.flushes + gpu.copies, 0);
}

/* ---- the device is given back with its last kind or segment */

static void put_something(void)
{
    struct tk_kind_transfer k = transfer(true, host, device_at, 8);
    assert_int_equal(tk_kind_blocking(&k), 0);
}

static void the_last_kind_or_segment_gives_the_device_back(void **state)
{
    (void)state;
    gpu.held = tk_kind_copy_holds(&device);
    tk_kind_device_hold(&device);
    put_something();
    tk_kind_device_hold(&device);
    tk_kind_rma_put(&device);
    assert_int_equal(gpu.held, 2); /* its staging memory stays pinned */
    tk_kind_rma_put(&device);
    assert_int_equal(gpu.held, 0);
    assert_int_equal(tk_kind_copy_holds(&device), 0);
}

static pthread_barrier_t begin;

static void *give_back(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&begin);
    tk_kind_rma_put(&device);
    return NULL;
}

/* The last two references, dropped by two threads at once: one of them is the last. */
static void of_two_threads_one_gives_the_device_back(void **state)
{
    enum { rounds = 100 };
    (void)state;
    if (!TK_THREADED)
        skip();
    pthread_barrier_init(&begin, NULL, 2);
    for (int i = 0; i < rounds; i++) {
        pthread_t other;
        gpu.held = tk_kind_copy_holds(&device) + 2;
        put_something();
        assert_int_equal(pthread_create(&other, NULL, give_back, NULL), 0);
        give_back(NULL);
        pthread_join(other, NULL);
        assert_int_equal(gpu.held, 0);
    }
    pthread_barrier_destroy(&begin);
}

/* ---- invalid messages and failing devices: each ends the process with one line */

static void send(enum tk_internal_handler handler, const void *words, unsigned nargs,
                 const void *payload, size_t nbytes)
{
    int32_t args[tk_max_args];
    memcpy(args, words, nargs * sizeof(*args));
    const struct tk_internal_medium medium = {
        .handler = handler, .nargs = nargs, .args = args, .payload = payload, .nbytes = nbytes};
    tk_internal_request(tk_peer(2), &medium);
    while (fake_job_deliver())
        continue;
}

static void send_ask(void *ask)
{
    send(TK_HANDLER_KIND_ASK, ask, tk_kind_ask_args, NULL, 0);
}

static void send_ask_with_data(void *ask)
{
    send(TK_HANDLER_KIND_ASK, ask, tk_kind_ask_args, here, 100);
}

static void send_answer(void *answer)
{
    send(TK_HANDLER_KIND_ANSWER, answer, tk_kind_answer_args, NULL, 0);
}

static void send_short_ask(void *ask)
{
    send(TK_HANDLER_KIND_ASK, ask, tk_kind_ask_args - 1, NULL, 0);
}

static void asks_that_make_no_sense_end_the_job(void **state)
{
    (void)state;
    uint64_t base = memory.base;
    struct tk_kind_ask ask = {.endpoint = endpoint, .at = base + size - 10, .nbytes = 11};
    unit_assert_panic(send_ask, &ask, "device memory is [");
    ask = (struct tk_kind_ask){.endpoint = endpoint, .at = base - 1, .nbytes = 2};
    unit_assert_panic(send_ask, &ask, "device memory is [");
    ask = (struct tk_kind_ask){.endpoint = endpoint, .at = base, .nbytes = UINT64_MAX};
    unit_assert_panic(send_ask, &ask, "of a wrong size");
    ask.nbytes = piece + 1;
    unit_assert_panic(send_ask, &ask, "of a wrong size");
    ask.nbytes = 0;
    unit_assert_panic(send_ask, &ask, "of a wrong size");
    ask.nbytes = 99;
    unit_assert_panic(send_ask_with_data, &ask, "of a wrong size");
    ask = (struct tk_kind_ask){.endpoint = 7, .at = base, .nbytes = 8};
    unit_assert_panic(send_ask, &ask, "device memory is [");
    ask = (struct tk_kind_ask){.what = TK_KIND_COPY_IN, .endpoint = endpoint, .slot = 1};
    unit_assert_panic(send_ask, &ask, "that it does not have");
    ask.slot = UINT32_MAX;
    unit_assert_panic(send_ask, &ask, "that it does not have");
    ask.what = 77;
    unit_assert_panic(send_ask, &ask, "of no known sort");
    ask = (struct tk_kind_ask){
        .endpoint = endpoint, .at = base + size - 99, .nbytes = 20, .row = 10, .pitch = 90};
    unit_assert_panic(send_ask, &ask, "device memory is [");
    ask.pitch = UINT32_MAX;
    unit_assert_panic(send_ask, &ask, "of a wrong size");
    ask.pitch = 9;
    unit_assert_panic(send_ask, &ask, "of a wrong size");
    ask = (struct tk_kind_ask){
        .endpoint = endpoint, .at = base, .nbytes = 21, .row = 10, .pitch = 10};
    unit_assert_panic(send_ask, &ask, "of a wrong size");
    ask.what = 77;
    unit_assert_panic(send_short_ask, &ask, "by another message");
}

/* Rank 2 holds slot 0, and rank 1 claims to have filled it. */
static void use_a_slot_of_another(void *what)
{
    struct tk_kind_ask ask = {
        .what = TK_KIND_ASK_PUT, .endpoint = endpoint, .at = memory.base, .nbytes = 8};
    (void)what;
    send_ask(&ask);
    tk_poll();
    ask.what = TK_KIND_COPY_IN;
    int32_t args[tk_kind_ask_args];
    memcpy(args, &ask, sizeof(args));
    const struct tk_internal_medium medium = {
        .handler = TK_HANDLER_KIND_ASK, .nargs = tk_kind_ask_args, .args = args};
    fake_job.delivered = fake_job.count;
    tk_internal_request(tk_peer(1), &medium);
    fake_job_deliver();
}

static void slots_belong_to_who_asked_for_them(void **state)
{
    (void)state;
    unit_assert_panic(use_a_slot_of_another, NULL, "rank 1 (elsewhere, pid 1001) used a staging");
}

static void answers_that_make_no_sense_end_the_job(void **state)
{
    (void)state;
    struct tk_kind_answer answer = {.what = TK_KIND_DONE};
    unit_assert_panic(send_answer, &answer, "that it was not asked for");
    answer.piece = UINT32_MAX;
    unit_assert_panic(send_answer, &answer, "that it was not asked for");
}

/* Rank 1 was asked for a put. */
static void answer_wrongly(void *what)
{
    struct tk_kind_answer answer = *(const struct tk_kind_answer *)what;
    struct tk_kind_ask ask;
    struct tk_kind_transfer k = transfer(true, device_at, here, piece);
    fake_job.hold = true;
    tk_kind_start(&k, GEX_EVENT_DEFER);
    memcpy(&ask, fake_job.sent[fake_job.count - 1].head + 1, sizeof(ask));
    answer.piece = ask.piece;
    int32_t args[tk_kind_answer_args];
    memcpy(args, &answer, sizeof(args));
    const struct tk_internal_medium medium = {
        .handler = TK_HANDLER_KIND_ANSWER, .nargs = tk_kind_answer_args, .args = args};
    fake_job.delivered = fake_job.count;
    tk_internal_request(tk_peer(1), &medium);
    fake_job_deliver();
}

static void answers_out_of_order_end_the_job(void **state)
{
    (void)state;
    struct tk_kind_answer answer = {.what = TK_KIND_DONE};
    unit_assert_panic(answer_wrongly, &answer, "out of order");
    answer.what = TK_KIND_READY;
    unit_assert_panic(answer_wrongly, &answer, "out of order");
    answer.what = TK_KIND_DATA;
    unit_assert_panic(answer_wrongly, &answer, "out of order");
    answer = (struct tk_kind_answer){.what = TK_KIND_GRANT, .slot = slots};
    unit_assert_panic(answer_wrongly, &answer, "out of order");
}

static void put_by_a_failing_device(void *arg)
{
    struct tk_kind_transfer k = transfer(true, host, device_at, 100);
    (void)arg;
    gpu.fails = 1;
    tk_kind_blocking(&k);
}

static void get_by_a_failing_device(void *arg)
{
    (void)arg;
    device.facts.needs_flush = device.facts.can_flush = true;
    gpu.fails_flush = true;
    struct tk_kind_transfer k = get_in_place(device_at + 1, 1000);
    tk_kind_blocking(&k);
}

static void leave(uint32_t peer)
{
    _exit(peer == tk_no_peer ? 1 : 2);
}

static void a_failing_copy_ends_the_job_with_its_cause(void **state)
{
    const char *said;
    (void)state;
    tk_lost_peer = leave;
    int status = unit_child(put_by_a_failing_device, NULL, &said);
    tk_lost_peer = NULL;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    unit_assert_says(said, "by PAPER device failed: the device fell off the bus");
    assert_int_equal(unit_lines(said), 1);
}

static void a_failing_flush_ends_the_job_with_its_cause(void **state)
{
    const char *said;
    (void)state;
    tk_lost_peer = leave;
    int status = unit_child(get_by_a_failing_device, NULL, &said);
    tk_lost_peer = NULL;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    unit_assert_says(said, "flushing what an HCA wrote to PAPER device failed: it fell off");
    assert_int_equal(unit_lines(said), 1);
}

/* Its data would be wrong, and the line would hide the cause of the end. */
static void begin_a_failing_put(void *arg)
{
    (void)arg;
    struct tk_kind_transfer k = transfer(true, host, device_at, 100);
    gpu.fails = 1;
    gex_Event_t event = tk_kind_start(&k, GEX_EVENT_DEFER);
    for (int i = 0; i < 100; i++)
        tk_poll();
    _exit(event != GEX_EVENT_INVALID && !tk_op_done(tk_op_of(event)) ? 5 : 6);
}

static void a_copy_that_fails_while_the_job_leaves_never_completes(void **state)
{
    const char *said;
    (void)state;
    int status = unit_child(begin_a_failing_put, NULL, &said);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 5);
    assert_int_equal(unit_lines(said), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(small_data_travels_in_messages),
    TEST(large_transfers_pass_through_slots_in_pieces),
    TEST(device_memory_here_passes_through_our_slots),
    TEST(copies_of_host_memory_are_cut),
    TEST(lengths_have_64_bits),
    TEST(places_have_64_bits),
    TEST(a_target_without_slots_lets_initiators_wait_in_order),
    TEST(immediate_transfers_begin_at_once_or_not_at_all),
    TEST(sources_are_free_when_that_is_reported),
    TEST(nothing_is_complete_at_once),
    TEST(rows_pass_through_slots_as_pieces),
    TEST(a_random_mix_moves_each_byte),
    TEST(gets_are_flushed_where_the_class_can_flush),
    TEST(gets_are_staged_where_it_can_not),
    TEST(puts_are_not_flushed_here),
    TEST(the_last_kind_or_segment_gives_the_device_back),
    TEST(of_two_threads_one_gives_the_device_back),
    TEST(asks_that_make_no_sense_end_the_job),
    TEST(slots_belong_to_who_asked_for_them),
    TEST(answers_that_make_no_sense_end_the_job),
    TEST(answers_out_of_order_end_the_job),
    TEST(a_failing_copy_ends_the_job_with_its_cause),
    TEST(a_failing_flush_ends_the_job_with_its_cause),
    TEST(a_copy_that_fails_while_the_job_leaves_never_completes),
};

UNIT_MAIN(tests)
