/* SPDX-License-Identifier: BSD-3-Clause */
/* K3: whether writes become visible in ascending order. The transports that poll a slot's last byte
 * rely on that, and verbs do not promise it. Each client fills a slot at one server over and over;
 * the server compares all bytes at the moment at which it sees the last one. Some writes come in
 * two pieces with a pause between, so that a server that polled any other byte would be detected.
 * Owns nothing. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kv_raw.h"

enum { split_every = 32 };
static const struct timespec short_pause = {0, 20000};
/* Needed with the fault: the server must run meanwhile, however busy the machine is. */
static const struct timespec long_pause = {0, 20000000};

static char byte_of(uint64_t n, size_t at)
{
    return (char)(1 + (n * 31 + at * 7) % 255);
}

static char *slot(void)
{
    return wl_job.segment + (kv_is_server() ? 0 : kv_area());
}

static uint64_t deadline(void)
{
    return wl_now() + (uint64_t)kv.common.timeout_ms * 1000000;
}

/* False when the other side is silent. */
static bool pause_until(uint32_t *idle, uint64_t limit)
{
    kv_raw_pause(idle);
    return (*idle % 1024 || wl_now() < limit) && !wl_stopped();
}

/* ---- Client: its slot at the server has the number 0 in its part; the answers come to the first
 * line of its own part of slots, which no request uses. */

static void write_part(struct kv_peer *peer, size_t from, size_t size)
{
    struct ibv_send_wr *wr = kv_sender_next(&peer->pair, IBV_WR_RDMA_WRITE);
    wr->wr.rdma.remote_addr = peer->segment + kv_client * (uint64_t)kv.window * kv_slot + from;
    wr->wr.rdma.rkey = peer->rkey;
    kv_sender_put(&peer->pair, wr, slot() + from, size,
                  kv_raw.segment[kv_rail_of(kv_client)]->lkey);
}

static void write_probe(struct kv_peer *peer, uint64_t n)
{
    for (size_t i = 0; i < kv_slot; i++)
        slot()[i] = byte_of(n, i);
    if (n % split_every) {
        write_part(peer, 0, kv_slot);
        return;
    }
    write_part(peer, 0, kv_slot / 2);
    /* Asleep, so that the server runs now also where CPUs are few. */
    nanosleep(wl_inject_since(&kv.injection, kv_poll_early) ? &long_pause : &short_pause, NULL);
    write_part(peer, kv_slot / 2, kv_slot - kv_slot / 2);
}

static void probe_server(struct kv_peer *peer)
{
    uint64_t *answer = (uint64_t *)(void *)wl_job.segment;
    for (uint64_t n = 1; n <= (uint64_t)kv.probe; n++) {
        uint64_t limit = deadline();
        uint32_t idle = 0;
        write_probe(peer, n);
        while (__atomic_load_n(answer, __ATOMIC_ACQUIRE) != n)
            if (!pause_until(&idle, limit))
                wl_job_die("the probe of writes got no answer in %lld ms",
                           (long long)kv.common.timeout_ms);
    }
    __atomic_store_n(answer, 0, __ATOMIC_RELAXED);
}

/* ---- Server */

static void compare(uint32_t client, const char *there, uint64_t n)
{
    for (size_t i = 0; i < kv_slot; i++)
        if (there[i] != byte_of(n, i)) {
            kv_fail(kv_k3,
                    "server %u: write %llu of client %u was seen before its byte %zu of %zu was "
                    "there; --transport write-imm needs no order",
                    (unsigned)wl_job.me, (unsigned long long)n, client, i, kv_slot);
            return;
        }
}

static void confirm(struct kv_peer *peer, uint64_t n)
{
    struct ibv_send_wr *wr = kv_sender_next(&peer->pair, IBV_WR_RDMA_WRITE);
    char *place = kv_sender_end(&peer->pair, wr) - sizeof(n);
    memcpy(place, &n, sizeof(n));
    wr->wr.rdma.remote_addr = peer->segment;
    wr->wr.rdma.rkey = peer->rkey;
    kv_sender_put(&peer->pair, wr, place, sizeof(n), peer->pair.ring_mr->lkey);
    kv_sender_flush(&peer->pair);
}

/* True if it found a write. */
static bool look_at(uint32_t client, uint64_t *n)
{
    char *there = slot() + client * (size_t)kv.window * kv_slot;
    /* For K14: the byte that comes first instead of the one that comes last. */
    bool early = wl_inject_since(&kv.injection, kv_poll_early);
    char *look = early ? there : there + kv_slot - 1;
    if (!__atomic_load_n((uint8_t *)look, __ATOMIC_ACQUIRE))
        return false;
    compare(client, there, ++*n);
    while (early && !__atomic_load_n((uint8_t *)there + kv_slot - 1, __ATOMIC_ACQUIRE))
        continue;
    memset(there, 0, kv_slot);
    confirm(&kv_raw.peers[client], *n);
    return true;
}

static void probe_clients(void)
{
    uint64_t *seen = calloc(kv_clients, sizeof(*seen)), left = 0;
    uint32_t idle = 0, first = (uint32_t)wl_job.me;
    if (!seen)
        wl_job_die("no memory for probes");
    for (uint32_t client = first; client < kv_clients; client += kv_servers)
        left += (uint64_t)kv.probe;
    while (left && !wl_stopped()) {
        for (uint32_t client = first; client < kv_clients; client += kv_servers)
            if (look_at(client, &seen[client])) {
                left--;
                idle = 0;
            }
        kv_raw_pause(&idle);
    }
    free(seen);
}

/* --notify auto: a torn record is no failure, but then completions announce requests. */
static void choose_notice(void)
{
    struct kv_verdict *all = calloc(wl_job.size, sizeof(*all));
    gex_Rank_t rank = 0;
    if (!all)
        wl_job_die("no memory for verdicts");
    wl_job_share(&kv_mine.verdicts[kv_k3], all, sizeof(*all));
    while (rank < kv_servers && !all[rank].failures)
        rank++;
    if (rank < kv_servers) {
        if (wl_job.me == 0)
            wl_say("write-send goes on with completions: %s", all[rank].first);
        kv_mine.verdicts[kv_k3].failures = 0;
        kv_raw_switch();
        if (kv_is_server())
            kv_raw_server_notices();
        wl_job_barrier();
    }
    free(all);
}

void kv_raw_probe(void)
{
    static bool done;
    if (done || kv.common.verify == wl_verify_none)
        return;
    done = true;
    if (kv_is_server())
        probe_clients();
    else
        probe_server(&kv_raw.peers[kv_client % kv_servers]);
    if (trunkline_rails_barrier())
        wl_job_die("%s", trunkline_rails_error());
    if (kv.notify == kv_notify_auto && kv_transport == &kv_write_send)
        choose_notice();
    kv_mine.wire_bytes = kv_mine.doorbells = kv_mine.cqes = kv_mine.lists = kv_mine.listed = 0;
}
