/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's side of kv: a window of requests, completed oldest first; each answer is checked
 * before its place is reused. A request's time runs from when its place became free to when its
 * answer was taken, so that rate times mean time is the window (K19). Owns the window; known.c has
 * its knowledge of keys. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "kv.h"

/* Requests that must follow another: the update after its read, the rest of a multi-get. */
struct forced {
    enum kv_op op;
    uint64_t number;
};

static struct {
    struct kv_pending *window;
    char *answers;
    uint16_t *place; /* of the request in the window, by server and seq mod window */
    uint64_t *sent;  /* requests to each server */
    uint64_t *told;  /* requests that are messages to the server */
    uint64_t issued, retired;
    uint16_t *row;  /* places in the order of their requests, from `first` on as many as are out */
    uint16_t *free; /* places without a request: window - (issued - retired) */
    uint64_t first, looked;
    struct wl_random random;
    struct forced *forced;
    uint64_t forced_first, forced_end;
    double before; /* time already spent on outstanding requests when counting began */
    bool counting, faults, broken, drawn; /* drawn: the current request does not follow from
                                           * another */
} client;

static void *make(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        wl_job_die("no memory for %zu requests", count);
    return memory;
}

/* A window of updates, and a multi-get, which is no larger. */
static size_t forced_room(void)
{
    return 2 * (size_t)kv.window;
}

static void force(enum kv_op op, uint64_t number)
{
    client.forced[client.forced_end++ % forced_room()] = (struct forced){op, number};
}

void kv_client_open(uint32_t loaded_version)
{
    size_t window = (size_t)kv.window, area = kv_area();
    memset(&client, 0, sizeof(client));
    client.window = make(window, sizeof(*client.window));
    client.place = make(kv_servers * window, sizeof(*client.place));
    client.row = make(window, sizeof(*client.row));
    client.free = make(window, sizeof(*client.free));
    client.sent = make(kv_servers, sizeof(*client.sent));
    client.told = make(kv_servers, sizeof(*client.told));
    client.forced = make(forced_room(), sizeof(*client.forced));
    client.random = wl_random((uint64_t)kv.common.seed, kv_client + 1);
    /* The images lie behind the area of slots, which only servers use. */
    for (size_t i = 0; i < window; i++)
        client.free[i] = (uint16_t)i;
    client.answers = make(window, kv.value_max);
    for (size_t i = 0; i < window; i++)
        client.window[i].answer = client.answers + i * kv.value_max;
    for (size_t i = 0; i < window; i++)
        client.window[i].image = wl_job.segment + area + (i + 1) * kv_slot;
    kv_known_open(loaded_version);
}

void kv_client_close(void)
{
    free(client.window);
    free(client.answers);
    free(client.place);
    free(client.row);
    free(client.free);
    free(client.sent);
    free(client.told);
    free(client.forced);
    kv_known_close();
}

/* ---- Answers */

void kv_client_answer(struct kv_pending *pending, enum kv_status status, const void *value,
                      size_t len)
{
    pending->status = status;
    /* An impossible length: known.c rejects it. */
    pending->answer_len = len <= kv.value_max ? len : 0;
    if (len && len <= kv.value_max)
        memcpy(pending->answer, value, len);
    pending->answered = true;
}

uint32_t kv_client_seq(uint32_t server, uint32_t slot)
{
    size_t window = (size_t)kv.window;
    if (server >= kv_servers || slot >= window)
        return UINT32_MAX;
    return client.window[client.place[server * window + slot]].seq;
}

void kv_client_take(uint32_t from, uint32_t seq, enum kv_status status, const void *value,
                    size_t len)
{
    size_t window = (size_t)kv.window;
    struct kv_pending *pending =
        from < kv_servers ? &client.window[client.place[from * window + seq % window]] : NULL;
    if (!pending || !pending->waiting || pending->server != from || pending->seq != seq) {
        kv_fail(kv_k7, "client %u: an answer to request %u of server %u, which was not asked",
                kv_client, seq, from);
        return;
    }
    if (pending->answered) {
        kv_fail(kv_k7, "client %u: request %u of server %u was answered twice", kv_client, seq,
                from);
        return;
    }
    kv_client_answer(pending, status, value, len);
}

