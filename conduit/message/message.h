/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages: building, sending, delivering to handlers. Thread-safe in PAR. */
#ifndef TK_MESSAGE_H
#define TK_MESSAGE_H

#include "gasnetex.h"
#include "peer/peer.h"
#include "transport/transport.h"

/* The token of a client's handler. */
struct trunkline_token {
    struct tk_arrival arrival;
};

static inline struct tk_message_head tk_token_head(const struct trunkline_token *token)
{
    return token->arrival.tag ? tk_tag_head(token->arrival.tag) : *token->arrival.head;
}

/* A message as a client requested it. */
struct tk_message {
    struct tk_peer *peer;
    uint8_t category; /* enum tk_message_category */
    uint8_t handler;
    const void *payload;
    size_t nbytes;
    void *dest;          /* Long */
    gex_Event_t *lc_opt; /* Medium, Long: GEX_EVENT_NOW, _GROUP or where to store an event */
    bool immediate;
    unsigned nargs;
    const gex_AM_Arg_t *args;
};

/* Indices of the library's own handlers, below GEX_AM_INDEX_BASE. Most handle Shorts, and may send
 * nothing. */
enum tk_internal_handler {
    TK_HANDLER_BARRIER = 1,
    TK_HANDLER_EXIT,
    TK_HANDLER_AGREE,
    TK_HANDLER_ELECT,
    TK_HANDLER_NAMED,
    TK_HANDLER_REMOTE_ASK,
    TK_HANDLER_REMOTE_ANSWER,
    TK_HANDLER_EXCHANGE,
    TK_HANDLER_ATOMIC,
    TK_HANDLER_ATOMIC_DONE,
    TK_HANDLER_ATOMIC_CONNECT,
    TK_HANDLER_VECTOR_ASK,
    TK_HANDLER_VECTOR_ANSWER,
    TK_HANDLER_COLL,
    TK_HANDLER_MCAST,
    TK_HANDLER_CLOCKS_ASK,
    TK_HANDLER_CLOCKS_ANSWER,
    TK_HANDLER_KIND_ASK,
    TK_HANDLER_KIND_ANSWER,
    tk_internal_handlers,
    tk_handler_endpoint = 64 /* the first of tk_endpoints_max: message/endpoint.h */
};
typedef void (*tk_internal_fn)(struct tk_peer *from, const int32_t *args);

/* Sets the delivery functions that transports call. Before any message arrives. */
void tk_message_open(void);
void tk_internal_register(enum tk_internal_handler index, tk_internal_fn fn);

/* For Mediums; the handler may reply. */
typedef void (*tk_internal_whole_fn)(struct tk_arrival *arrival);
void tk_internal_register_whole(enum tk_internal_handler index, tk_internal_whole_fn fn);

/* 0, or 1 if nothing was sent (immediate only). */
int tk_request(struct tk_message *message);
int tk_reply(gex_Token_t token, struct tk_message *message);

/* A Long with GEX_EVENT_NOW of GASNET_LONG_PUT_MIN bytes or more: sends it if it lies in the
 * segment, the peer's transport posts both parts at once, and sources are lent. False: nothing was
 * done. */
bool tk_long_direct(const struct tk_message *message, enum tk_message_kind kind);

/* The message of a Long whose payload is in its place by now. TK_BUSY: the transport has no space.
 * It is counted when it is sent. */
enum tk_status tk_message_send_placed(const struct tk_message *m, enum tk_message_kind kind);

/* Sends a Short to a handler of the library; TK_BUSY if the transport has no space now. */
enum tk_status tk_internal_send(struct tk_peer *peer, enum tk_message_kind kind,
                                enum tk_internal_handler handler, unsigned nargs,
                                const int32_t *args);

/* A Medium to such a handler: a request returns TK_BUSY if the transport has no space now; a reply
 * waits for space. The payload is copied. */
struct tk_internal_medium {
    enum tk_internal_handler handler;
    unsigned nargs;
    const int32_t *args;
    const void *payload;
    size_t nbytes;
};
enum tk_status tk_internal_request(struct tk_peer *peer, const struct tk_internal_medium *medium);
void tk_internal_reply(struct tk_arrival *to, const struct tk_internal_medium *medium);

/* prepare.c. The same in two steps: the caller writes the payload where it is sent from, at
 * *payload (aligned to 16 bytes, tk_medium_max(nargs) long), and passes it to the second step. The
 * reservation holds peer and kind. A request returns TK_BUSY if there is no space now; a reply
 * waits. */
enum tk_status tk_internal_prepare(struct tk_am_reservation *reservation, unsigned nargs,
                                   char **payload);
void tk_internal_commit(struct tk_am_reservation *reservation,
                        const struct tk_internal_medium *medium);

/* Largest payloads with `nargs` arguments; for a Long also the largest that fits into the message
 * beside its head. */
