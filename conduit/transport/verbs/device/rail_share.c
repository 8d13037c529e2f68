/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNET_IBV_PORTS_TYPE=auto: how the ranks of a host agree on one assignment of its ports. The
 * first rank collects the distances of each rank to each port, assigns ports (topology/spread.h),
 * and publishes the result. Each rank sends two requests to the launcher's server on this host, and
 * no message goes to another host. This happens before peer infos are made, because those carry the
 * addresses of the ports. Ranks may have different settings: a rank without auto publishes that it
 * takes no part, so that no rank waits for it. If the first rank takes no part, each of the others
 * computes the assignment itself from the same claims, because a rank can publish only once. No
 * lock: start-up only. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "topology/spread.h"
#include "transport/verbs/device/device.h"

static const char share_key[] = "tk.ports";

/* Ranks of a host start together. The first waits for the others, and the others wait longer,
 * because the first may wait too. */
enum { first_waits = 30, others_wait = 40 /* seconds */ };

/* Published by each rank but the first; all zero: it takes no part. */
struct claims {
    uint32_t wanted, count;
    struct tk_rail_claim all[];
};

/* Published by the first rank. Behind the ports is a table of bools: for each rank, in the order of
 * tk_bootstrap.local, whether it takes each port. All zero: the first rank takes no part; no ports
 * but a number of ranks: there is no result. */
struct result {
    uint32_t ranks, count;
    struct tk_rail_claim ports[];
};

/* The claims of all ranks of the host, while they are merged. */
struct host {
    struct tk_rail_claim *ports; /* of all ranks, each once */
    uint32_t count;
    int *distance;
    bool *is_taken;
};

static size_t claims_size(uint32_t count)
{
    return sizeof(struct claims) + count * sizeof(struct tk_rail_claim);
}

static size_t result_size(uint32_t ranks, uint32_t count)
{
    return sizeof(struct result) + count * sizeof(struct tk_rail_claim) + (size_t)ranks * count;
}

static bool is_same_port(const struct tk_rail_claim *a, const struct tk_rail_claim *b)
{
    return a->port == b->port && !strncmp(a->device, b->device, sizeof(a->device));
}

/* The index of the port, or `count`. */
static uint32_t find_port(const struct tk_rail_claim *ports, uint32_t count,
                          const struct tk_rail_claim *port)
{
    uint32_t i = 0;
    while (i < count && !is_same_port(&ports[i], port))
        i++;
    return i;
}

static struct claims *make_claims(const struct tk_rail_claim *mine, uint32_t count, uint32_t wanted)
{
    struct claims *claims = malloc(claims_size(count));
    if (!claims)
        return NULL;
    *claims = (struct claims){.wanted = wanted, .count = count};
    memcpy(claims->all, mine, count * sizeof(*mine));
    return claims;
}

/* ---- The rank that assigns the ports ---- */

/* Ranks with other filters have other ports. */
static bool join_ports(struct host *host, const struct claims *const *claims, uint32_t ranks)
{
    size_t most = 1;
    for (uint32_t r = 0; r < ranks; r++)
        most += claims[r]->count;
    host->ports = malloc(most * sizeof(*host->ports));
    if (!host->ports)
        return false;
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t i = 0; i < claims[r]->count; i++) {
            const struct tk_rail_claim *port = &claims[r]->all[i];
            if (find_port(host->ports, host->count, port) == host->count)
                host->ports[host->count++] = *port;
        }
    return true;
}

/* A rank whose filter admits fewer ports takes all of them. */
static uint32_t most_wanted(const struct claims *const *claims, uint32_t ranks)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < ranks; r++)
        most = (uint32_t)tk_max(most, (size_t)claims[r]->wanted);
    return most;
}

static bool spread_ports(struct host *host, const struct claims *const *claims, uint32_t ranks)
{
    size_t cells = (size_t)ranks * host->count;
    host->distance = malloc((cells + 1) * sizeof(*host->distance));
    host->is_taken = calloc(cells + 1, sizeof(*host->is_taken));
    if (!host->distance || !host->is_taken)
        return false;
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t p = 0; p < host->count; p++) {
            uint32_t i = find_port(claims[r]->all, claims[r]->count, &host->ports[p]);
            host->distance[(size_t)r * host->count + p] =
                i < claims[r]->count ? claims[r]->all[i].distance : tk_spread_never;
        }
    return tk_spread(&(struct tk_spread){.ranks = ranks,
                                         .ports = host->count,
                                         .wanted = most_wanted(claims, ranks),
                                         .distance = host->distance,
                                         .is_taken = host->is_taken});
}

static struct result *make_result(const struct claims *const *claims, uint32_t ranks, size_t *size)
{
    struct host host = {.count = 0};
    struct result *result = NULL;
    if (join_ports(&host, claims, ranks) && spread_ports(&host, claims, ranks)) {
        *size = result_size(ranks, host.count);
        result = malloc(*size);
    }
    if (result) {
        *result = (struct result){.ranks = ranks, .count = host.count};
        memcpy(result->ports, host.ports, host.count * sizeof(*host.ports));
        memcpy(result->ports + host.count, host.is_taken, (size_t)ranks * host.count);
    }
    free(host.ports);
    free(host.distance);
    free(host.is_taken);
    return result;
}