static const char *op_name(enum kv_op op)
{
    static const char *const names[] = {"GET", "PUT", "DELETE"};
    return names[op];
}

static void give_up(const struct kv_pending *pending)
{
    kv_fail(kv_k7, "client %u: %s %u of server %u (key %llu) was not answered in %lld ms",
            kv_client, op_name(pending->op), pending->seq, pending->server,
            (unsigned long long)pending->number, (long long)kv.common.timeout_ms);
    client.broken = true;
    wl_stop();
}

/* False if no answers can be expected any more. */
static bool await(struct kv_pending *pending)
{
    uint64_t limit = pending->posted + (uint64_t)kv.common.timeout_ms * 1000000;
    while (!pending->answered && !wl_stopped()) {
        kv_transport->await(pending);
        if (!pending->answered && wl_now() > limit) {
            give_up(pending);
            return false;
        }
    }
    return pending->answered;
}

static void count_answer(const struct kv_pending *pending, uint64_t now)
{
    kv_mine.answered[pending->op]++;
    if (!client.counting)
        return;
    kv_mine.measured[pending->op]++;
    if (pending->op == kv_get)
        wl_histogram_add(&kv_mine.gets, now - pending->posted);
    else
        wl_histogram_add(&kv_mine.puts, now - pending->posted);
}

/* The window is a power of 2. */
static uint64_t wrap(uint64_t i)
{
    return i & ((uint64_t)kv.window - 1);
}

static uint64_t out(void)
{
    return client.issued - client.retired;
}

/* Checks an answer and frees its place; returns the time of that. */
static uint64_t retire_place(uint16_t place)
{
    struct kv_pending *pending = &client.window[place];
    kv_known_judge(pending);
    if (pending->rmw)
        force(kv_put, pending->number);
    uint64_t now = wl_now();
    count_answer(pending, now);
    pending->waiting = false;
    client.retired++;
    client.free[(uint64_t)kv.window - out() - 1] = place;
    return now;
}

/* --order any: a request of the window that was answered, or one to wait for. */
static uint64_t choose(void)
{
    for (uint64_t i = 0; i < out(); i++)
        if (client.window[client.row[wrap(client.first + i)]].answered)
            return i;
    return client.looked++ % out();
}

/* Removes the i-th from the list. */
static uint16_t leave_row(uint64_t i)
{
    uint16_t place = client.row[wrap(client.first + i)];
    for (; i > 0; i--)
        client.row[wrap(client.first + i)] = client.row[wrap(client.first + i - 1)];
    client.first++;
    return place;
}

/* Takes the answer of the oldest request, or with --order any an available one; returns the time at
 * which its place became free, 0 at the end. */
static uint64_t retire(void)
{
    uint64_t i = kv.order == kv_oldest ? 0 : choose();
    if (!await(&client.window[client.row[wrap(client.first + i)]]))
        return 0;
    return retire_place(leave_row(i));
}

/* ---- Requests */

bool kv_client_gathers(void)
{
    return client.forced_first != client.forced_end;
}

static void write_image(struct kv_pending *pending, const struct kv_key *key)
{
    if (pending->op == kv_put)
        kv_value_fill(kv_record_value(pending->image, pending->len), pending->len, pending->hash,
                      kv_client, pending->version);
    kv_record_write(pending->image, pending->op, (uint16_t)pending->len, pending->seq, key,
                    kv_mark_of((uint64_t)kv.window, pending->r));
}

