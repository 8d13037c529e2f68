/* SPDX-License-Identifier: BSD-3-Clause */
/* The load mode for foreign servers: the same clients, keys, window and checks, but memcached or
 * Redis serves, as a child of each server rank, and requests travel by sockets. Requests gather
 * until the client has to wait, then leave in one piece, which is what pipelining clients of these
 * servers do. Owns the connections. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "kv.h"
#include "wire.h"

enum { spins_max = 200, asks_max = 1 << 20 };

/* Of a client to a server; a server rank has one, too, to ask for counters. */
struct link {
    int fd;
    char *out, *in;
    size_t out_size, in_first, in_end, room;
    struct {
        uint32_t seq;
        enum kv_op op;
    } asked[kv_window_max];
    uint64_t first, end; /* asked, answered in the same order */
};

static struct {
    struct link *links;
    unsigned spins;
} tcp;

static const struct kv_wire *wire(void)
{
    return strcmp(kv_transport->name, "redis") ? &kv_wire_memcached : &kv_wire_redis;
}

bool kv_tcp_missing(const struct kv_transport *transport, char *why, size_t size)
{
    snprintf(why, size, "it is not installed (contrib/install-packages.sh bench)");
    return !kv_daemon_installed(transport->name) || access("/usr/bin/setpriv", X_OK);
}

/* ---- Start and end */

static void connect_to(struct link *link, const char *address)
{
    link->room = ((size_t)kv.window + 1) * kv_wire_max;
    link->out = malloc(link->room);
    link->in = malloc(link->room);
    if (!link->out || !link->in)
        wl_job_die("no memory for requests");
    link->fd = kv_daemon_connect(address, kv.common.timeout_ms);
    if (link->fd < 0)
        wl_job_die("%s does not answer at %s", kv_transport->name, address);
}

/* All ranks connect after all servers have started, and no socket's name is removed before all have
 * connected. */
static void open_links(void)
{
    char mine[kv_address_max] = "", (*all)[kv_address_max], why[wl_why_max];
    all = calloc(wl_job.size, sizeof(*all));
    if (!all)
        wl_job_die("no memory for addresses");
    if (kv_is_server() && !kv_daemon_start(kv_transport->name, kv.socket == kv_loopback,
                                           4 * (uint64_t)kv.log, mine, why, sizeof(why)))
        wl_job_die("%s", why);
    wl_job_share(mine, all, sizeof(mine));
    tcp.links = calloc(kv_servers, sizeof(*tcp.links));
    if (!tcp.links)
        wl_job_die("no memory for connections");
    for (uint32_t server = 0; server < kv_servers; server++)
        if (!kv_is_server() || server == wl_job.me)
            connect_to(&tcp.links[server], all[server]);
    wl_job_barrier();
    kv_daemon_forget_name();
    free(all);
}

static void close_links(void)
{
    for (uint32_t server = 0; server < kv_servers; server++) {
        free(tcp.links[server].out);
        free(tcp.links[server].in);
        if (tcp.links[server].out)
            close(tcp.links[server].fd);
    }
    free(tcp.links);
    if (kv_is_server())
        kv_daemon_stop();
}

/* ---- Client */

static void request(struct kv_pending *pending)
{
    struct link *link = &tcp.links[pending->server];
    link->asked[link->end % kv_window_max].seq = pending->seq;
    link->asked[link->end++ % kv_window_max].op = pending->op;
    link->out_size += wire()->write(link->out + link->out_size, pending->op, &pending->key,
                                    kv_record_value(pending->image, pending->len), pending->len);
}

