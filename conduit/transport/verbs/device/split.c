/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See split.h. Ranks whose ports reach the same ports form a class, found by hash: a job of a
 * million ranks has a few, and pairs of classes are compared in place of pairs of ranks. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/device/split.h"

enum { kinds_max = 8, raw_bits = 8 * tk_gid_size, no_class = UINT32_MAX, no_rank = UINT32_MAX };

static bool is_limited(const struct tk_port_address *a)
{
    return !(a->pkey & tk_pkey_full);
}

/* IBA 10.9.1.1 */
static bool is_same_partition(const struct tk_port_address *a, const struct tk_port_address *b)
{
    return (a->pkey & tk_pkey_bits) == (b->pkey & tk_pkey_bits) &&
           !(is_limited(a) && is_limited(b));
}

static bool reaches(const struct tk_port_address *a, const struct tk_port_address *b)
{
    struct tk_gid from, to;
    return !(a->needs_gid || b->needs_gid) || tk_gid_pair_find(a, b, &from, &to);
}

/* ---- one rail ---- */

/* The network of a GID that no router forwards. Networks of two GIDs are compared in as many bits
 * as the longer prefix has, so each is kept in as many as the longest of all. */
struct network {
    uint8_t kind, bits;
    uint8_t raw[tk_gid_size];
};

/* What decides which ports a port reaches. */
struct key {
    uint16_t pkey;
    uint8_t needs_gid;
    uint8_t count;  /* of the networks */
    uint32_t kinds; /* of the GIDs that routers forward */
    struct network networks[tk_gids_max];
};

/* second: the first that is no neighbour of the first; no_rank: all are. */
struct class
{
    uint32_t first, second;
    struct key key;
};

struct rail {
    const struct tk_split_job *job;
    uint32_t at;
    bool by_network;       /* common kinds of GIDs are not enough for all pairs */
    unsigned longest;      /* prefix of a network */
    struct class *classes; /* by first rank */
    uint32_t count, space;
    uint32_t *slots; /* a hash table: indices of classes; a power of two, at most half full */
    uint32_t slot_count;
};

static const struct tk_port_address *address_of(const struct rail *rail, uint32_t rank)
{
    return rail->job->address_of(rank, rail->at);
}

static uint32_t nbrhd_of(const struct rail *rail, uint32_t rank)
{
    return rail->job->nbrhd_of ? rail->job->nbrhd_of[rank] : rank;
}

/* Does the first rank represent all others? */
static bool is_plain(const struct rail *rail)
{
    const struct tk_port_address *first = address_of(rail, 0);
    if (first->needs_gid && tk_gids_stay_in_network(first))
        return false;
    for (uint32_t r = 0; r < rail->job->size; r++) {
        const struct tk_port_address *a = address_of(rail, r);
        if (is_limited(a) || (a->pkey & tk_pkey_bits) != (first->pkey & tk_pkey_bits) ||
            a->needs_gid != first->needs_gid || tk_gid_kinds(a) != tk_gid_kinds(first))
            return false;
    }
    return true;
}

/* ---- networks ---- */

static struct network network_of(const struct tk_gid *gid, unsigned longest)
{
    struct network network = {.kind = (uint8_t)tk_gid_kind(gid), .bits = gid->network_bits};
    unsigned bytes = longest / 8;
    if (gid->network_bits > raw_bits) /* which meets none */
        return network;
    memcpy(network.raw, gid->raw, bytes);
    if (longest % 8)
        network.raw[bytes] = (uint8_t)(gid->raw[bytes] & 0xff00u >> longest % 8);
    return network;
}

static uint32_t routed_kinds(const struct tk_port_address *a)
{
    uint32_t kinds = 0;
    for (unsigned i = 0; i < a->gid_count; i++)
        if (!tk_gid_stays_in_network(&a->gids[i]))
            kinds |= 1u << tk_gid_kind(&a->gids[i]);
    return kinds;
}

static void measure_prefixes(struct rail *rail, const struct tk_port_address *a)
{
    for (unsigned i = 0; i < a->gid_count; i++)
        if (tk_gid_stays_in_network(&a->gids[i]) && a->gids[i].network_bits <= raw_bits &&
            a->gids[i].network_bits > rail->longest)
            rail->longest = a->gids[i].network_bits;
}

static bool has_network(const struct tk_port_address *a, const struct network *wanted,
                        unsigned longest)
{
    for (unsigned i = 0; i < a->gid_count; i++) {
        struct network network = network_of(&a->gids[i], longest);
        if (tk_gid_stays_in_network(&a->gids[i]) && !memcmp(&network, wanted, sizeof(network)))
            return true;
    }
    return false;
}

/* A network of all ranks, which each port of the first may have. */
static bool share_network(const struct rail *rail)
{
    const struct tk_port_address *first = address_of(rail, 0);
    for (unsigned i = 0; i < first->gid_count; i++) {
        struct network network = network_of(&first->gids[i], rail->longest);
        uint32_t r = 0;
        if (!tk_gid_stays_in_network(&first->gids[i]) || network.bits > raw_bits)
            continue;
        while (r < rail->job->size && has_network(address_of(rail, r), &network, rail->longest))
            r++;
        if (r == rail->job->size)
            return true;
    }
    return false;
}

/* Hosts may each have a network of their own beside one that routers reach, or beside a common one:
 * so many classes would tell nothing. */
static void look_at_networks(struct rail *rail)
{
    uint8_t seen[1u << kinds_max] = {0};
    for (uint32_t r = 0; r < rail->job->size; r++) {
        const struct tk_port_address *a = address_of(rail, r);
        measure_prefixes(rail, a);
        seen[routed_kinds(a) % sizeof(seen)] = 1;
    }
    for (size_t one = 0; one < sizeof(seen); one++)
        for (size_t other = one; seen[one] && other < sizeof(seen); other++)
            rail->by_network |= seen[other] && !(one & other);
    rail->by_network = rail->by_network && !share_network(rail);
}

