/* SPDX-License-Identifier: BSD-3-Clause */
/* How many bytes of data a host adds to the fences: peer infos, packed by the first rank of the
 * host, and the settings of rank 0. Sizes of peer infos and of what is packed are those of
 * conduit/peer and conduit/bootstrap. */
#include "config.h"

#include "simulation.h"

#include "bootstrap/host_blob.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "start/plan.h"
#include "transport/verbs/verbs.h"

#include <stdlib.h>
#include <string.h>

/* In libpmix 4.2 a number takes a byte for each 7 bits. A value is in the data with its key, its
 * size, and 4 bytes more; a host adds the size of its data and of its first rank's, the rank that
 * put them, and 5 bytes. A host without data adds nothing. */
enum { value_more = 4, host_more = 5 };

/* Of an info, where ranks differ if they have rings: the number of their file, and the nonce. */
enum { rings_words = 3 };

/* Beside the number of a rank that is not the first of its host: such a rank puts nothing else. */
enum { rank_more = 3 };

static const char infos[] = "tk.peer_info", settings[] = "tk.settings", code[] = "tk.exit";

static uint64_t number_bytes(uint64_t number)
{
    uint64_t bytes = 1;
    for (; number >> 7; number >>= 7)
        bytes++;
    return bytes;
}

static uint64_t value_bytes(const char *key, uint64_t size)
{
    return strlen(key) + number_bytes(size) + size + value_more;
}

/* Values of its first rank, and the data of others. */
static uint64_t host_bytes(uint64_t values, uint64_t others, uint32_t rank)
{
    return values + others + number_bytes(values) + number_bytes(values + others) +
           number_bytes(rank) + host_more;
}

/* Codes of the ranks behind the first one of a host. */
static uint64_t others_bytes(uint32_t rank, uint64_t codes, uint64_t of_code)
{
    uint64_t bytes = 0;
    for (uint64_t i = 1; i < codes; i++)
        bytes += of_code + number_bytes(rank + i) + rank_more;
    return bytes;
}

static uint64_t settings_bytes(void)
{
    char *text = tk_settings_job_text();
    uint64_t bytes = text ? strlen(text) : 0;
    free(text);
    return bytes;
}

/* What a host puts. Ranks make connections on demand, so an info has no numbers of queue pairs; its
 * text is empty. The secret of the job is in rank 0's info alone, so that the others of its host
 * differ from it. With XRC they also differ in the file that it needs. */
static uint64_t packed_bytes(const struct tk_job_shape *shape, uint32_t local, uint64_t words)
{
    const struct tk_peer_info info = {
        .ranks = shape->ranks, .rails = shape->rails, .unused_size = 1};
    const struct tk_host_blob head = {.ranks = local,
                                      .runs = 1,
                                      .size = (uint32_t)tk_peer_info_size(&info),
                                      .words = (uint32_t)words};
    return tk_host_blob_bytes(&head);
}

struct sim_data sim_data_of_hosts(const struct simulation *s)
{
    struct sim_data data = {0};
    struct tk_job_shape shape;
    tk_plan_shape(&shape, s->in.ranks, s->in.hosts);
    shape.is_static = false;
    const uint64_t rings = tk_settings.supernode_maxsize == 1 ? rings_words : 0;
    const uint64_t least = s->costs.info_words > rings ? s->costs.info_words - rings : 0;
    const uint64_t words = least + tk_verbs_offers_xrc(&shape);
    const uint64_t secret = tk_job_secret_size / tk_host_word;
    for (uint32_t h = 0; s->in.hosts > 1 && h < s->in.hosts; h++) {
        uint64_t packed = packed_bytes(&shape, s->hosts[h].ranks, words + (h == 0 ? secret : 0));
        uint64_t first = value_bytes(infos, packed), left = value_bytes(infos, 1);
        /* a byte each; the first rank of the host is one of those that add it */
        uint64_t codes = s->hosts[h].codes, of_code = value_bytes(code, 1);
        left += codes ? of_code : 0;
        if (h == 0) {
            first += value_bytes(settings, settings_bytes());
            left += value_bytes(settings, 1);
        }
        const uint32_t rank = s->first[s->hosts[h].first]; /* that puts them */
        data.first += host_bytes(first, 0, rank);
        data.left += host_bytes(left, others_bytes(rank, codes, of_code), rank);
    }
    return data;
}
