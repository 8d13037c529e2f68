/* SPDX-License-Identifier: BSD-3-Clause */
/* Rails and connections of the raw transports: opens what trunkline_rails.h offers, exchanges
 * addresses, connects each client with each server, and takes all down again. Owns kv_raw. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kv_raw.h"

enum { idle_few = 200, idle_many = 4000, inline_wanted = 256 };

struct kv_raw kv_raw;

/* ---- Kinds */

bool kv_raw_answers_by_write(void)
{
    return kv_transport == &kv_write_write;
}

static bool switched;

void kv_raw_switch(void)
{
    switched = true;
}

bool kv_raw_notifies(void)
{
    return kv_transport == &kv_write_imm ||
           (kv_transport == &kv_write_send && (switched || kv.notify == kv_notify_imm));
}

bool kv_raw_polls(void)
{
    return kv_raw_writes() && !kv_raw_notifies();
}

bool kv_raw_datagrams(void)
{
    return kv_transport == &kv_send_send;
}

bool kv_raw_writes(void)
{
    return !kv_raw_datagrams();
}

static bool crowded(void)
{
    return kv.backoff == kv_auto ? wl_job.host_ranks > wl_job.cpus : kv.backoff == kv_on;
}

/* A rank that polls memory all the time takes the CPU from the rank that should write there: on a
 * busy machine each request costs a whole scheduler time slice. */
void kv_raw_pause(uint32_t *idle)
{
    static const struct timespec nap = {0, 50000};
    if (++*idle % 256 == 0)
        gasnet_AMPoll();
    if (*idle < idle_few || kv.backoff == kv_off)
        return;
    if (*idle > idle_many && crowded())
        nanosleep(&nap, NULL);
    else
        sched_yield();
}

/* ---- Addresses */

/* The record that a rank sends to all others. */
struct card {
    uint64_t segment;
    uint32_t rail_count;
    uint32_t rkeys[kv_rails_max];
    struct {
        trunkline_address_t ud, pair;
    } peers[]; /* by number of the peer: where it sends to */
};

static size_t card_size(void)
{
    uint32_t most = kv_clients > kv_servers ? kv_clients : kv_servers;
    return sizeof(struct card) + most * 2 * sizeof(trunkline_address_t);
}

static struct card *card_of(char *cards, gex_Rank_t rank)
{
    return (struct card *)(cards + rank * card_size());
}

static gex_Rank_t rank_of(uint32_t peer)
{
    return kv_is_server() ? kv_servers + peer : peer;
}

static unsigned rail_to(uint32_t peer)
{
    return kv_rail_of(kv_is_server() ? peer : kv_client);
}

struct kv_sender *kv_raw_ud(uint32_t peer)
{
    if (kv_is_server())
        return &kv_raw.ud[kv_rail_of(peer)];
    return &kv_raw.ud[kv.ud == kv_ud_shared ? 0 : peer];
}

/* ---- Opening */

static void no(int error)
{
    if (error)
        wl_job_die("%s", trunkline_rails_error());
}

bool kv_raw_missing(char *why, size_t size)
{
    unsigned count;
    if (!trunkline_rails_open(&kv_raw.rails, &count))
        return false;
    snprintf(why, size, "%s", trunkline_rails_error());
    return true;
}

/* The option that the device of a rail does not allow, as text; NULL: none. */
static const char *beyond(const trunkline_rail_t *rail)
{
    int64_t answer =
        (int64_t)(kv_layout.compat ? kv_compat_answer : kv.value_max + kv_answer_image);
    int64_t request = kv_raw_datagrams() ? (int64_t)(kv.value_max + kv_layout.header_image) : 0;
    int64_t most = rail->limits.max_qp_wr;
    /* Datagrams are not split. */
    if ((answer > request ? answer : request) > (int64_t)rail->mtu - kv_grh)
        return "--value is too large for a datagram";
    if (kv.q_depth > most)
        return "--q-depth is more than the device allows";
    if (2 * kv.ws_server > most)
        return "twice --ws-server is more than the device allows";
    if (kv.cl_batch > most)
        return "--cl-batch is more than the device allows";
    if (kv_raw_datagrams() && kv_clients * kv.window + kv_spare > most)
        return "--window times the number of clients is more than the device allows";
    return NULL;
}

bool kv_raw_unfit(char *why, size_t size)
{
    unsigned count;
    const char *what = NULL, *rail = "";
    if (trunkline_rails_open(&kv_raw.rails, &count))
        return false;
    for (unsigned i = 0; i < count && !what; i++) {
        what = beyond(&kv_raw.rails[i]);
        rail = kv_raw.rails[i].name;
    }
    if (what)
        snprintf(why, size, "%s (%s: %d work requests, MTU %u)", what, rail,
                 kv_raw.rails[0].limits.max_qp_wr, (unsigned)kv_raw.rails[0].mtu);
    return what != NULL;
}

