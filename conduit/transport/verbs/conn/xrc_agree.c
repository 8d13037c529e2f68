/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides whether ranks share queue pairs (xrc.h). Each rank offers that in its peer info, or
 * gives the reason why it can't; all ranks derive the same answer from the peer infos. Owns the
 * file that a group shares: it holds the group's table, and names its domain on each device.
 * Single-threaded. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/report.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "topology/topology.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/conn/xrc_table.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* In a peer info; every rank prints the same text. */
enum refusal {
    OFFERED,
    UNWANTED,
    NOT_SHARED,
    STANDS_IN,
    IS_STATIC,
    BY_CM,
    IS_BOUNDED,
    ENDS_ALONE,
    MANY_CONNS,
    NO_DEVICE,
    NO_DOMAIN,
    NO_GROUPS,
    SHORT_QUEUES,
    refusals
};

static const char *const texts[refusals] = {
    [OFFERED] = "one send queue pair to all ranks of a neighbourhood (XRC)",
    [UNWANTED] = "GASNET_USE_XRC=0",
    [NOT_SHARED] = "receive queues are not shared (GASNET_USE_SRQ=1 makes them so)",
    [STANDS_IN] = "ports fail over (GASNET_IBV_FAILOVER=0 ends that)",
    [IS_STATIC] = "all ranks are connected at start-up (GASNET_USE_XRC=1 or "
                  "GASNET_CONNECT_STATIC=0 ends that)",
    [BY_CM] = "librdmacm connects ranks (GASNET_IBV_CONNECT=verbs ends that)",
    [IS_BOUNDED] = "connections are closed for others (GASNET_CONNECT_MAX=0 ends that)",
    [ENDS_ALONE] = "ranks may end one by one (GASNET_CATCH_EXIT=0)",
    [MANY_CONNS] = "a pair of ranks has more queue pairs than fit into a datagram "
                   "(GASNET_NUM_QPS)",
    [NO_DEVICE] = "a device in use has no XRC",
    [NO_DOMAIN] = "a device in use opens no domain for it",
    [NO_GROUPS] = "no ranks share memory and use the same ports",
    [SHORT_QUEUES] = "send queues are too short for all ranks of a neighbourhood "
                     "(lower GASNET_NETWORKDEPTH_PP)",
};

static enum refusal answer;
static struct tk_area area = {.fd = -1}; /* of our own file */

/* ---- offering ---- */

static uint32_t queue_of_least(const struct tk_device *device)
{
    uint32_t least = UINT32_MAX;
    for (; device; device = device->next) {
        struct ibv_device_attr attr = {.max_qp_wr = 0};
        if (ibv_query_device(device->context, &attr) != 0 ||
            !(attr.device_cap_flags & IBV_DEVICE_XRC))
            return 0;
        least = (uint32_t)tk_min(least, (size_t)attr.max_qp_wr);
    }
    return least;
}

static void close_domains(void)
{
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next) {
        if (device->xrcd)
            ibv_close_xrcd(device->xrcd);
        device->xrcd = NULL;
    }
}

static bool open_domains(int fd)
{
    struct ibv_xrcd_init_attr attr = {.comp_mask =
                                          IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                      .fd = fd,
                                      .oflags = O_CREAT};
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (!(device->xrcd = ibv_open_xrcd(device->context, &attr)))
            return false;
    return true;
}

static enum refusal refusal_by_settings(void)
{
    if (tk_settings.use_xrc == 0)
        return UNWANTED;
    if (tk_verbs.failover_enabled)
        return STANDS_IN;
    if (!tk_srq_in_use())
        return NOT_SHARED;
    if (tk_verbs.cm)
        return BY_CM;
    if (tk_settings.connect_max > 0)
        return IS_BOUNDED;
    if (!tk_settings.catch_exit)
        return ENDS_ALONE;
    if (tk_verbs.is_static)
        return IS_STATIC;
    if (tk_settings.supernode_maxsize == 1) /* of the whole job: no device or peer can change it */
        return NO_GROUPS;
    return tk_verbs.conns_pp > tk_xrc_conns_max ? MANY_CONNS : OFFERED;
}

/* Some devices report XRC and then refuse it, so this opens a domain now, while the job can still
 * do without XRC. */
static enum refusal try_devices(struct tk_peer_info *info)
{
    uint32_t depth = queue_of_least(&tk_verbs.device);
    if (depth == 0)
        return NO_DEVICE;
    if (tk_area_open(&area, "table of queue pairs",
                     tk_xrc_table_bytes(tk_peers.size, tk_verbs.conns_pp), false) != TK_OK ||
        !open_domains(area.fd))
        return NO_DOMAIN;
    info->xrc.ranks = depth / (uint32_t)tk_verbs.depth_pp;
    info->xrc.fd = area.fd;
    info->xrc.inode = area.inode;
    return OFFERED;
}

void tk_xrc_offer(struct tk_peer_info *info)
{
    enum refusal refusal = refusal_by_settings();
    if (refusal == OFFERED)
        refusal = try_devices(info);
    info->xrc.refusal = refusal;
    if (refusal == NO_DOMAIN) {
        close_domains();
        tk_area_close(&area);
    }
}

/* ---- agreeing ---- */

static bool has_same_ports(uint32_t one, uint32_t other)
{
    const struct tk_peer_info *a = tk_peer_info_of(one), *b = tk_peer_info_of(other);
    for (uint32_t i = 0; i < a->rails; i++) {
        const struct tk_port_address *p = tk_peer_info_rail(a, i), *q = tk_peer_info_rail(b, i);
        if (strcmp(p->device, q->device) != 0 || p->port != q->port)
            return false;
    }
    return true;
}

