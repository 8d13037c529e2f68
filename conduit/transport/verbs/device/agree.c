/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rail i of one rank is connected to rail i of another. So all ranks need the same number of rails,
 * of one kind of network, with partitions and GIDs that reach each other. If some found more ports
 * than others, all choose again. All ranks have all peer
 * infos and derive the same result from them. Rank 0 reports it: a table of what each rank found,
 * or one line with two ports that can't reach each other. No lock: start-up only. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/device/split.h"
#include "transport/verbs/verbs.h"

enum { ports_text = 256, port_text = 128 };

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

/* Ports of one kind reach each other. */
enum port_kind { KIND_INFINIBAND, KIND_ETHERNET, KIND_IWARP };
static const char *const kind_names[] = {"InfiniBand", "Ethernet", "iWARP"};

static enum port_kind kind_of(const struct tk_peer_info *info, uint32_t rail)
{
    const struct tk_port_address *a = tk_peer_info_rail(info, rail);
    if (a->is_iwarp)
        return KIND_IWARP;
    return a->is_ethernet ? KIND_ETHERNET : KIND_INFINIBAND;
}

static const char *agree_kind_of(const struct tk_peer_info *info)
{
    static const char *const texts[] = {"",
                                        " (InfiniBand)",
                                        " (Ethernet)",
                                        " (InfiniBand and Ethernet)",
                                        " (iWARP)",
                                        " (InfiniBand and iWARP)",
                                        " (Ethernet and iWARP)",
                                        " (InfiniBand, Ethernet and iWARP)"};
    unsigned kinds = 0;
    for (uint32_t i = 0; i < info->rails; i++)
        kinds |= 1u << kind_of(info, i);
    return texts[kinds];
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

/* ---- Ranks that must use fewer rails than they found ---- */

/* The first rank whose port of this number is of another kind than rank 0's; 0: none. */
static uint32_t of_another_kind(uint32_t rail)
{
    uint32_t r = 1;
    while (r < tk_peers.size &&
           kind_of(tk_peer_info_of(r), rail) == kind_of(tk_peer_info_of(0), rail))
        r++;
    return r < tk_peers.size ? r : 0;
}

static void log_narrow_kinds(uint32_t rails, uint32_t most)
{
    enum port_kind one = kind_of(tk_peer_info_of(0), rails),
                   other = kind_of(tk_peer_info_of(of_another_kind(rails)), rails);
    tk_log_warn("all ranks use %u of the ports that they found, up to %u: the others are "
                "%s in one rank and %s in another (GASNET_IBV_PORTS chooses, "
                "GASNET_NUM_QPS=%u silences this)",
                rails, most, kind_names[tk_min(one, other)], kind_names[tk_max(one, other)], rails);
}

static void log_narrow(uint32_t rails, uint32_t fewest, uint32_t least, uint32_t most)
{
    const struct tk_peer_info *info = tk_peer_info_of(fewest);
    if (tk_peers.me != 0 || tk_settings.ibv_ports_verbose <= 0)
        return;
    if (rails < least)
        log_narrow_kinds(rails, most);
    else
        tk_log_warn("all ranks use %u of the ports that they found, up to %u, because rank %u (%s) "
                    "has no more (GASNET_IBV_PORTS chooses, GASNET_NUM_QPS=%u silences this)",
                    rails, most, fewest, info->host.name, rails);
}

uint32_t tk_rails_in_common(void)
{
    uint32_t fewest = 0, least = UINT32_MAX, most = 0, rails = 0;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        uint32_t has = tk_peer_info_of(r)->rails;
        fewest = has < least ? r : fewest;
        least = (uint32_t)tk_min(least, has);
        most = (uint32_t)tk_max(most, has);
    }
    while (rails < least && of_another_kind(rails) == 0)
        rails++;
    if (rails == 0 || rails == most)
        return 0;
    log_narrow(rails, fewest, least, most);
    return rails;
}

/* Names a property in which ranks differ; NULL: none. Of two such properties it returns the first,
 * because the second may follow from it. */