/* ---- classes ---- */

static size_t key_bytes(const struct key *key)
{
    return offsetof(struct key, networks) + key->count * sizeof(key->networks[0]);
}

static void key_of(const struct rail *rail, uint32_t rank, struct key *key)
{
    const struct tk_port_address *a = address_of(rail, rank);
    *key = (struct key){.pkey = a->pkey, .needs_gid = a->needs_gid, .kinds = routed_kinds(a)};
    for (unsigned i = 0; rail->by_network && i < a->gid_count; i++)
        if (tk_gid_stays_in_network(&a->gids[i]))
            key->networks[key->count++] = network_of(&a->gids[i], rail->longest);
}

/* FNV-1a */
static uint64_t hash_of(const struct key *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const unsigned char *bytes = (const unsigned char *)key;
    for (size_t i = 0; i < key_bytes(key); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static bool is_key(const struct key *a, const struct key *b)
{
    return a->count == b->count && !memcmp(a, b, key_bytes(a));
}

/* The slot of this key, or the free one where it belongs. */
static uint32_t *slot_of(const struct rail *rail, const struct key *key)
{
    uint64_t at = hash_of(key);
    for (;; at++) {
        uint32_t *slot = &rail->slots[at & (rail->slot_count - 1)];
        if (*slot == no_class || is_key(&rail->classes[*slot].key, key))
            return slot;
    }
}

static enum tk_status more_space(struct rail *rail)
{
    uint32_t space = rail->space ? 2 * rail->space : 64;
    struct class *classes = realloc(rail->classes, space * sizeof(*classes));
    if (classes)
        rail->classes = classes;
    uint32_t *slots = malloc(2 * (size_t)space * sizeof(*slots));
    if (!classes || !slots) {
        free(slots);
        tk_log_error("out of memory for %u kinds of ports", space);
        return TK_FAIL;
    }
    free(rail->slots);
    rail->slots = slots;
    rail->space = space;
    rail->slot_count = 2 * space;
    memset(slots, 0xff, 2 * (size_t)space * sizeof(*slots)); /* no_class */
    for (uint32_t i = 0; i < rail->count; i++)
        *slot_of(rail, &classes[i].key) = i;
    return TK_OK;
}

/* `last`: the class of the rank before, whose port is often the same. */
static enum tk_status classify_rank(struct rail *rail, uint32_t rank, uint32_t *last)
{
    struct key key;
    key_of(rail, rank, &key);
    if (*last == no_class || !is_key(&rail->classes[*last].key, &key)) {
        if (rail->count == rail->space && more_space(rail) != TK_OK)
            return TK_FAIL;
        uint32_t *slot = slot_of(rail, &key);
        if (*slot == no_class) {
            *slot = rail->count++;
            rail->classes[*slot] = (struct class){.first = rank, .second = no_rank, .key = key};
        }
        *last = *slot;
    }
    struct class *class = &rail->classes[*last];
    if (class->second == no_rank && nbrhd_of(rail, rank) != nbrhd_of(rail, class->first))
        class->second = rank;
    return TK_OK;
}

static enum tk_status classify(struct rail *rail)
{
    uint32_t last = no_class;
    for (uint32_t r = 0; r < rail->job->size; r++)
        if (classify_rank(rail, r, &last) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

/* ---- pairs ---- */

static bool are_apart(const struct rail *rail, uint32_t one, uint32_t other)
{
    const struct tk_port_address *a = address_of(rail, one), *b = address_of(rail, other);
    return !is_same_partition(a, b) || !reaches(a, b);
}

/* The lowest rank of the class that does not reach some rank; no_rank: each does. If the first rank
 * does not reach neighbours alone, the first one that is no neighbour of theirs does not reach
 * them. */
static uint32_t first_apart(const struct rail *rail, const struct class *class)
{
    uint32_t found = no_rank, nbrhd = nbrhd_of(rail, class->first);
    for (const struct class *c = rail->classes; c < rail->classes + rail->count; c++) {
        if (!are_apart(rail, class->first, c->first))
            continue;
        if (c->second != no_rank || nbrhd_of(rail, c->first) != nbrhd)
            return class->first;
        found = class->second;
    }
    return found;
}

static void find_pair(const struct rail *rail, struct tk_split *split)
{
    uint32_t one = no_rank, other;
    for (uint32_t i = 0; i < rail->count && rail->classes[i].first < one; i++) {
        uint32_t rank = first_apart(rail, &rail->classes[i]);
        one = rank < one ? rank : one;
    }
    if (one == no_rank)
        return;
    for (other = one + 1; other < rail->job->size; other++)
        if (nbrhd_of(rail, one) != nbrhd_of(rail, other) && are_apart(rail, one, other))
            break;
    *split = (struct tk_split){.one = one, .other = other, .rail = rail->at};
    split->is_by_partition = !is_same_partition(address_of(rail, one), address_of(rail, other));
}

enum tk_status tk_split_find(const struct tk_split_job *job, struct tk_split *split)
{
    enum tk_status status = TK_OK;
    *split = (struct tk_split){.other = 0};
    for (uint32_t i = 0; i < job->rails && status == TK_OK && split->other == 0; i++) {
        struct rail rail = {.job = job, .at = i};
        if (is_plain(&rail))
            continue;
        look_at_networks(&rail);
        status = classify(&rail);
        if (status == TK_OK)
            find_pair(&rail, split);
        free(rail.classes);
        free(rail.slots);
    }
    return status;
}
