/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload kv as a job: ranks 0..S-1 are servers, the others clients. Shared by its files: the
 * parameters, the state of the current run, the two roles and the table of transports. */
#ifndef KV_KV_H
#define KV_KV_H

#include "clock.h"
#include "draw.h"
#include "histogram.h"
#include "inject.h"
#include "job.h"
#include "pipeline.h"
#include "record.h"
#include "store.h"
#include "value.h"

enum { kv_window_max = 256, kv_first_max = 160, kv_transports_max = 16 };

struct kv_values {
    struct wl_common common;
    int64_t servers, window, put, remove, keys, ops, store, buckets, log, inplace;
    int64_t preload, socket, mget, scan, order, key, compat, pack;
    int64_t ws_server, s_depth, q_depth, cl_batch, cl_semi, fail_lim, postlist; /* raw */
    int64_t uc, use_inline, pipeline, backoff, probe, ports, ud, notify;
    const char *transport, *value, *dist, *ycsb, *save, *load;
    /* derived by relations.c */
    size_t value_min, value_max;
    struct kv_draw draw;
    struct kv_mix mix;
    struct wl_injection injection;
    bool chosen[kv_transports_max]; /* by place in kv_transports */
};
extern struct kv_values kv;
extern const struct wl_program kv_program;
extern const struct wl_fault kv_faults[];
bool kv_related(void *values, uint64_t given, char *why, size_t size);

enum { kv_preload_client, kv_preload_server, kv_preload_none };
enum { kv_loopback, kv_unix };
enum { kv_oldest, kv_any };
enum { kv_auto, kv_on, kv_off };
enum { kv_ud_server, kv_ud_shared };
enum { kv_notify_poll, kv_notify_imm, kv_notify_auto };

/* Places in the table of faults */
enum kv_fault {
    kv_drop_answer,
    kv_dup_answer,
    kv_swap_answers,
    kv_flip_bit,
    kv_dup_request,
    kv_lose_request,
    kv_stale_len,
    kv_wrong_server,
    kv_keep_mark,
    kv_poll_early,
    kv_newer_first,
    kv_starve,
    kv_starve_server,
    kv_lost_put,
    kv_half_entry,
    kv_flip_entry,
    kv_skew,
    kv_wrong_hello,
    kv_faults_end
};

/* ---- Checks: how often each failed, and where first */

enum kv_check {
    kv_k1,
    kv_k3,
    kv_k4,
    kv_k5,
    kv_k6,
    kv_k7,
    kv_k8,
    kv_k9,
    kv_k10,
    kv_k15,
    kv_k16,
    kv_k17,
    kv_k18,
    kv_k19,
    kv_checks
};
extern const char *const kv_check_names[kv_checks];

struct kv_verdict {
    uint64_t failures;
    char first[kv_first_max];
};

enum { kv_intervals_max = 64, kv_shares_max = 64 };

/* The result of a rank in one run; sent to rank 0 unchanged. */
struct kv_outcome {
    uint64_t intervals[kv_intervals_max]; /* requests served, or answers taken, in each */
    struct kv_verdict verdicts[kv_checks];
    uint64_t issued[3], answered[3]; /* by enum kv_op; servers: answered is what they served */
    uint64_t measured[3], hits, misses, lost, unsure, refused; /* clients, lost: surely put */
    uint64_t measured_ns, cpu_ns, stalls, reordered;
    uint64_t load_ns;                /* of the phase before */
    uint64_t posts, inlined;         /* raw: sends, and those that went along with their request */
    uint64_t wire_bytes;             /* handed over for sending, both ways; without headers */
    uint64_t reads, torn, looked;    /* get: reads, torn ones among them, GETs that they answered */
    uint64_t packs, packed;          /* am-medium: messages with a multi-get, GETs in them */
    uint64_t doorbells, cqes;        /* raw */
    uint64_t lists, listed;          /* posts of sends, and work requests in them */
    uint64_t polls, pushes, dummies; /* raw servers */
    uint64_t drawn[kv_actions];      /* clients: by what was to be done */
    uint64_t to_server[kv_shares_max]; /* clients: of what was read, by server */
    uint64_t receives_min; /* raw: posted at the emptiest moment; UINT64_MAX: no receives */
    uint64_t digest, results;
    struct kv_counts counts;
    double load;
    struct wl_histogram gets, puts;
};
extern struct kv_outcome kv_mine;