static bool are_claims(const struct tk_bootstrap_blob *blob)
{
    const struct claims *claims = blob->at;
    return blob->size >= sizeof(*claims) && blob->size == claims_size(claims->count);
}

static bool await_claims(struct tk_bootstrap_blob *blobs, uint32_t begin, uint32_t end)
{
    uint32_t missing;
    if (begin >= end || tk_bootstrap_await_local(share_key, tk_bootstrap.local + begin, end - begin,
                                                 blobs + begin, first_waits, &missing) == TK_OK)
        return true;
    tk_log_warn("rank %u of this host did not say within %d s which ports are near to it: has it "
                "started? Ports are dealt out by the order of ranks",
                missing, first_waits);
    return false;
}

/* Computes the result from the claims of ranks `first` and above; ranks below take no part. NULL:
 * not all claims came, or out of memory. */
static struct result *learn_result(struct claims *mine, uint32_t row, uint32_t first, size_t *size)
{
    static const struct claims none;
    uint32_t ranks = tk_bootstrap.local_size;
    struct tk_bootstrap_blob *blobs = calloc(ranks, sizeof(*blobs));
    const struct claims **claims = calloc(ranks, sizeof(*claims));
    bool is_whole =
        blobs && claims && await_claims(blobs, first, row) && await_claims(blobs, row + 1, ranks);
    for (uint32_t r = 0; is_whole && r < ranks; r++) {
        claims[r] = r == row ? mine : r < first ? &none : blobs[r].at;
        is_whole = r == row || r < first || are_claims(&blobs[r]);
    }
    struct result *result = is_whole ? make_result(claims, ranks, size) : NULL;
    for (uint32_t r = 0; blobs && r < ranks; r++)
        free(blobs[r].at);
    free(blobs);
    free(claims);
    return result;
}

static struct result *lead(struct claims *mine, size_t *size)
{
    /* Published without a result, so that the others need not wait for their limit. */
    const struct result none = {.ranks = tk_bootstrap.local_size};
    struct result *result = learn_result(mine, 0, 0, size);
    tk_bootstrap_put_local(share_key, result ? result : &none, result ? *size : sizeof(none));
    return result;
}

/* ---- All others ---- */

static bool takes_no_part(const struct tk_bootstrap_blob *blob)
{
    const struct result *result = blob->at;
    return blob->size == sizeof(*result) && result->ranks == 0 && result->count == 0;
}

static struct result *follow(struct claims *mine, uint32_t row, size_t *size)
{
    struct tk_bootstrap_blob blob = {.at = NULL};
    uint32_t first = tk_bootstrap.local[0];
    if (tk_bootstrap_put_local(share_key, mine, claims_size(mine->count)) == TK_OK &&
        tk_bootstrap_await_local(share_key, &first, 1, &blob, others_wait, &first) != TK_OK)
        tk_log_warn("rank %u of this host did not say within %d s who uses which port: has it "
                    "started? Ports are dealt out by the order of ranks",
                    first, others_wait);
    *size = blob.size;
    if (!blob.at || !takes_no_part(&blob))
        return blob.at;
    free(blob.at);
    return learn_result(mine, row, 1, size);
}

/* ---- The result ---- */

static bool take_row(const struct result *result, size_t size, uint32_t row,
                     struct tk_rail_claim *mine, uint32_t count)
{
    if (!result || size < sizeof(*result) || result->count == 0 || row >= result->ranks ||
        size != result_size(result->ranks, result->count))
        return false;
    const bool *is_taken = (const bool *)(result->ports + result->count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t p = find_port(result->ports, result->count, &mine[i]);
        mine[i].is_taken = p < result->count && is_taken[(size_t)row * result->count + p];
    }
    return true;
}

static uint32_t find_row(void)
{
    uint32_t row = 0;
    while (row < tk_bootstrap.local_size && tk_bootstrap.local[row] != tk_bootstrap.rank)
        row++;
    return row;
}

static bool abstain(void)
{
    static const struct claims none;
    tk_bootstrap_put_local(share_key, &none, sizeof(none));
    return false;
}

bool tk_rails_share(struct tk_rail_claim *mine, uint32_t count, uint32_t wanted)
{
    uint32_t ranks = tk_bootstrap.local ? tk_bootstrap.local_size : 0, row = find_row();
    size_t size = 0;
    if (ranks < 2 || row == ranks) /* the launcher does not list the ranks of this host */
        return false;
    if (!mine)
        return abstain();
    struct claims *claims = make_claims(mine, count, wanted);
    if (!claims)
        return false;
    struct result *result = row == 0 ? lead(claims, &size) : follow(claims, row, &size);
    bool is_shared = take_row(result, size, row, mine, count);
    free(result);
    free(claims);
    return is_shared;
}