/* Fills in the group of each rank, and returns the size of the largest group. `first` and `next`
 * chain a neighbourhood to the first ranks of its groups; `count` is by group. */
static uint32_t find_groups(uint32_t *group_of, uint32_t *first, uint32_t *next, uint32_t *count)
{
    uint32_t largest = 0;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        uint32_t *at = &first[tk_topology.nbrhd_of[r]];
        while (*at != tk_no_peer && !has_same_ports(*at, r))
            at = &next[*at];
        if (*at == tk_no_peer)
            *at = r;
        group_of[r] = *at;
        largest = (uint32_t)tk_max(largest, ++count[*at]);
    }
    return largest;
}

static uint32_t group_all(uint32_t *group_of)
{
    size_t size = tk_peers.size * sizeof(uint32_t);
    uint32_t *first = malloc(size), *next = malloc(size), *count = calloc(1, size), largest = 0;
    if (first && next && count) {
        memset(first, 0xff, size);
        memset(next, 0xff, size);
        largest = find_groups(group_of, first, next, count);
    }
    free(first);
    free(next);
    free(count);
    return largest;
}

/* `shared`: ranks of the largest group; 0: out of memory. */
static enum refusal judge(uint32_t shared)
{
    uint32_t most = UINT32_MAX;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_peer_info *info = tk_peer_info_of(r);
        if (info->xrc.refusal != OFFERED)
            return info->xrc.refusal < refusals ? (enum refusal)info->xrc.refusal : NO_DEVICE;
        most = (uint32_t)tk_min(most, info->xrc.ranks);
    }
    return shared < 2 ? NO_GROUPS : shared > most ? SHORT_QUEUES : OFFERED;
}

static enum tk_status agree_failed(const char *what, const char *why)
{
    tk_log_error("no %s for the queue pairs that neighbours share: %s; GASNET_USE_XRC=0 goes "
                 "without them",
                 what, why);
    return TK_FAIL;
}

static void *map_table(int fd, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return base == MAP_FAILED ? NULL : base;
}

/* Opens the file of the group's first rank, which keeps it open until the job ends. */
static enum tk_status join_group(struct tk_xrc *xrc)
{
    uint32_t first = xrc->group_of[tk_peers.me];
    const struct tk_peer_info *info = tk_peer_info_of(first);
    const struct tk_area_place place = {
        .pid = (int)info->pid, .fd = info->xrc.fd, .inode = info->xrc.inode};
    char why[512];
    int fd = tk_area_reach(&place, &xrc->table_size, why, sizeof(why));
    if (fd < 0)
        return agree_failed("table", why);
    close_domains(); /* of our own file */
    bool has_domains = open_domains(fd);
    int error = errno;
    void *table = map_table(fd, xrc->table_size);
    close(fd);
    if (first != tk_peers.me)
        tk_area_close(&area);
    xrc->table = (struct tk_xrc_table){.words = table, .conns = tk_verbs.conns_pp};
    if (!has_domains)
        return agree_failed("domain", strerror(error));
    return table ? TK_OK : agree_failed("table", "mmap failed");
}

static struct tk_xrc *xrc_make(void)
{
    struct tk_xrc *xrc = calloc(1, sizeof(*xrc));
    if (!xrc)
        return NULL;
    xrc->group_of = calloc(tk_peers.size, sizeof(*xrc->group_of));
    xrc->senders = calloc((size_t)tk_peers.size * tk_verbs.conns_pp, sizeof(*xrc->senders));
    return xrc;
}

static void drop_offer(void)
{
    tk_xrc_close();
    close_domains();
}

static bool is_asked_for(void)
{
    return tk_settings.use_xrc > 0 && tk_peers.me == 0;
}

/* If this rank does not offer XRC, the others need not be checked. */
enum tk_status tk_xrc_agree(void)
{
    enum refusal mine = (enum refusal)tk_peer_info_of(tk_peers.me)->xrc.refusal;
    struct tk_xrc *xrc = mine == OFFERED ? xrc_make() : NULL;
    uint32_t shared = xrc && xrc->group_of ? group_all(xrc->group_of) : 0;
    tk_conns.xrc = xrc;
    if (mine == OFFERED && (shared == 0 || !xrc->senders)) {
        tk_log_error("out of memory for a table of %u ranks", tk_peers.size);
        return TK_FAIL;
    }
    answer = mine == OFFERED ? judge(shared) : mine;
    if (answer == OFFERED)
        return join_group(xrc);
    drop_offer();
    if (is_asked_for())
        tk_log_warn("GASNET_USE_XRC=%lld: no extended reliable connections, because %s",
                    (long long)tk_settings.use_xrc, texts[answer]);
    return TK_OK;
}

const char *tk_xrc_describe(void)
{
    static char text[192];
    snprintf(text, sizeof(text), "%s%s", answer == OFFERED ? "" : "no XRC: ", texts[answer]);
    return text;
}

void tk_xrc_close(void)
{
    struct tk_xrc *xrc = tk_conns.xrc;
    tk_area_close(&area);
    if (!xrc)
        return;
    for (size_t i = 0; xrc->senders && i < (size_t)tk_peers.size * tk_verbs.conns_pp; i++)
        if (xrc->senders[i])
            ibv_destroy_qp(xrc->senders[i]);
    if (xrc->table.words)
        munmap(xrc->table.words, xrc->table_size);
    free(xrc->senders);
    free(xrc->group_of);
    free(xrc);
    tk_conns.xrc = NULL;
}