static const char *difference(void)
{
    const struct tk_peer_info *first = tk_peer_info_of(0);
    for (uint32_t r = 1; r < tk_peers.size; r++)
        if (!has_as_many(first, tk_peer_info_of(r)))
            return "numbers of ports to use, and all must use as many";
    for (uint32_t i = 0; i < first->rails; i++) {
        uint32_t r = of_another_kind(i);
        if (r != 0)
            return kind_of(first, i) == KIND_IWARP || kind_of(tk_peer_info_of(r), i) == KIND_IWARP
                       ? "kinds of ports to use, and iWARP does not reach other networks"
                       : "kinds of ports to use, and InfiniBand does not reach Ethernet";
    }
    return NULL;
}

/* ---- Pairs that would not reach each other ---- */

static const struct tk_port_address *rail_address(uint32_t rank, uint32_t rail)
{
    return tk_peer_info_rail(tk_peer_info_of(rank), rail);
}

static enum tk_status find_split(struct tk_split *split)
{
    struct tk_split_job job = {.size = tk_peers.size,
                               .rails = tk_peer_info_of(0)->rails,
                               .nbrhd_of = tk_topology.nbrhd_of,
                               .address_of = rail_address};
    return tk_split_find(&job, split);
}

static void log_split(const struct tk_split *split)
{
    const struct tk_port_address *a = rail_address(split->one, split->rail);
    const struct tk_port_address *b = rail_address(split->other, split->rail);
    char one[port_text], other[port_text];
    snprintf(one, sizeof(one), "%s:%u of rank %u (%s)", a->device, a->port, split->one,
             tk_peer_info_of(split->one)->host.name);
    snprintf(other, sizeof(other), "%s:%u of rank %u (%s)", b->device, b->port, split->other,
             tk_peer_info_of(split->other)->host.name);
    if (!split->is_by_partition)
        tk_gids_log_apart(one, a, other, b);
    else if ((a->pkey ^ b->pkey) & tk_pkey_bits)
        tk_log_error("%s is in partition 0x%04x and %s in 0x%04x: they do not reach each other; "
                     "give both one by GASNET_IBV_PKEY",
                     one, a->pkey & tk_pkey_bits, other, b->pkey & tk_pkey_bits);
    else
        tk_log_error("%s and %s are both limited members of partition 0x%04x, which do not reach "
                     "each other: make one a full member, or give both another partition by "
                     "GASNET_IBV_PKEY",
                     one, other, a->pkey & tk_pkey_bits);
}

static uint32_t count_without(void)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        count += tk_peer_info_of(r)->rails == 0;
    return count;
}

/* Logs one line for a host whose ranks all found the same. */
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

/* Logs the first rank that has too few buffers. */
static bool has_buffers(void)
{
    uint32_t r = 0;
    while (r < tk_peers.size && tk_peer_info_of(r)->recv_min == 0)
        r++;
    if (r < tk_peers.size && tk_peers.me == 0)
        tk_log_error("GASNET_RBUF_COUNT=%lld is too few for the peers of rank %u: %u to 1048576, "
                     "or 0 for as many as make sense",
                     (long long)tk_settings.rbuf_count, r, tk_peer_info_of(r)->recv_min);
    return r == tk_peers.size;
}

bool tk_verbs_agree(void)
{
    uint32_t without = count_without();
    const char *what = without > 0 ? NULL : difference();
    struct tk_split split = {.other = 0};
    if (without == 0 && !what && find_split(&split) != TK_OK)
        return false;
    bool is_apart = split.other != 0;
    bool agree = without == 0 && !what && !is_apart;
    if (agree)
        return has_buffers();
    if (tk_peers.me != 0)
        return false;
    if (is_apart) {
        log_split(&split);
    } else if (without > 0) {
        log_none(without);
    } else {
        tk_log_error("the ranks found different %s; choose them with GASNET_IBV_PORTS, or how many "
                     "with GASNET_NUM_QPS:",
                     what);
        log_table();
    }
    return false;
}
