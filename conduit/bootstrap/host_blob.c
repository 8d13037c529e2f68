/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See host_blob.h. No state. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/host_blob.h"

static uint32_t word_count(uint32_t size)
{
    return size / tk_host_word + (size % tk_host_word != 0);
}

/* The last word may be shorter. */
static uint32_t word_bytes(uint32_t size, uint32_t word)
{
    return size - word * tk_host_word < tk_host_word ? size - word * tk_host_word : tk_host_word;
}

static size_t map_bytes(const struct tk_host_blob *head)
{
    return head->ranks > 1 ? (word_count(head->size) + 7) / 8 : 0;
}

static bool is_in(const uint8_t *map, uint32_t word)
{
    return map[word / 8] >> word % 8 & 1;
}

/* Where the parts of a host's blob are. */
struct parts {
    struct tk_host_blob head;
    const uint8_t *runs, *first, *map, *sizes, *rest;
    size_t each; /* bytes of another blob of the same size */
};

static size_t sizes_bytes(const struct tk_host_blob *head)
{
    return head->odd ? (size_t)head->ranks * sizeof(uint32_t) : 0;
}

static struct parts find_parts(const struct tk_host_blob *head, const uint8_t *at)
{
    struct parts p = {.head = *head, .runs = at + sizeof(*head)};
    p.first = p.runs + (size_t)head->runs * sizeof(struct tk_host_run);
    p.map = p.first + head->size;
    p.sizes = p.map + map_bytes(head);
    p.rest = p.sizes + sizes_bytes(head);
    return p;
}

/* The bytes of the words that differ. */
static size_t count_each(const struct tk_host_blob *head, const uint8_t *map)
{
    size_t each = (size_t)head->words * tk_host_word;
    uint32_t last = word_count(head->size) - 1;
    if (head->words > 0 && is_in(map, last))
        each -= tk_host_word - word_bytes(head->size, last);
    return each;
}

size_t tk_host_blob_bytes(const struct tk_host_blob *head)
{
    size_t others = head->ranks - 1 - head->odd;
    return sizeof(*head) + head->runs * sizeof(struct tk_host_run) + head->size + map_bytes(head) +
           sizes_bytes(head) + others * head->words * tk_host_word + head->extra;
}

/* ---- packing */

/* Of the ranks from `at` on: as many as have the same distance. */
static struct tk_host_run next_run(const uint32_t *ranks, uint32_t count)
{
    struct tk_host_run run = {.first = ranks[0], .count = 1, .stride = 1};
    if (count > 1)
        run.stride = ranks[1] - ranks[0];
    while (run.count < count && ranks[run.count] - ranks[run.count - 1] == run.stride)
        run.count++;
    return run;
}

static uint32_t count_runs(const uint32_t *ranks, uint32_t count)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < count; i += next_run(ranks + i, count - i).count)
        runs++;
    return runs;
}

static void mark_words(uint8_t *map, const struct tk_bootstrap_blob *first,
                       const struct tk_bootstrap_blob *other)
{
    for (uint32_t w = 0; w < word_count((uint32_t)first->size); w++) {
        size_t at = (size_t)w * tk_host_word;
        if (memcmp((const char *)first->at + at, (const char *)other->at + at,
                   word_bytes((uint32_t)first->size, w)) != 0)
            map[w / 8] |= (uint8_t)(1u << w % 8);
    }
}

static struct tk_host_blob describe(const uint32_t *ranks, const struct tk_bootstrap_blob *blobs,
                                    uint32_t count, uint8_t *map)
{
    struct tk_host_blob head = {.version = tk_host_blob_version,
                                .ranks = count,
                                .runs = count_runs(ranks, count),
                                .size = (uint32_t)blobs[0].size};
    for (uint32_t i = 1; i < count; i++)
        if (blobs[i].size == head.size) {
            mark_words(map, &blobs[0], &blobs[i]);
        } else {
            head.odd++;
            head.extra += blobs[i].size;
        }
    for (uint32_t w = 0; w < word_count(head.size); w++)
        head.words += is_in(map, w);
    return head;
}

static uint8_t *append(uint8_t *to, const void *from, size_t size)
{
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

static uint8_t *append_words(uint8_t *to, const uint8_t *map, const struct tk_bootstrap_blob *blob)
{
    uint32_t size = (uint32_t)blob->size;
    for (uint32_t w = 0; w < word_count(size); w++)
        if (is_in(map, w))
            to = append(to, (const char *)blob->at + (size_t)w * tk_host_word, word_bytes(size, w));
    return to;
}

static uint8_t *append_runs(uint8_t *to, const uint32_t *ranks, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        struct tk_host_run run = next_run(ranks + i, count - i);
        to = append(to, &run, sizeof(run));
        i += run.count;
    }
    return to;
}

static size_t write_all(uint8_t *packed, const struct tk_host_blob *head, const uint32_t *ranks,
                        const struct tk_bootstrap_blob *blobs, const uint8_t *map)
{
    uint8_t *to = append(packed, head, sizeof(*head));
    to = append_runs(to, ranks, head->ranks);
    to = append(to, blobs[0].at, blobs[0].size);
    to = append(to, map, map_bytes(head));
    for (uint32_t i = 0; head->odd && i < head->ranks; i++) {
        uint32_t one = (uint32_t)blobs[i].size;
        to = append(to, &one, sizeof(one));
    }
    for (uint32_t i = 1; i < head->ranks; i++)
        to = blobs[i].size == head->size ? append_words(to, map, &blobs[i])
                                         : append(to, blobs[i].at, blobs[i].size);
    return (size_t)(to - packed);
}

