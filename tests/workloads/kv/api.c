/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports over GASNet-EX. am-medium: the record is the payload of a Medium. am-long: it is
 * that of a Long into the client's slot at the server. put-am: a put into the slot and, when that
 * is complete at the target (before that its bytes are undefined), a Short that names it. Handlers
 * serve and reply, nothing else. Owns the table of handlers. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "kv.h"

static void on_medium(gex_Token_t, void *, size_t, gex_AM_Arg_t);
static void on_long(gex_Token_t, void *, size_t, gex_AM_Arg_t);
static void on_short(gex_Token_t, gex_AM_Arg_t, gex_AM_Arg_t, gex_AM_Arg_t);
static void on_answer(gex_Token_t, gex_AM_Arg_t, gex_AM_Arg_t, gex_AM_Arg_t);
static void on_value(gex_Token_t, void *, size_t, gex_AM_Arg_t, gex_AM_Arg_t, gex_AM_Arg_t);
static void on_many(gex_Token_t, void *, size_t, gex_AM_Arg_t);
static void on_values(gex_Token_t, void *, size_t, gex_AM_Arg_t);
static void on_done(gex_Token_t);

enum { at_medium, at_long, at_short, at_answer, at_value, at_many, at_values, at_done };

/* Answers may be replies, or, when a fault made them late, requests. */
static gex_AM_Entry_t handlers[] = {
    [at_medium] = {0, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL,
                   "kv_medium"},
    [at_long] = {0, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL,
                 "kv_long"},
    [at_short] = {0, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 3, NULL,
                  "kv_short"},
    [at_answer] = {0, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 3, NULL,
                   "kv_answer"},
    [at_value] = {0, (gex_AM_Fn_t)on_value, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQREP, 3, NULL,
                  "kv_value"},
    [at_many] = {0, (gex_AM_Fn_t)on_many, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL,
                 "kv_many"},
    [at_values] = {0, (gex_AM_Fn_t)on_values, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL,
                   "kv_values"},
    [at_done] = {0, (gex_AM_Fn_t)on_done, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL,
                 "kv_done"},
};

void kv_api_handlers(void)
{
    wl_job_handlers(handlers, sizeof(handlers) / sizeof(*handlers));
}

/* ---- Server */

static void reply_to(gex_Token_t token, const struct kv_reply *reply)
{
    kv_mine.wire_bytes += reply->len + 3 * sizeof(gex_AM_Arg_t);
    if (reply->len)
        gex_AM_ReplyMedium(token, handlers[at_value].gex_index, reply->value, reply->len,
                           GEX_EVENT_NOW, 0, (gex_AM_Arg_t)wl_job.me, (gex_AM_Arg_t)reply->seq,
                           (gex_AM_Arg_t)reply->status);
    else
        gex_AM_ReplyShort(token, handlers[at_answer].gex_index, 0, (gex_AM_Arg_t)wl_job.me,
                          (gex_AM_Arg_t)reply->seq, (gex_AM_Arg_t)reply->status);
}

void kv_send_reply(const struct kv_reply *reply)
{
    gex_Rank_t to = kv_servers + reply->client;
    if (reply->len)
        gex_AM_RequestMedium(wl_job.tm, to, handlers[at_value].gex_index, (void *)reply->value,
                             reply->len, GEX_EVENT_NOW, 0, (gex_AM_Arg_t)wl_job.me,
                             (gex_AM_Arg_t)reply->seq, (gex_AM_Arg_t)reply->status);
    else
        gex_AM_RequestShort(wl_job.tm, to, handlers[at_answer].gex_index, 0,
                            (gex_AM_Arg_t)wl_job.me, (gex_AM_Arg_t)reply->seq,
                            (gex_AM_Arg_t)reply->status);
}

static void serve(gex_Token_t token, uint32_t client, char *end, size_t image, bool slot)
{
    static struct kv_reply reply;
    if (kv_server_take(client, end, image, slot, &reply))
        reply_to(token, &reply);
}

static void on_medium(gex_Token_t token, void *data, size_t nbytes, gex_AM_Arg_t client)
{
    serve(token, (uint32_t)client, (char *)data + nbytes, nbytes, false);
}

static void on_long(gex_Token_t token, void *data, size_t nbytes, gex_AM_Arg_t client)
{
    serve(token, (uint32_t)client, (char *)data + nbytes, nbytes, true);
}

static void on_short(gex_Token_t token, gex_AM_Arg_t client, gex_AM_Arg_t index, gex_AM_Arg_t image)
{
    serve(token, (uint32_t)client, wl_job.segment + ((size_t)index + 1) * kv_slot, (size_t)image,
          true);
}

/* The ends of requests that lie one behind the other, the last one first: a request's length is at
 * its end. Returns their number; *left is then the number of bytes in front of them, 0 unless those
 * are not a request. */
static uint32_t part(char *data, size_t *left, char **ends)
{
    struct kv_request request;
    uint32_t count = 0;
    while (count < kv_window_max && *left >= kv_layout.header_image) {
        char *end = data + *left;
        size_t size = kv_layout.header_image;
        if (!kv_record_read(end, kv.value_max, &request) || size + request.len > *left)
            break;
        ends[count++] = end;
        *left -= size + request.len;
    }
    return count;
}

