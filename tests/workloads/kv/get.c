/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport get, after Pilaf and FaRM: a GET is two reads of the server's memory, of a line of
 * the index and of the entry it leads to, and the server's thread takes no part in it. The client
 * may see half of a concurrent write: the entry's version and checksum detect this, and the client
 * reads again. PUTs and DELETEs are messages. A request waits for those before it that have the
 * same key when one of them writes, because nothing else orders a read after a message. Owns the
 * reads under way.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "exact.h"
#include "kv.h"

enum { line_size = kv_index_slots * sizeof(uint64_t) };

struct reading {
    struct kv_pending *pending; /* NULL: free */
    gex_Event_t event;
    bool of_entry; /* else of a line */
    uint64_t line, lines;
    struct kv_line_look look;
    unsigned next; /* of the candidates in the line */
    uint64_t torn_since;
    char *here; /* in the segment: a line, or an entry */
};

static struct {
    struct kv_shape shape;
    struct reading *readings; /* one for each place in the window */
    struct reading *row[kv_window_max];
    uint64_t first, end; /* of the queue of requests that wait for a read, oldest first */
    struct kv_pending *writes[kv_window_max];
    unsigned write_count;
} getting;

size_t kv_get_room(bool server)
{
    struct kv_store_options options = kv_store_wanted();
    struct kv_shape shape = kv_shape_of(&options);
    size_t each = shape.stride > line_size ? shape.stride : line_size;
    return server ? shape.size : (size_t)kv.window * each;
}

static void open_readings(void)
{
    struct kv_store_options options = kv_store_wanted();
    memset(&getting, 0, sizeof(getting));
    getting.shape = kv_shape_of(&options);
    if (kv_is_server())
        return;
    size_t each = kv_get_room(false) / (size_t)kv.window;
    getting.readings = calloc((size_t)kv.window, sizeof(*getting.readings));
    if (!getting.readings)
        wl_job_die("no memory for reads");
    for (size_t i = 0; i < (size_t)kv.window; i++)
        getting.readings[i].here = wl_job.segment + kv_store_at() + i * each;
}

static void close_readings(void)
{
    free(getting.readings);
}

/* ---- Reads */

static void start(struct reading *reading, size_t at, size_t size)
{
    uint32_t server = reading->pending->server;
    char *store = (char *)wl_job.segments[server] + kv_store_at();
    kv_mine.reads++;
    kv_mine.wire_bytes += size;
    reading->event = gex_RMA_GetNB(wl_job.tm, reading->here, server, store + at, size, 0);
    getting.row[getting.end++ % kv_window_max] = reading;
}

static void read_line(struct reading *reading)
{
    uint64_t line = reading->line & (getting.shape.buckets - 1);
    reading->of_entry = false;
    start(reading, line * line_size, line_size);
}

static void read_entry(struct reading *reading)
{
    uint32_t number = reading->look.numbers[reading->next];
    reading->of_entry = true;
    start(reading, getting.shape.entries_at + number * getting.shape.stride, getting.shape.stride);
}

static void answer(struct reading *reading, enum kv_status status, char *value, size_t len)
{
    struct kv_pending *pending = reading->pending;
    if (len && wl_inject(&kv.injection, kv_flip_bit))
        value[len / 2] ^= 1;
    reading->pending = NULL;
    kv_mine.looked++;
    kv_client_answer(pending, status, value, len);
}

/* The next candidate, the next line, or the end: no such key. */
static void go_on(struct reading *reading)
{
    if (reading->next < reading->look.count) {
        read_entry(reading);
    } else if (reading->look.more && ++reading->lines < getting.shape.buckets) {
        reading->line++;
        read_line(reading);
    } else {
        answer(reading, kv_missing, NULL, 0);
    }
}

/* Reads again, for half of the time limit of a request: a server that died during a write never
 * completes it.
 */
static void take_torn(struct reading *reading)
{
    uint64_t now = wl_now();
    kv_mine.torn++;
    if (!reading->torn_since)
        reading->torn_since = now;
    if (now - reading->torn_since < (uint64_t)kv.common.timeout_ms * 500000) {
        read_entry(reading);
        return;
    }
    kv_fail(kv_k4, "client %u: the entry of key %llu at server %u is torn, and stays so", kv_client,
            (unsigned long long)reading->pending->number, reading->pending->server);
    answer(reading, kv_missing, NULL, 0);
}

static void take(struct reading *reading)
{
    const struct kv_pending *pending = reading->pending;
    const char *value;
    size_t len;
    if (!reading->of_entry) {
        reading->next = 0;
        kv_line_look((const uint64_t *)(const void *)reading->here, pending->hash, &reading->look);
        go_on(reading);
        return;
    }
    switch (kv_entry_look(reading->here, getting.shape.stride, &pending->key, &value, &len)) {
    case kv_entry_whole:
        answer(reading, kv_ok, reading->here + (value - reading->here), len);
        break;
    case kv_entry_other:
        reading->next++;
        reading->torn_since = 0;
        go_on(reading);
        break;
    default:
        take_torn(reading);
    }
}

static void take_all_there(void)
{
    while (getting.first < getting.end) {
        struct reading *reading = getting.row[getting.first % kv_window_max];
        if (gex_Event_Test(reading->event) != GASNET_OK)
            return;
        getting.first++;
        take(reading);
    }
}

/* ---- Requests */

static void forget_answered(const struct kv_pending *again)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < getting.write_count; i++)
        if (getting.writes[i] != again && !getting.writes[i]->answered)
            getting.writes[kept++] = getting.writes[i];
    getting.write_count = kept;
}

static bool same_key(const struct kv_pending *a, const struct kv_pending *b)
{
    return a->number == b->number;
}

static bool must_wait(const struct kv_pending *pending)
{
    forget_answered(pending);
    for (unsigned i = 0; i < getting.write_count; i++)
        if (same_key(getting.writes[i], pending))
            return true;
    for (int64_t i = 0; pending->op != kv_get && i < kv.window; i++)
        if (getting.readings[i].pending && same_key(getting.readings[i].pending, pending))
            return true;
    return false;
}

static struct reading *free_reading(void)
{
    struct reading *reading = getting.readings;
    while (reading->pending)
        reading++;
    return reading;
}

static void request(struct kv_pending *pending)
{
    uint64_t limit = pending->posted + (uint64_t)kv.common.timeout_ms * 1000000;
    while (must_wait(pending)) {
        gasnet_AMPoll();
        take_all_there();
        /* The awaited request was lost; its client will report it. */
        if (wl_stopped() || wl_now() > limit)
            return;
    }
    if (pending->op != kv_get) {
        getting.writes[getting.write_count++] = pending;
        kv_send_medium(pending);
        return;
    }
    struct reading *reading = free_reading();
    reading->pending = pending;
    reading->line = kv_bucket_of(pending->hash, getting.shape.buckets);
    reading->lines = 0;
    reading->torn_since = 0;
    read_line(reading);
}

/* The library may sleep while nothing comes. */
static void await(struct kv_pending *pending)
{
    static unsigned polls;
    if (getting.first == getting.end) {
        GASNET_BLOCKUNTIL(pending->answered || wl_stopped() || ++polls % 64 == 0);
        return;
    }
    struct reading *oldest = getting.row[getting.first++ % kv_window_max];
    gex_Event_Wait(oldest->event);
    take(oldest);
    take_all_there();
}

const struct kv_transport kv_get_put = {.name = "get",
                                        .reads = true,
                                        .open = open_readings,
                                        .close = close_readings,
                                        .reply = kv_send_reply,
                                        .request = request,
                                        .await = await};