static void send_all(struct link *link)
{
    size_t sent = 0;
    while (sent < link->out_size) {
        ssize_t n = send(link->fd, link->out + sent, link->out_size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            wl_job_die("%s does not take requests: %s", kv_transport->name, strerror(errno));
        sent += n > 0 ? (size_t)n : 0;
    }
    kv_mine.wire_bytes += sent;
    link->out_size = 0;
}

static void take(struct link *link, uint32_t server, const struct kv_wire_answer *answer)
{
    char value[kv_value_max];
    const char *bytes = answer->value;
    if (answer->len && wl_inject(&kv.injection, kv_flip_bit)) {
        memcpy(value, bytes, answer->len);
        value[answer->len / 2] ^= 1;
        bytes = value;
    }
    kv_client_take(server, link->asked[link->first++ % kv_window_max].seq, answer->status, bytes,
                   answer->len);
}

static void read_answers(struct link *link, uint32_t server)
{
    struct kv_wire_answer answer;
    while (link->first < link->end && link->in_first < link->in_end) {
        size_t used = wire()->read(link->in + link->in_first, link->in_end - link->in_first,
                                   link->asked[link->first % kv_window_max].op, &answer);
        if (used == KV_WIRE_BROKEN)
            wl_job_die("%s answers '%.40s'", kv_transport->name, link->in + link->in_first);
        if (!used)
            break;
        link->in_first += used;
        take(link, server, &answer);
    }
    memmove(link->in, link->in + link->in_first, link->in_end - link->in_first);
    link->in_end -= link->in_first;
    link->in_first = 0;
}

static bool receive(struct link *link, int flags)
{
    ssize_t n = recv(link->fd, link->in + link->in_end, link->room - 1 - link->in_end, flags);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        wl_job_die("%s has closed the connection", kv_transport->name);
    if (n < 0)
        return false;
    link->in_end += (size_t)n;
    kv_mine.wire_bytes += (size_t)n;
    link->in[link->in_end] = 0;
    return true;
}

/* Looks for answers without sleeping for a while, which is what is fastest with a core for each;
 * then sleeps up to 2 ms, and checks whether the job was stopped. */
static void await(struct kv_pending *pending)
{
    bool any = false;
    for (uint32_t server = 0; server < kv_servers; server++) {
        struct link *link = &tcp.links[server];
        send_all(link);
        if (link->first == link->end || !receive(link, MSG_DONTWAIT))
            continue;
        read_answers(link, server);
        any = true;
    }
    if (any) {
        tcp.spins = 0;
    } else if (++tcp.spins % spins_max == 0) {
        struct pollfd wait = {.fd = tcp.links[pending->server].fd, .events = POLLIN};
        poll(&wait, 1, 2);
        gasnet_AMPoll();
    }
}

/* ---- Server: its child serves, and is asked what it has done */

static void serve(void)
{
    const struct timespec nap = {0, 5000000};
    nanosleep(&nap, NULL);
    gasnet_AMPoll();
}

static void account(struct kv_outcome *mine)
{
    struct link *link = &tcp.links[wl_job.me];
    struct kv_wire_counts counts;
    char *text = calloc(1, asks_max);
    if (!text)
        wl_job_die("no memory for counters");
    link->out_size = strlen(wire()->ask);
    memcpy(link->out, wire()->ask, link->out_size);
    send_all(link);
    for (size_t size = 0; !strstr(text, wire()->end);) {
        ssize_t n = recv(link->fd, text + size, asks_max - 1 - size, 0);
        if (n <= 0 && errno != EINTR)
            wl_job_die("%s does not tell its counters", kv_transport->name);
        size += n > 0 ? (size_t)n : 0;
    }
    wire()->count(text, &counts);
    mine->answered[kv_get] = counts.gets;
    mine->answered[kv_put] = counts.puts;
    mine->answered[kv_delete] = counts.deletes;
    mine->counts.miss_unknown = counts.gets - counts.hits;
    mine->counts.entries = counts.entries;
    mine->counts.evictions = counts.evictions;
    mine->cpu_ns = kv_daemon_cpu();
    free(text);
}

#define TCP_TRANSPORT(server)                                                                      \
    {                                                                                              \
        .name = server, .way = kv_way_tcp, .open = open_links, .close = close_links,               \
        .request = request, .await = await, .serve = serve, .account = account                     \
    }
const struct kv_transport kv_memcached = TCP_TRANSPORT("memcached");
const struct kv_transport kv_redis = TCP_TRANSPORT("redis");
