/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How two ports reach each other, and their common limits. They use LIDs inside an InfiniBand
 * subnet, otherwise GIDs of one kind. Both ends derive it from the two addresses, without further
 * exchange. No lock: start-up only, and reports. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/first_use.h"
#include "base/report.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/verbs_state.h"

TK_FIRST_USE static bool is_one_subnet(const struct tk_port_address *a,
                                       const struct tk_port_address *b)
{
    return a->gid_count == 0 || b->gid_count == 0 ||
           tk_gid_is_same_network(&a->gids[0], &b->gids[0]);
}

TK_FIRST_USE static bool find_gids(struct tk_path *path, const struct tk_port_address *mine,
                                   const struct tk_port_address *theirs, bool is_first)
{
    return is_first ? tk_gid_pair_find(mine, theirs, &path->from, &path->to)
                    : tk_gid_pair_find(theirs, mine, &path->to, &path->from);
}

TK_FIRST_USE bool tk_path_find(struct tk_path *path, const struct tk_port_address *mine,
                               const struct tk_port_address *theirs, bool is_first)
{
    *path = (struct tk_path){.lid = theirs->lid,
                             .port = theirs->port,
                             .mtu = (uint8_t)tk_min(mine->mtu, theirs->mtu),
                             .reads_in = (uint8_t)tk_min(mine->reads, theirs->reads_out),
                             .reads_out = (uint8_t)tk_min(mine->reads_out, theirs->reads)};
    memcpy(path->device, theirs->device, sizeof(path->device) - 1);
    path->device[sizeof(path->device) - 1] = 0;
    path->is_global = mine->needs_gid || theirs->needs_gid || !is_one_subnet(mine, theirs);
    return !path->is_global || find_gids(path, mine, theirs, is_first);
}

void tk_gids_log_apart(const char *one, const struct tk_port_address *a, const char *other,
                       const struct tk_port_address *b)
{
    char mine[tk_gids_text_size], theirs[tk_gids_text_size];
    tk_log_error("%s has %s, and %s has %s: no GIDs of one kind (type, and IPv4, IPv6 or "
                 "link-local; RoCE v1 also needs one network), so they do not reach each other; "
                 "give their interfaces addresses of one kind, or choose with "
                 "GASNET_IBV_GID_INDEX",
                 one, tk_gids_text(a, mine), other, tk_gids_text(b, theirs));
}

static void end_text(char *text, size_t size, const char *device, unsigned port, uint16_t lid,
                     const struct tk_gid *gid)
{
    char name[tk_gid_text_size];
    if (gid) {
        tk_gid_text(gid, name);
        snprintf(text, size, "%s:%u (GID %s)", device, port, name);
    } else {
        snprintf(text, size, "%s:%u (LID %u)", device, port, lid);
    }
}

const char *tk_path_text(const struct tk_port_address *mine, const struct tk_path *path,
                         char text[tk_path_text_size])
{
    char from[tk_path_end_size], to[sizeof(from)];
    end_text(from, sizeof(from), mine->device, mine->port, mine->lid,
             path->is_global ? &path->from : NULL);
    end_text(to, sizeof(to), path->device, path->port, path->lid,
             path->is_global ? &path->to : NULL);
    bool is_apart = path->is_global && !tk_gid_is_same_network(&path->from, &path->to);
    snprintf(text, tk_path_text_size, "%s to %s%s", from, to,
             is_apart ? " on another network, which only a router reaches" : "");
    return text;
}

const char *tk_path_to_text(uint32_t rank, char text[tk_path_text_size])
{
    const struct tk_rail *rail = &tk_verbs.rails[tk_peers.rail_to[rank]];
    struct tk_path path;
    *text = 0;
    if (!tk_path_find(&path, &rail->address, tk_address_of(rank, tk_peers.rail_to[rank]),
                      tk_peers.me < rank))
        return text;
    return tk_path_text(&rail->address, &path, text);
}

static const char *why_this(const struct tk_port_address *a, const struct tk_path *path)
{
    if (!a->is_ethernet)
        return a->needs_gid ? "the port is not reached by LID" : "to other subnets";
    if (tk_gid_index_of(a->device, a->port) >= 0)
        return "set by GASNET_IBV_GID_INDEX";
    if (a->gid_count == 1)
        return "the only usable one";
    return a->gids[0].index == path->from.index
               ? "the best usable one"
               : "the best usable one that the peer has the kind of";
}

/* Counts peers whose path differs from that to the first peer: another GID, or a LID where that has
 * a GID. *first is the path to the first peer; *any is false if there is no peer. */
static unsigned count_others(const struct tk_rail *rail, struct tk_path *first, bool *any)
{
    uint32_t number = (uint32_t)(rail - tk_verbs.rails);
    unsigned others = 0;
    *any = false;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        struct tk_path path;
        if (!tk_is_verbs_peer(r) ||
            !tk_path_find(&path, &rail->address, tk_address_of(r, number), tk_peers.me < r))
            continue;
        if (!*any)
            *first = path;
        *any = true;
        others += path.is_global != first->is_global || path.from.index != first->from.index;
    }
    return others;
}

static bool is_used(const struct tk_rail *rail, const struct tk_gid *gid)
{
    uint32_t number = (uint32_t)(rail - tk_verbs.rails);
    struct tk_path path;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (tk_is_verbs_peer(r) &&
            tk_path_find(&path, &rail->address, tk_address_of(r, number), tk_peers.me < r) &&
            path.is_global && path.from.index == gid->index)
            return true;
    return false;
}

void tk_gids_look(struct tk_rail *rail)
{
    const struct tk_port_address *a = &rail->address;
    char text[tk_gid_text_size];
    for (unsigned i = 0; i < a->gid_count; i++) {
        bool is_lost = tk_gid_row_now(rail->context, a->port, &a->gids[i]) < 0;
        bool was_lost = rail->gids_lost >> i & 1;
        rail->gids_lost = (uint8_t)((rail->gids_lost & ~(1u << i)) | (unsigned)is_lost << i);
        if (!is_lost || was_lost || !is_used(rail, &a->gids[i]))
            continue;
        tk_gid_text(&a->gids[i], text);
        tk_log_warn("%s:%u has lost its GID %s (%s): the address was removed; connections that use "
                    "it may fail, and new ones wait up to %g s for it "
                    "(GASNET_IBV_CONNECT_TIMEOUT)",
                    a->device, a->port, text, tk_gid_type_text(&a->gids[i]),
                    tk_settings.ibv_connect_timeout);
    }
}

void tk_path_describe(const struct tk_rail *rail, char *text, size_t size)
{
    const struct tk_port_address *a = &rail->address;
    struct tk_path path;
    bool any;
    char name[tk_gid_text_size], more[64] = "";
    unsigned others = count_others(rail, &path, &any);
    if (others > 0)
        snprintf(more, sizeof(more), "; %u other connections differ", others);
    if (!any || !path.is_global) {
        snprintf(text, size, "LID %u%s", a->lid, more);
        return;
    }
    tk_gid_text(&path.from, name);
    snprintf(text, size, "GID index %u, %s, %s: %s%s", path.from.index, name,
             tk_gid_type_text(&path.from), why_this(a, &path), more);
}
