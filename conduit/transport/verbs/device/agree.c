/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rail i of one rank is connected to rail i of another, so all ranks must have as many, and of one
 * kind of network. Whether they do stands in the peer infos that all of them have; rank 0 logs in
 * one table what each found. No lock: start-up only. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/verbs_private.h"

enum { ports_text = 256 };

static void ports_of(const struct tk_peer_info *info, char *text, size_t size)
{
    size_t length = 0;
    *text = 0;
    for (uint32_t i = 0; i < info->rails && length < size; i++) {
        const struct tk_port_address *a = tk_peer_info_rail(info, i);
        int n = snprintf(text + length, size - length, "%s%s:%u", i ? "+" : "", a->device, a->port);
        length += n > 0 ? (size_t)n : 0;
    }
}

static const char *agree_kind_of(const struct tk_peer_info *info)
{
    uint32_t ethernet = 0;
    for (uint32_t i = 0; i < info->rails; i++)
        ethernet += tk_peer_info_rail(info, i)->is_ethernet;
    if (info->rails == 0)
        return "";
    if (ethernet == 0)
        return " (InfiniBand)";
    return ethernet == info->rails ? " (Ethernet)" : " (InfiniBand and Ethernet)";
}

static const char *unused_of(const struct tk_peer_info *info)
{
    return info->unused_size > 0 ? tk_peer_info_unused(info) : "";
}

static bool is_alike(uint32_t one, uint32_t other)
{
    const struct tk_peer_info *a = tk_peer_info_of(one), *b = tk_peer_info_of(other);
    char mine[ports_text], theirs[ports_text];
    ports_of(a, mine, sizeof(mine));
    ports_of(b, theirs, sizeof(theirs));
    return a->rails == b->rails && !strcmp(a->host.name, b->host.name) && !strcmp(mine, theirs) &&
           !strcmp(agree_kind_of(a), agree_kind_of(b)) && !strcmp(unused_of(a), unused_of(b));
}

static const char *introduction(const struct tk_peer_info *info)
{
    if (!*unused_of(info))
        return "";
    return info->rails > 0 ? "; not " : ": ";
}

static void log_row(uint32_t first, uint32_t last)
{
    const struct tk_peer_info *info = tk_peer_info_of(first);
    char ranks[32], ports[ports_text];
    ports_of(info, ports, sizeof(ports));
    if (info->rails == 0)
        strcpy(ports, "none");
    if (first == last)
        snprintf(ranks, sizeof(ranks), "rank %u", first);
    else
        snprintf(ranks, sizeof(ranks), "ranks %u-%u", first, last);
    tk_log_error("  %-14s %-16s %u: %s%s%s%s", ranks, info->host.name, info->rails, ports,
                 agree_kind_of(info), introduction(info), unused_of(info));
}

static void log_table(void)
{
    for (uint32_t first = 0, next; first < tk_peers.size; first = next) {
        for (next = first + 1; next < tk_peers.size && is_alike(first, next); next++)
            continue;
        log_row(first, next - 1);
    }
}

static bool has_as_many(const struct tk_peer_info *one, const struct tk_peer_info *other)
{
    return one->rails == other->rails && one->conns == other->conns;
}

static bool meets(const struct tk_peer_info *one, const struct tk_peer_info *other)
{
    for (uint32_t i = 0; i < one->rails; i++)
        if (tk_peer_info_rail(one, i)->is_ethernet != tk_peer_info_rail(other, i)->is_ethernet)
            return false;
    return true;
}

/* NULL: nothing. Of two complaints the first: the other may follow from it. */
static const char *difference(void)
{
    const struct tk_peer_info *first = tk_peer_info_of(0);
    for (uint32_t r = 1; r < tk_peers.size; r++)
        if (!has_as_many(first, tk_peer_info_of(r)))
            return "numbers of ports to use, and all must use as many";
    for (uint32_t r = 1; r < tk_peers.size; r++)
        if (!meets(first, tk_peer_info_of(r)))
            return "kinds of ports to use, and InfiniBand does not reach Ethernet";
    return NULL;
}

static uint32_t count_without(void)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        count += tk_peer_info_of(r)->rails == 0;
    return count;
}

/* Where all ranks of one host found the same, one line is enough. */
static void log_none(uint32_t without)
{
    bool are_alike = true;
    for (uint32_t r = 1; r < tk_peers.size; r++)
        are_alike &= is_alike(0, r);
    if (are_alike) {
        tk_rails_report_none(unused_of(tk_peer_info_of(0)));
        return;
    }
    tk_log_error(
        "%u of %u ranks found no RDMA port to use (GASNET_IBV_PORTS chooses from those that "
        "are active, GASNET_SOFTHCA=always takes the software device on all hosts):",
        without, tk_peers.size);
    log_table();
}

bool tk_verbs_agree(void)
{
    uint32_t without = count_without();
    const char *what = without > 0 ? NULL : difference();
    if (tk_peers.me != 0)
        return without == 0 && !what;
    if (without > 0) {
        log_none(without);
    } else if (what) {
        tk_log_error("the ranks found different %s; choose them with GASNET_IBV_PORTS, or how many "
                     "with GASNET_NUM_QPS:",
                     what);
        log_table();
    }
    return without == 0 && !what;
}
