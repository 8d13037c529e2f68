/* SPDX-License-Identifier: BSD-3-Clause */
/* info_steps RANKS - what a rank spends at start for each rank of a large job, and to copy and
 * combine payloads; ns, by the library's own functions. The first rank of a host unpacks what each
 * host has put (tk_gather()), and each rank checks and enters all infos
 * (tk_peer_info_exchange_all()). PMIx is a table here: what a request costs is no part of it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/client_mode.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/gather.h"
#include "bootstrap/host_blob.h"
#include "collective/coll.h"
#include "peer/peer.h"
#include "settings/settings.h"

enum {
    own = 128, /* ranks of each host but the first, which has us alone */
    ranks_least = 1000,
    ranks_most = 1000000,
    rails = 1,
    turns = 5,
    payload = 4 << 20, /* more than the cache of a CPU: data has come from elsewhere */
    copies = 200
};

struct tk_bootstrap tk_bootstrap;

static uint32_t host_count;
static struct tk_bootstrap_blob *hosts; /* by host */
static struct tk_bootstrap_blob of_us, settings;

static void die(const char *what)
{
    fprintf(stderr, "info_steps: %s\n", what);
    exit(1);
}

static void *have(void *memory)
{
    if (!memory)
        die("out of memory");
    return memory;
}

static struct tk_bootstrap_blob copy_of(const void *bytes, size_t size)
{
    struct tk_bootstrap_blob blob = {.at = have(malloc(size + 1)), .size = size};
    memcpy(blob.at, bytes, size);
    return blob;
}

/* ---- in place of PMIx */

enum tk_status tk_bootstrap_put(const char *key, const void *bytes, size_t size)
{
    struct tk_bootstrap_blob *blob = strstr(key, "settings") ? &settings : &of_us;
    free(blob->at);
    *blob = copy_of(bytes, size);
    return TK_OK;
}

enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size)
{
    const struct tk_bootstrap_blob *from = rank == 0 ? &of_us : &hosts[(rank - 1) / own];
    struct tk_bootstrap_blob copy = copy_of(from->at, from->size);
    (void)key;
    *blob = copy.at;
    *size = copy.size;
    return TK_OK;
}

enum tk_status tk_bootstrap_get_many(const char *key, const uint32_t *ranks, uint32_t count,
                                     struct tk_bootstrap_blob *blobs, void (*poll)(void))
{
    (void)poll;
    for (uint32_t i = 0; i < count; i++)
        tk_bootstrap_get(ranks[i], key, &blobs[i].at, &blobs[i].size);
    return TK_OK;
}

enum tk_status tk_bootstrap_get_local(const char *key, const uint32_t *ranks, uint32_t count,
                                      struct tk_bootstrap_blob *blobs, void (*poll)(void))
{
    (void)key, (void)ranks, (void)count, (void)blobs, (void)poll;
    return TK_FAIL;
}

enum tk_status tk_bootstrap_put_local(const char *key, const void *blob, size_t size)
{
    (void)key, (void)blob, (void)size;
    return TK_OK;
}

enum tk_status tk_bootstrap_peek(uint32_t rank, const char *key, void *blob, size_t size)
{
    (void)rank, (void)key, (void)blob, (void)size;
    return TK_FAIL;
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    (void)poll, (void)deadline;
    return TK_OK;
}

enum tk_status tk_bootstrap_fence_data(void (*poll)(void), uint64_t deadline)
{
    return tk_bootstrap_fence(poll, deadline);
}

void tk_bootstrap_withdraw(const char *key)
{
    (void)key;
}

/* ---- the infos of all hosts */

/* Words that differ among ranks of a host: pid, memory left, rings. */
static struct tk_peer_info *info_of(uint32_t rank, uint32_t ranks)
{
    struct tk_peer_info info = {.version = tk_peer_info_version,
                                .pid = rank + 1,
                                .ranks = ranks,
                                .rails = rails,
                                .conns = 1,
                                .unused_size = 1};
    struct tk_peer_info *full = have(calloc(1, tk_peer_info_size(&info)));
    info.memory_left = (uint64_t)rank << 12;
    info.settings_hash = tk_settings_job_hash();
    memcpy(info.mode, TK_MODE_NAME, strlen(TK_MODE_NAME));
    snprintf(info.host.name, sizeof(info.host.name), "n%06u", (rank + own - 1) / own);
    info.rings.inode = rank;
    memcpy(info.rings.nonce, &rank, sizeof(rank));
    *full = info;
    tk_peer_info_datagram_qps(full)[0] = rank;
    return full;
}