void *tk_host_pack(const uint32_t *ranks, const struct tk_bootstrap_blob *blobs, uint32_t count,
                   size_t *size)
{
    uint8_t *packed = NULL, *map = calloc(1, word_count((uint32_t)blobs[0].size) / 8 + 1);
    if (map) {
        struct tk_host_blob head = describe(ranks, blobs, count, map);
        packed = malloc(tk_host_blob_bytes(&head));
        if (packed)
            *size = write_all(packed, &head, ranks, blobs, map);
    }
    free(map);
    return packed;
}

/* ---- unpacking */

static uint32_t size_of(const struct parts *p, uint32_t index)
{
    uint32_t size = p->head.size;
    if (p->head.odd)
        memcpy(&size, p->sizes + (size_t)index * sizeof(size), sizeof(size));
    return size;
}

/* Numbers are small enough that sums of them do not overflow 64 bits. */
static bool fits(const struct tk_host_blob *head, size_t size, uint32_t ranks)
{
    return head->version == tk_host_blob_version && head->ranks > 0 && head->ranks <= ranks &&
           head->runs > 0 && head->runs <= head->ranks && head->size <= size &&
           head->odd < head->ranks && head->words <= 8 * map_bytes(head) &&
           sizeof(*head) + head->runs * sizeof(struct tk_host_run) + head->size + map_bytes(head) +
                   sizes_bytes(head) <=
               size;
}

/* Whether the parts and the blobs have the size that the head says. */
static bool is_sound(const struct parts *p, size_t before, size_t size)
{
    uint32_t odd = 0;
    uint64_t rest = 0, extra = 0, words = 0;
    for (uint32_t w = 0; p->head.ranks > 1 && w < word_count(p->head.size); w++)
        words += is_in(p->map, w);
    for (uint32_t i = 1; i < p->head.ranks; i++) {
        bool is_odd = size_of(p, i) != p->head.size;
        odd += is_odd;
        extra += is_odd ? size_of(p, i) : 0;
        rest += is_odd ? 0 : p->each;
    }
    return words == p->head.words && odd == p->head.odd && extra == p->head.extra &&
           before + rest + extra == size && size_of(p, 0) == p->head.size;
}

static bool open_parts(const struct tk_bootstrap_blob *packed, uint32_t ranks, struct parts *p)
{
    struct tk_host_blob head;
    if (packed->size < sizeof(head))
        return false;
    memcpy(&head, packed->at, sizeof(head));
    if (!fits(&head, packed->size, ranks))
        return false;
    *p = find_parts(&head, packed->at);
    p->each = count_each(&head, p->map);
    return is_sound(p, (size_t)(p->rest - (const uint8_t *)packed->at), packed->size);
}

/* Calls visit for each rank and its index; false: a visit, or the list, is not right. */
static bool each_rank(const struct parts *p, bool (*visit)(uint32_t, uint32_t, void *),
                      void *object)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < p->head.runs; i++) {
        struct tk_host_run run;
        memcpy(&run, p->runs + i * sizeof(run), sizeof(run));
        for (uint32_t k = 0; k < run.count; k++)
            if (index >= p->head.ranks || !visit(run.first + k * run.stride, index++, object))
                return false;
    }
    return index == p->head.ranks;
}

struct reading {
    const struct parts *parts;
    uint64_t *sizes;
    uint32_t ranks;
};

static bool read_size(uint32_t rank, uint32_t index, void *object)
{
    const struct reading *r = object;
    if (rank >= r->ranks || r->sizes[rank] != tk_host_no_size)
        return false;
    r->sizes[rank] = size_of(r->parts, index);
    return true;
}

bool tk_host_read_sizes(const struct tk_bootstrap_blob *packed, uint64_t *sizes, uint32_t ranks)
{
    struct parts parts;
    struct reading reading = {.parts = &parts, .sizes = sizes, .ranks = ranks};
    return open_parts(packed, ranks, &parts) && each_rank(&parts, read_size, &reading);
}

struct writing {
    const struct parts *parts;
    const uint8_t *rest;
    void *(*place)(uint32_t, void *);
    void *table;
};

static bool write_blob(uint32_t rank, uint32_t index, void *object)
{
    struct writing *w = object;
    const struct parts *p = w->parts;
    uint32_t size = size_of(p, index);
    uint8_t *to = w->place(rank, w->table);
    bool is_odd = size != p->head.size;
    append(to, is_odd ? w->rest : p->first, size);
    if (is_odd)
        w->rest += size;
    for (uint32_t i = 0; !is_odd && index > 0 && p->head.words && i < word_count(size); i++)
        if (is_in(p->map, i)) {
            append(to + (size_t)i * tk_host_word, w->rest, word_bytes(size, i));
            w->rest += word_bytes(size, i);
        }
    return true;
}

void tk_host_unpack(const struct tk_bootstrap_blob *packed, void *(*place)(uint32_t, void *),
                    void *table)
{
    struct parts parts;
    if (!open_parts(packed, UINT32_MAX, &parts))
        return;
    struct writing writing = {.parts = &parts, .rest = parts.rest, .place = place, .table = table};
    each_rank(&parts, write_blob, &writing);
}