static void open_rails(void)
{
    unsigned count;
    no(trunkline_rails_open(&kv_raw.rails, &count));
    kv_raw.rail_count = count > kv_rails_max ? kv_rails_max : count;
    if (kv.ports && kv.ports < (int64_t)kv_raw.rail_count)
        kv_raw.rail_count = (unsigned)kv.ports;
}

/* Nothing may reorder writes: the last byte must become visible last. */
static void open_domain(unsigned rail)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    uint32_t depth = (kv_clients + 1) * ((uint32_t)kv.window + kv_spare) +
                     (kv_is_server() ? 0 : kv_ud_count() * (uint32_t)kv.cl_batch);
    no(trunkline_domain_open(&kv_raw.domains[rail], &kv_raw.rails[rail], 0));
    no(trunkline_memory_open(&kv_raw.segment[rail], &kv_raw.domains[rail], wl_job.segment,
                             wl_job.segment_size, access));
    no(trunkline_cq_open(&kv_raw.receives[rail], &kv_raw.domains[rail], depth, NULL));
}

static void open_ud(uint32_t number)
{
    char name[64];
    unsigned rail = kv_is_server() ? number : kv_rail_of(kv_client);
    uint32_t all =
        kv_is_server() ? kv_clients * (uint32_t)kv.window + kv_spare : (uint32_t)kv.cl_batch;
    uint32_t group = (uint32_t)(kv_is_server() ? kv.ws_server : kv.s_depth);
    if (kv_is_server())
        snprintf(name, sizeof(name), "kv-rsp-s%u", (unsigned)wl_job.me);
    else if (kv.ud == kv_ud_shared)
        snprintf(name, sizeof(name), "kv-rsp-c%u", kv_client);
    else
        snprintf(name, sizeof(name), "kv-rsp-c%u-s%u", kv_client, number);
    trunkline_qp_options_t options = {.name = name,
                                      .type = IBV_QPT_UD,
                                      .send_depth = 2 * group,
                                      .recv_depth = all,
                                      .inline_size = inline_wanted,
                                      .recv_cq = kv_raw.receives[rail]};
    kv_sender_open(&kv_raw.ud[number], rail, &options, group,
                   kv_is_server() ? (uint32_t)kv.postlist : 1, kv_is_server());
    no(trunkline_qp_connect(&kv_raw.ud[number].qp, NULL));
}

static void open_uds(void)
{
    kv_raw.ud_count = kv_is_server() ? kv_raw.rail_count : kv_ud_count();
    kv_raw.ud = calloc(kv_raw.ud_count, sizeof(*kv_raw.ud));
    if (!kv_raw.ud)
        wl_job_die("no memory for %u queue pairs", kv_raw.ud_count);
    for (uint32_t number = 0; number < kv_raw.ud_count; number++)
        open_ud(number);
}

static void open_pair(uint32_t peer)
{
    char name[64];
    unsigned rail = rail_to(peer);
    bool server = kv_is_server();
    uint32_t group = (uint32_t)(server ? kv.ws_server : kv.s_depth);
    snprintf(name, sizeof(name), "kv-req-c%u-s%u", server ? peer : kv_client,
             server ? (unsigned)wl_job.me : peer);
    trunkline_qp_options_t options = {.name = name,
                                      .type = kv.uc ? IBV_QPT_UC : IBV_QPT_RC,
                                      .send_depth = server ? 2 * group : (uint32_t)kv.q_depth,
                                      .recv_depth = server ? (uint32_t)kv.window + kv_spare : 1,
                                      .inline_size = inline_wanted,
                                      .recv_cq = kv_raw.receives[rail],
                                      .access = IBV_ACCESS_REMOTE_WRITE};
    kv_sender_open(&kv_raw.peers[peer].pair, rail, &options, group,
                   server ? (uint32_t)kv.postlist : 1, server);
}

static void write_card(struct card *card)
{
    card->segment = (uint64_t)(uintptr_t)wl_job.segment;
    card->rail_count = kv_raw.rail_count;
    for (unsigned rail = 0; rail < kv_raw.rail_count; rail++)
        card->rkeys[rail] = kv_raw.segment[rail]->rkey;
    for (uint32_t peer = 0; peer < kv_raw.peer_count; peer++) {
        card->peers[peer].ud = kv_raw_ud(peer)->qp.address;
        if (kv_raw_writes())
            card->peers[peer].pair = kv_raw.peers[peer].pair.qp.address;
    }
}