static void make_host(uint32_t host, uint32_t ranks)
{
    struct tk_bootstrap_blob blobs[own] = {{0}};
    uint32_t numbers[own] = {0}, count = 0;
    for (uint32_t r = 1 + host * own; count < own && r < ranks; r++, count++) {
        struct tk_peer_info *info = info_of(r, ranks);
        blobs[count] = (struct tk_bootstrap_blob){info, tk_peer_info_size(info)};
        numbers[count] = r;
    }
    hosts[host].at = have(tk_host_pack(numbers, blobs, count, &hosts[host].size));
    for (uint32_t i = 0; i < count; i++)
        free(blobs[i].at);
}

/* ---- times */

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* The second call gathers once more, and learns. Of each the least is taken before they are
 * subtracted: a difference of one turn may be anything where other work met one of both. */
static void time_infos(uint32_t ranks)
{
    double unpack = 1e18, learn = 1e18;
    struct tk_peer_info *mine = info_of(0, ranks);
    for (int turn = 0; turn < turns; turn++) {
        double began = cpu_ns();
        if (tk_gather("tk.peer_info", mine, tk_peer_info_size(mine), NULL) != TK_OK)
            die("tk_gather failed");
        unpack = least(unpack, cpu_ns() - began);
        tk_gather_drop();
        began = cpu_ns();
        if (tk_peers_open(0, ranks) != TK_OK || tk_peer_info_exchange_all(mine) != TK_OK)
            die("tk_peer_info_exchange_all failed");
        learn = least(learn, cpu_ns() - began);
        tk_peer_info_drop_all();
        free(tk_peers.at);
    }
    printf("info.unpack %.1f\npeer %.1f\n", unpack / ranks, (learn - unpack) / ranks);
    free(mine);
}

/* A payload is combined once where a reduction receives it, and copied once in a broadcast: the
 * mean. */
static void time_payloads(void)
{
    gex_Coll_ReduceFn_t fold = tk_coll_kernel(GEX_DT_U64, GEX_OP_ADD);
    char *from = have(calloc(1, payload)), *to = have(calloc(1, payload));
    double copy = 1e18, combine = 1e18;
    for (int turn = 0; turn < copies; turn++) {
        double began = cpu_ns();
        memcpy(to, from, payload);
        __asm__ volatile("" ::"r"(to) : "memory");
        copy = least(copy, cpu_ns() - began);
        began = cpu_ns();
        fold(from, to, payload / sizeof(uint64_t), NULL);
        __asm__ volatile("" ::"r"(to) : "memory");
        combine = least(combine, cpu_ns() - began);
    }
    printf("copy.kib %.2f\n", (copy + combine) / 2 / (payload / 1024.0));
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    uint32_t us[] = {0}; /* the launcher says who is on this host: rank 0 alone */
    char *end = NULL;
    unsigned long ranks = argc == 2 ? strtoul(argv[1], &end, 10) : 0;
    if (!end || *end || ranks < ranks_least || ranks > ranks_most) {
        fprintf(stderr, "usage: info_steps RANKS (%d to %d)\n", ranks_least, ranks_most);
        return 2;
    }
    tk_bootstrap = (struct tk_bootstrap){.size = (uint32_t)ranks, .local_size = 1, .local = us};
    if (tk_settings_parse(environ, &tk_settings, NULL) != TK_OK)
        return 2;
    host_count = ((uint32_t)ranks - 2) / own + 1;
    hosts = have(calloc(host_count, sizeof(*hosts)));
    for (uint32_t h = 0; h < host_count; h++)
        make_host(h, (uint32_t)ranks);
    time_infos((uint32_t)ranks);
    time_payloads();
    return 0;
}