/* Counts a failure of this rank; the message of the first one is kept. */
void kv_fail(enum kv_check check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Roles */

extern uint32_t kv_servers, kv_clients, kv_client; /* kv_client: this rank's number, clients only */
extern size_t kv_slot;                             /* bytes of a slot */

static inline bool kv_is_server(void)
{
    return wl_job.me < kv_servers;
}

/* Bytes of a rank's segment that others write: at servers the slots of all clients, at clients
 * those of all servers. The images of a client's own requests follow. */
static inline size_t kv_area(void)
{
    return (kv_clients > kv_servers ? kv_clients : kv_servers) * (size_t)kv.window * kv_slot;
}

/* Then a client's buffers for datagrams, whole lines with 40 bytes of header each: a device may
 * reach memory in the segment more cheaply. */
enum { kv_grh = 40 };

static inline size_t kv_buffer_size(void)
{
    return (kv_grh + kv.value_max + kv_answer_image + kv_line - 1) / kv_line * kv_line;
}

static inline size_t kv_buffers(void)
{
    return (kv_area() + (size_t)kv.window * kv_slot + kv_line - 1) / kv_line * kv_line;
}

/* Queue pairs of a client for datagrams. */
static inline uint32_t kv_ud_count(void)
{
    return kv.ud == kv_ud_shared ? 1 : kv_servers;
}

/* Then, at the same offset everywhere, the memory that get reads, and reads into: see get.c. */
static inline size_t kv_store_at(void)
{
    enum { page = 4096 };
    size_t buffers = kv_ud_count() * (size_t)kv.cl_batch * kv_buffer_size();
    return (kv_buffers() + buffers + page - 1) / page * page;
}
size_t kv_get_room(bool server);

/* Nanoseconds of an interval of the report: a tenth of a second, or more if there are too many. */
static inline uint64_t kv_interval(void)
{
    uint64_t all = (uint64_t)((kv.common.warmup + kv.common.duration) * 1e9);
    uint64_t least = WL_SECOND / 10, fits = all / (kv_intervals_max - 1);
    return fits > least ? fits : least;
}

/* A run: open, preload, serve or request, close. Collective parts are between them, in kv.c. */
void kv_server_open(void);
void kv_server_preload(void);
uint32_t kv_server_load(void); /* the highest version that was returned */
void kv_server_run(void);
void kv_server_close(void);
struct kv_store_options kv_store_wanted(void);

void kv_client_open(uint32_t loaded_version);
void kv_client_preload(void);
void kv_client_run(void);
void kv_client_close(void);
bool kv_client_gathers(void); /* more of a multi-get follows */

/* ---- Transports: all in one table, raw, API and sockets */

/* A request in a client's window. */
struct kv_pending {
    bool waiting, answered, twice;
    enum kv_op op;
    uint32_t server, seq, version, least_version; /* least: the minimum version that a GET must
                                                   * see */
    uint64_t r, number, posted;
    bool sure; /* a GET of a key that certainly exists */
    bool rmw;  /* an update of the same key follows */
    struct kv_hash hash;
    struct kv_key key;
    size_t len; /* PUT: of the value */
    enum kv_status status;
    size_t answer_len;
    gex_Event_t put; /* put-am: no message may announce it until it is complete */
    bool put_pending;
    char *image;  /* end of the record, in this rank's segment */
    char *answer; /* space for the longest value; separate, so that a new request need not clear
                   * it */
};

struct kv_reply {
    uint32_t client, seq;
    enum kv_op op; /* of the request */
    enum kv_status status;
    size_t len;
    char value[kv_value_max];
};

enum kv_way { kv_way_api, kv_way_raw, kv_way_tcp };

/* Pointers may be NULL if there is nothing to do. */
struct kv_transport {
    const char *name;
    enum kv_way way;
    bool slots;         /* requests lie in slots of the server's segment, and it clears them */
    bool reads;         /* GETs are reads of the server's memory, unknown to the server */
    void (*open)(void); /* collective, as is close */
    void (*close)(void);
    void (*request)(struct kv_pending *pending);
    void (*await)(struct kv_pending *pending);   /* one look for answers, or a short sleep */
    void (*reply)(const struct kv_reply *reply); /* outside of handlers */
    void (*serve)(void);                      /* one step of a server; NULL: handlers do it all */
    void (*account)(struct kv_outcome *mine); /* a foreign server's counters and CPU time */
};
extern const struct kv_transport *const kv_transports[]; /* ends with NULL */
extern const struct kv_transport kv_am_medium, kv_am_long, kv_put_am, kv_get_put;
extern const struct kv_transport kv_memcached, kv_redis;
extern const struct kv_transport kv_write_send, kv_write_write, kv_write_imm, kv_send_send;
extern const struct kv_transport *kv_transport; /* of the present run */
void kv_api_handlers(void);

/* The requested one, NULL if there are several. */
const struct kv_transport *kv_only_transport(void);

/* Why a requirement is missing (the server program, a port); NULL: nothing is missing. */
bool kv_tcp_missing(const struct kv_transport *transport, char *why, size_t size);
bool kv_raw_polls(void); /* the present raw transport: slots, no completions */
bool kv_raw_missing(char *why, size_t size);
bool kv_raw_unfit(char *why, size_t size); /* whether a device does not allow the request */

/* Called by transports: a request that lies in front of `end` came, of `image` bytes; and an
 * answer. `slot`: the record is in a slot, which is cleared for the next. False: not a request.
 * After true, kv_server_finish() serves the request and makes the answer; if that returns false, no
 * answer is sent now. */
bool kv_server_accept(uint32_t client, char *end, size_t image, bool slot, struct kv_item *item);
bool kv_server_finish(const struct kv_item *item, struct kv_reply *reply);

/* All three. */
bool kv_server_take(uint32_t client, char *end, size_t image, bool slot, struct kv_reply *reply);

struct kv_store *kv_server_store(void);
bool kv_server_fault(enum kv_fault fault); /* whether this is its occasion */
void kv_client_done(void);                 /* at the server: a client has finished */
void kv_client_take(uint32_t server, uint32_t seq, enum kv_status status, const void *value,
                    size_t len);
void kv_send_done(uint32_t server);

/* Findings of a client itself. */
void kv_client_answer(struct kv_pending *pending, enum kv_status status, const void *value,
                      size_t len);

/* --compat: an answer names a slot only. */
uint32_t kv_client_seq(uint32_t server, uint32_t slot);

/* Of am-medium, for get. */
void kv_send_medium(const struct kv_pending *pending);
void kv_send_reply(const struct kv_reply *reply);

/* Adds up the operations of a rank by intervals: `total` since kv_ticks_start(). */
void kv_ticks_start(uint64_t now, uint64_t total);
bool kv_tick_due(uint64_t now);
void kv_tick(uint64_t now, uint64_t total);
void kv_ticks_end(uint64_t total); /* the last one was shorter */

/* How a server learns of requests: "polling", "completions", "messages", "sockets". */
const char *kv_notified_by(void);

/* Rank 0: adds a run to the report; `all` are the outcomes of all ranks. */
void kv_report(struct wl_report *report, const struct kv_outcome *all);

#endif