size_t tk_medium_max(unsigned nargs);
size_t tk_long_max(void);
size_t tk_long_packed_max(unsigned nargs);

/* prepare.c. A prepared message, before its payload, handler and arguments are known. Each thread
 * has one for a request and one for a reply, which it does not share. */
struct trunkline_srcdesc {
    struct tk_am_reservation reservation;
    struct tk_arrival *arrival; /* reply: the request it answers */
    void *address;              /* where the payload will be */
    size_t size;                /* its maximum size */
    void *dest;
    gex_Event_t *lc_opt;
    unsigned nargs;
    uint8_t category;
    bool open; /* prepared, not committed */
};

/* `m` holds peer, category, payload (NULL: provide a buffer), dest, lc_opt, immediate and nargs.
 * Returns GEX_AM_SRCDESC_NO_OP if it is immediate and the transport has no space. */
gex_AM_SrcDesc_t tk_prepare_request(const struct tk_message *m, size_t nbytes_max);
gex_AM_SrcDesc_t tk_prepare_reply(gex_Token_t token, struct tk_message *m, size_t nbytes_max);

/* `m` adds handler, nbytes, dest and args. Never fails. */
void tk_commit(gex_AM_SrcDesc_t sd, struct tk_message *m);
/* The same without a poll or a wait for others. TK_BUSY: nothing was sent, and the descriptor is as
 * it was before. */
enum tk_status tk_commit_at_once(gex_AM_SrcDesc_t sd, struct tk_message *m);
void tk_cancel(gex_AM_SrcDesc_t sd);

/* Pattern in provided buffers, for debug builds (GASNET_SD_INIT*). Open once at start-up, in all
 * builds. Afterwards any thread. */
void tk_pattern_open(void);
void tk_pattern_fill(void *buffer, size_t size);

/* Whether the beginning of the buffer still holds the pattern of tk_pattern_fill(). False below 8
 * bytes. */
bool tk_pattern_is_left(const void *buffer, size_t size);

/* The request (or reply) that this thread has prepared, and neither committed nor cancelled; NULL:
 * none. */
const struct trunkline_srcdesc *tk_prepared(enum tk_message_kind kind);
static inline bool tk_is_preparing(enum tk_message_kind kind)
{
    return tk_prepared(kind) != NULL;
}

/* handlers.c. An entry with an unknown number of arguments has tk_nargs_any. The first of the two
 * register functions checks the entries; the other accepts any, and names `call` in its errors. */
enum { tk_nargs_any = 255 };
const char *tk_entry_name(const gex_AM_Entry_t *entry);
int tk_handlers_register(unsigned endpoint, gex_AM_Entry_t *table, size_t count);
int tk_handlers_enter(const char *call, gex_AM_Entry_t *table, size_t count);

/* The entry registered under an index, or NULL. A look-up takes no lock. Functions for Shorts and
 * for messages with payload are in separate tables, so that a message of the other kind finds none
 * without a test on the fast path. */
enum { tk_handler_count = 256 };
extern TK_HIDDEN gex_AM_Entry_t tk_handler_entries[tk_handler_count];
extern TK_HIDDEN gex_AM_Fn_t tk_short_functions[tk_handler_count];
extern TK_HIDDEN gex_AM_Fn_t tk_payload_functions[tk_handler_count];
static inline gex_AM_Fn_t tk_short_function(uint8_t index)
{
    return __atomic_load_n(&tk_short_functions[index], __ATOMIC_ACQUIRE);
}

static inline gex_AM_Fn_t tk_payload_function(uint8_t index)
{
    return __atomic_load_n(&tk_payload_functions[index], __ATOMIC_ACQUIRE);
}

/* The handlers of an endpoint: the tables above for endpoint 0. NULL: it has never had any. */
struct tk_handler_table {
    gex_AM_Entry_t *entries;
    gex_AM_Fn_t *shorts, *payloads;
};
const struct tk_handler_table *tk_handler_table(unsigned endpoint);

static inline gex_AM_Fn_t tk_table_function(const struct tk_handler_table *table, bool is_short,
                                            uint8_t index)
{
    return __atomic_load_n(&(is_short ? table->shorts : table->payloads)[index], __ATOMIC_ACQUIRE);
}

static inline const gex_AM_Entry_t *tk_handler_entry(unsigned endpoint, uint8_t index)
{
    const struct tk_handler_table *table = tk_handler_table(endpoint);
    bool is_there =
        table && (tk_table_function(table, true, index) || tk_table_function(table, false, index));
    return is_there ? &table->entries[index] : NULL;
}

/* Permanent: messages for client handlers that still arrive are dropped. Running handlers continue.
 * Any thread. */
void tk_handlers_shut(void);
bool tk_handlers_are_shut(void);

/* hsl.c. Number of gex_HSL_t that this thread holds; 0 unless it is a debug build. */
unsigned tk_hsls_held(void);

#endif