/* Faults of the client: a request that is sent twice, to the wrong server, or not at all. */
static void send(struct kv_pending *pending)
{
    if (client.faults) {
        if (wl_inject(&kv.injection, kv_lose_request))
            return;
        if (wl_inject(&kv.injection, kv_dup_request))
            kv_transport->request(pending);
        if (wl_inject(&kv.injection, kv_wrong_server)) {
            uint32_t right = pending->server;
            pending->server = (right + 1) % kv_servers;
            kv_transport->request(pending);
            pending->server = right;
            return;
        }
    }
    kv_transport->request(pending);
}

/* A slot of a server is free when the request a window before was answered; with --order any others
 * may have been answered first. */
static bool slot_is_taken(uint32_t server)
{
    uint64_t window = (uint64_t)kv.window;
    const struct kv_pending *before =
        &client.window[client.place[server * window + client.told[server] % window]];
    return kv.order == kv_any && before->waiting && before->server == server &&
           (uint32_t)client.told[server] - before->seq == window;
}

/* A server counts the requests that arrive as messages; a request that reads the server's memory
 * needs a number only for error messages.
 */
static void number_request(struct kv_pending *pending, uint16_t place)
{
    bool told = !kv_transport->reads || pending->op != kv_get;
    pending->r = client.sent[pending->server]++;
    pending->seq = (uint32_t)(told ? client.told[pending->server]++ : pending->r);
    if (told)
        client.place[pending->server * (size_t)kv.window + pending->seq % (size_t)kv.window] =
            place;
}

static void issue(enum kv_op op, uint64_t number, bool rmw, uint64_t now)
{
    struct kv_key key = kv_key_of((uint64_t)kv.common.seed, number);
    struct kv_hash hash = kv_hash_of(&key);
    uint32_t server = kv_server_of(hash, kv_servers);
    while (slot_is_taken(server))
        if (!retire())
            return;
    uint16_t place = client.free[(uint64_t)kv.window - out() - 1];
    struct kv_pending *pending = &client.window[place];
    char *image = pending->image, *answer = pending->answer;
    *pending = (struct kv_pending){.waiting = true,
                                   .op = op,
                                   .number = number,
                                   .rmw = rmw,
                                   .posted = now,
                                   .key = key,
                                   .server = server,
                                   .hash = hash,
                                   .image = image,
                                   .answer = answer};
    number_request(pending, place);
    client.row[wrap(client.first + out())] = place;
    kv_known_issue(pending);
    write_image(pending, &key);
    client.issued++;
    kv_mine.issued[op]++;
    if (client.drawn && op == kv_get && pending->server < kv_shares_max)
        kv_mine.to_server[pending->server]++;
    send(pending);
}

/* The nearest key that this client owns: only its owner writes it. */
static uint64_t own(uint64_t number)
{
    return number - number % kv_clients + kv_client;
}

/* A hash store has no order of keys, so record numbers define it: from the drawn one on up to a
 * multi-get of them are read. */
static void scan(uint64_t number, uint64_t now)
{
    uint64_t length = 1 + wl_below(&client.random, (uint64_t)kv.mget);
    for (uint64_t i = 1; i < length; i++)
        force(kv_get, (number + i) % kv.draw.n);
    issue(kv_get, number, false, now);
}

/* K16's fault: from some moment on one request in four reads the same key. */
static void skew(enum kv_action *action, uint64_t *number)
{
    static bool skewed;
    if (client.faults && wl_inject(&kv.injection, kv_skew))
        skewed = true;
    if (!skewed || client.issued % 4)
        return;
    *action = kv_act_read;
    *number = 0;
}