static void connect_peer(uint32_t number, const struct card *card)
{
    struct kv_peer *peer = &kv_raw.peers[number];
    unsigned rail = rail_to(number);
    if (card->rail_count != kv_raw.rail_count)
        wl_job_die("rank %u has %u rails, this one %u", (unsigned)rank_of(number),
                   (unsigned)card->rail_count, kv_raw.rail_count);
    peer->segment = card->segment;
    peer->rkey = card->rkeys[rail];
    uint32_t me = kv_is_server() ? (uint32_t)wl_job.me : kv_client;
    peer->ud = card->peers[me].ud;
    no(trunkline_qp_reach(&peer->ah, &kv_raw_ud(number)->qp, &peer->ud));
    if (kv_raw_writes())
        no(trunkline_qp_connect(&peer->pair.qp, &card->peers[me].pair));
}

void kv_raw_open(void)
{
    memset(&kv_raw, 0, sizeof(kv_raw));
    kv_raw.peer_count = kv_is_server() ? kv_clients : kv_servers;
    kv_raw.peers = calloc(kv_raw.peer_count, sizeof(*kv_raw.peers));
    char *mine = calloc(1, card_size()), *all = calloc(wl_job.size, card_size());
    if (!kv_raw.peers || !mine || !all)
        wl_job_die("no memory for connections");
    open_rails();
    for (unsigned rail = 0; rail < kv_raw.rail_count; rail++)
        open_domain(rail);
    open_uds();
    for (uint32_t peer = 0; kv_raw_writes() && peer < kv_raw.peer_count; peer++)
        open_pair(peer);
    write_card((struct card *)mine);
    no(trunkline_rails_share(mine, all, card_size()));
    for (uint32_t peer = 0; peer < kv_raw.peer_count; peer++)
        connect_peer(peer, card_of(all, rank_of(peer)));
    free(mine);
    free(all);
    if (kv_is_server())
        kv_raw_server_open();
    else
        kv_raw_client_open();
    /* No rank sends before all can receive. */
    no(trunkline_rails_barrier());
    if (kv_raw_polls())
        kv_raw_probe();
}

void kv_raw_close(void)
{
    no(trunkline_rails_barrier());
    if (kv_is_server())
        kv_raw_server_close();
    for (uint32_t peer = 0; peer < kv_raw.peer_count; peer++) {
        kv_sender_close(&kv_raw.peers[peer].pair);
        ibv_destroy_ah(kv_raw.peers[peer].ah);
    }
    for (uint32_t number = 0; number < kv_raw.ud_count; number++)
        kv_sender_close(&kv_raw.ud[number]);
    free(kv_raw.ud);
    if (!kv_is_server())
        kv_raw_client_close();
    for (unsigned rail = 0; rail < kv_raw.rail_count; rail++) {
        ibv_destroy_cq(kv_raw.receives[rail]);
        ibv_dereg_mr(kv_raw.segment[rail]);
        trunkline_domain_close(&kv_raw.domains[rail]);
    }
    free(kv_raw.peers);
    trunkline_rails_close();
}

void kv_raw_post_receives(const struct kv_receives *receives, uint32_t first, uint32_t count)
{
    enum { piece = 64 };
    struct ibv_recv_wr wrs[piece], *bad;
    struct ibv_sge sges[piece];
    for (uint32_t done = 0; done < count;) {
        uint32_t now = count - done < piece ? count - done : piece;
        for (uint32_t i = 0; i < now; i++) {
            uint32_t place = (first + done + i) % receives->of;
            char *buffer = receives->size ? receives->buffers + place * receives->size : NULL;
            sges[i] = (struct ibv_sge){(uint64_t)(uintptr_t)buffer, (uint32_t)receives->size,
                                       receives->lkey};
            wrs[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)receives->tag << 32 | place,
                                          .sg_list = &sges[i],
                                          .num_sge = receives->size ? 1 : 0,
                                          .next = i + 1 < now ? &wrs[i + 1] : NULL};
        }
        if (ibv_post_recv(receives->qp, wrs, &bad))
            wl_job_die("a receive queue takes no more");
        kv_mine.doorbells++;
        done += now;
    }
}

#define RAW_TRANSPORT(word, in_slots)                                                              \
    {                                                                                              \
        .name = word, .way = kv_way_raw, .slots = in_slots, .open = kv_raw_open,                   \
        .close = kv_raw_close, .request = kv_raw_request, .await = kv_raw_await,                   \
        .serve = kv_raw_serve, .reply = kv_raw_reply                                               \
    }
const struct kv_transport kv_write_send = RAW_TRANSPORT("write-send", true);
const struct kv_transport kv_write_write = RAW_TRANSPORT("write-write", true);
const struct kv_transport kv_write_imm = RAW_TRANSPORT("write-imm", true);
const struct kv_transport kv_send_send = RAW_TRANSPORT("send-send", false);