/* Requests one behind the other; so are their answers. */
static void on_many(gex_Token_t token, void *data, size_t nbytes, gex_AM_Arg_t client)
{
    static struct kv_reply reply;
    static char answers[kv_window_max * kv_answer_max];
    char *ends[kv_window_max], *end = answers;
    uint32_t count = part(data, &nbytes, ends);
    if (nbytes)
        kv_fail(kv_k6, "server %u: no requests, from client %u", (unsigned)wl_job.me,
                (unsigned)client);
    while (count-- > 0)
        if (kv_server_take((uint32_t)client, ends[count], kv_layout.header_image, false, &reply)) {
            end += kv_answer_image + reply.len;
            kv_answer_write(end, reply.op, reply.seq, reply.status, reply.value, reply.len, 1);
        }
    if (end == answers)
        return;
    kv_mine.wire_bytes += (size_t)(end - answers) + sizeof(gex_AM_Arg_t);
    gex_AM_ReplyMedium(token, handlers[at_values].gex_index, answers, (size_t)(end - answers),
                       GEX_EVENT_NOW, 0, (gex_AM_Arg_t)wl_job.me);
}

static void on_done(gex_Token_t token)
{
    (void)token;
    kv_client_done();
}

/* ---- Client */

static void on_answer(gex_Token_t token, gex_AM_Arg_t server, gex_AM_Arg_t seq, gex_AM_Arg_t status)
{
    (void)token;
    kv_client_take((uint32_t)server, (uint32_t)seq, (enum kv_status)status, NULL, 0);
}

static void on_value(gex_Token_t token, void *data, size_t nbytes, gex_AM_Arg_t server,
                     gex_AM_Arg_t seq, gex_AM_Arg_t status)
{
    (void)token;
    kv_client_take((uint32_t)server, (uint32_t)seq, (enum kv_status)status, data, nbytes);
}

/* The length of an answer is at its end. */
static void on_values(gex_Token_t token, void *data, size_t nbytes, gex_AM_Arg_t server)
{
    struct kv_answer answer;
    (void)token;
    while (nbytes && kv_answer_read((char *)data + nbytes, nbytes, &answer)) {
        kv_client_take((uint32_t)server, answer.seq, (enum kv_status)answer.status, answer.value,
                       answer.len);
        nbytes -= kv_answer_image + answer.len;
    }
    if (nbytes)
        kv_fail(kv_k4, "client %u: answers of server %u that are none", kv_client,
                (unsigned)server);
}

void kv_send_done(uint32_t server)
{
    gex_AM_RequestShort(wl_job.tm, server, handlers[at_done].gex_index, 0);
}

static size_t image_of(const struct kv_pending *pending)
{
    return kv_image_size(pending->op, pending->len);
}

/* The end of the request's slot at its server. */
static char *slot_end(const struct kv_pending *pending)
{
    size_t index = kv_slot_index(kv_client, (uint64_t)kv.window, pending->r);
    return (char *)wl_job.segments[pending->server] + (index + 1) * kv_slot;
}

/* First without waiting: a refusal means that credits or queue are used up, which is counted. */
static void send_record(uint32_t server, int handler, char *start, size_t size)
{
    kv_mine.wire_bytes += size + sizeof(gex_AM_Arg_t);
    if (gex_AM_RequestMedium(wl_job.tm, server, handlers[handler].gex_index, start, size,
                             GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, (gex_AM_Arg_t)kv_client)) {
        kv_mine.stalls++;
        gex_AM_RequestMedium(wl_job.tm, server, handlers[handler].gex_index, start, size,
                             GEX_EVENT_NOW, 0, (gex_AM_Arg_t)kv_client);
    }
}

void kv_send_medium(const struct kv_pending *pending)
{
    size_t image = image_of(pending);
    send_record(pending->server, at_medium, pending->image - image, image);
}

/* With --mget and --pack: the requests for a server that have not left yet. */
static struct pack {
    uint32_t count, first; /* the number of the first */
    size_t size;
    char *images;
} * packs;

static uint32_t pack_max(void)
{
    return (uint32_t)(kv.pack > kv.mget ? kv.pack : kv.mget);
}

static void open_packs(void)
{
    packs = calloc(kv_servers, sizeof(*packs));
    for (uint32_t server = 0; packs && server < kv_servers; server++) {
        packs[server].images = malloc(pack_max() * (kv.value_max + kv_layout.header_image));
        if (!packs[server].images)
            packs = NULL;
    }
    if (!packs)
        wl_job_die("no memory for requests that leave together");
}

static void close_packs(void)
{
    for (uint32_t server = 0; server < kv_servers; server++)
        free(packs[server].images);
    free(packs);
}

static void send_pack(uint32_t server)
{
    struct pack *pack = &packs[server];
    if (!pack->count)
        return;
    kv_mine.packs++;
    kv_mine.packed += pack->count;
    send_record(server, at_many, pack->images, pack->size);
    pack->count = 0;
    pack->size = 0;
}