static void issue_next(uint64_t now)
{
    client.drawn = !kv_client_gathers();
    if (!client.drawn) {
        struct forced next = client.forced[client.forced_first++ % forced_room()];
        issue(next.op, next.number, false, now);
        return;
    }
    enum kv_action action = kv_mix_draw(&kv.mix, &client.random);
    uint64_t number = kv_draw(&kv.draw, &client.random, kv_known_newest());
    skew(&action, &number);
    kv_mine.drawn[action]++;
    switch (action) {
    case kv_act_read:
        for (int64_t more = 1; more < kv.mget; more++)
            force(kv_get, kv_draw(&kv.draw, &client.random, kv_known_newest()));
        issue(kv_get, number, false, now);
        break;
    case kv_act_scan:
        scan(number, now);
        break;
    case kv_act_rmw:
        issue(kv_get, own(number), true, now);
        break;
    case kv_act_insert:
        issue(kv_put, kv_known_insert(own(number)), false, now);
        break;
    case kv_act_delete:
        issue(kv_delete, own(number), false, now);
        break;
    default:
        issue(kv_put, own(number), false, now);
    }
}

/* Takes outstanding answers; not after a loss, because then it would wait for ever. */
static void drain(void)
{
    while (out() && !client.broken && !wl_stopped())
        retire();
}

void kv_client_preload(void)
{
    for (uint64_t k = 0; k < (uint64_t)kv.keys && !wl_stopped(); k++) {
        if (out() == (uint64_t)kv.window && !retire())
            break;
        issue(kv_put, k * kv_clients + kv_client, false, wl_now());
    }
    drain();
}

/* The total age of outstanding requests. */
static double under_way(uint64_t now)
{
    double sum = 0;
    for (uint64_t i = 0; i < out(); i++)
        sum += (double)(now - client.window[client.row[wrap(client.first + i)]].posted);
    return sum;
}

/* K19, Little's law: clock and counters must agree with the full window. Requests outstanding at
 * the start or end count only in part. */
static void check_little(uint64_t ended)
{
    uint64_t count = kv_mine.gets.count + kv_mine.puts.count;
    /* With --order any a free place may have to wait for a slot. */
    if (kv.order == kv_any || count < 1000 || client.broken || wl_stopped() ||
        kv_mine.measured_ns == 0)
        return;
    double sum = (double)(kv_mine.gets.sum + kv_mine.puts.sum);
    double seen = (sum - client.before + under_way(ended)) / (double)kv_mine.measured_ns;
    if (seen < 0.95 * (double)kv.window || seen > 1.05 * (double)kv.window)
        kv_fail(kv_k19, "client %u: rate times mean time is %.3f, the window %lld", kv_client, seen,
                (long long)kv.window);
}

/* The window is full when measuring begins, except for the place that has just become free. / */
static void start_counting(uint64_t now, uint64_t *cpu)
{
    client.counting = true;
    client.before = under_way(now);
    *cpu = wl_cpu();
}

static bool wanted(const struct wl_span *span, uint64_t first)
{
    if (kv.ops)
        return client.issued - first < (uint64_t)kv.ops;
    return span->phase != wl_over;
}

void kv_client_run(void)
{
    uint64_t now = wl_now(), cpu = wl_cpu(), first = client.issued;
    struct wl_span span = wl_span_start(now, kv.ops ? 0 : (uint64_t)(kv.common.warmup * 1e9),
                                        kv.ops ? 0 : (uint64_t)(kv.common.duration * 1e9));
    client.faults = kv.injection.fault >= 0;
    kv_ticks_start(now, client.retired);
    while (wanted(&span, first) && !wl_stopped()) {
        if (out() == (uint64_t)kv.window) {
            now = retire();
            if (!now)
                break;
            if (wl_span_step(&span, now))
                start_counting(now, &cpu);
            if (kv_tick_due(now))
                kv_tick(now, client.retired);
        } else {
            now = wl_now();
        }
        issue_next(now);
    }
    wl_span_end(&span, now);
    kv_ticks_end(client.retired);
    client.counting = false;
    kv_mine.measured_ns = span.ended - span.began;
    kv_mine.cpu_ns = span.ended_cpu - cpu;
    check_little(span.ended);
    drain();
    if (!client.broken && out() && !wl_stopped())
        kv_fail(kv_k7, "client %u: %llu requests are left", kv_client, (unsigned long long)out());
    for (uint32_t server = 0; server < kv_servers; server++)
        kv_send_done(server);
}