/* In a pack also a GET has its length, which is 0. */
static void add_to_pack(struct pack *pack, const struct kv_pending *pending)
{
    size_t image = image_of(pending);
    size_t size = pending->op == kv_get ? kv_layout.header_image : image;
    char *end = pack->images + pack->size + size;
    memset(end - kv_layout.header_image, 0, kv_layout.header_image - kv_layout.get_image);
    memcpy(end - image, pending->image - image, image);
    pack->size += size;
    if (pack->count++ == 0)
        pack->first = pending->seq;
}

static bool is_in_pack(const struct kv_pending *pending)
{
    const struct pack *pack = &packs[pending->server];
    return pack->count > 0 && (int32_t)(pending->seq - pack->first) >= 0;
}

/* A PUT must not overtake the GETs before it. */
static void send_medium(struct kv_pending *pending)
{
    struct pack *pack = &packs[pending->server];
    if (pack_max() == 1 || (kv.pack == 1 && pending->op != kv_get)) {
        send_pack(pending->server);
        kv_send_medium(pending);
        return;
    }
    add_to_pack(pack, pending);
    if (pack->count == pack_max())
        send_pack(pending->server);
}

static void send_long(struct kv_pending *pending)
{
    size_t image = image_of(pending);
    char *start = pending->image - image, *there = slot_end(pending) - image;
    kv_mine.wire_bytes += image + sizeof(gex_AM_Arg_t);
    if (gex_AM_RequestLong(wl_job.tm, pending->server, handlers[at_long].gex_index, start, image,
                           there, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, (gex_AM_Arg_t)kv_client)) {
        kv_mine.stalls++;
        gex_AM_RequestLong(wl_job.tm, pending->server, handlers[at_long].gex_index, start, image,
                           there, GEX_EVENT_NOW, 0, (gex_AM_Arg_t)kv_client);
    }
}

/* Puts under way, oldest first; the message about each follows when it is complete. */
static struct {
    struct kv_pending *ring[kv_window_max];
    uint64_t first, end;
} flying;

static void tell(const struct kv_pending *pending)
{
    gex_AM_Index_t handler = handlers[at_short].gex_index;
    gex_AM_Arg_t client = (gex_AM_Arg_t)kv_client, image = (gex_AM_Arg_t)image_of(pending);
    gex_AM_Arg_t index = (gex_AM_Arg_t)kv_slot_index(kv_client, (uint64_t)kv.window, pending->r);
    kv_mine.wire_bytes += 3 * sizeof(gex_AM_Arg_t);
    if (gex_AM_RequestShort(wl_job.tm, pending->server, handler, GEX_FLAG_IMMEDIATE, client, index,
                            image)) {
        kv_mine.stalls++;
        gex_AM_RequestShort(wl_job.tm, pending->server, handler, 0, client, index, image);
    }
}

static void tell_of_puts(void)
{
    while (flying.first < flying.end) {
        struct kv_pending *pending = flying.ring[flying.first % kv_window_max];
        if (gex_Event_Test(pending->put) != GASNET_OK)
            return;
        pending->put_pending = false;
        flying.first++;
        tell(pending);
    }
}

static void start_put(struct kv_pending *pending)
{
    size_t image = image_of(pending);
    kv_mine.wire_bytes += image;
    pending->put = gex_RMA_PutNB(wl_job.tm, pending->server, slot_end(pending) - image,
                                 pending->image - image, image, GEX_EVENT_DEFER, 0);
    pending->put_pending = true;
    flying.ring[flying.end++ % kv_window_max] = pending;
    tell_of_puts();
}

/* The library may sleep while nothing comes. */
static void await(struct kv_pending *pending)
{
    static unsigned polls;
    GASNET_BLOCKUNTIL(pending->answered || wl_stopped() || ++polls % 64 == 0);
}

/* Puts need progress calls, so it may sleep only while no put is under way. */
static void await_put(struct kv_pending *pending)
{
    tell_of_puts();
    if (pending->put_pending)
        gasnet_AMPoll();
    else if (!pending->answered)
        await(pending);
}

/* The first part of a multi-get waits for the rest while sent requests are outstanding: otherwise,
 * if answers came one by one, every GET would leave alone, permanently. */
static void await_packed(struct kv_pending *pending)
{
    bool holds = kv.pack == 1 && kv_client_gathers() && !is_in_pack(pending);
    for (uint32_t server = 0; pack_max() > 1 && !holds && server < kv_servers; server++)
        send_pack(server);
    if (!pending->answered)
        await(pending);
}

const struct kv_transport kv_am_medium = {.name = "am-medium",
                                          .open = open_packs,
                                          .close = close_packs,
                                          .reply = kv_send_reply,
                                          .request = send_medium,
                                          .await = await_packed};
const struct kv_transport kv_am_long = {
    .name = "am-long", .reply = kv_send_reply, .slots = true, .request = send_long, .await = await};
const struct kv_transport kv_put_am = {.name = "put-am",
                                       .reply = kv_send_reply,
                                       .slots = true,
                                       .request = start_put,
                                       .await = await_put};
