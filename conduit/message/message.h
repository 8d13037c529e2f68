/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages: building, sending, delivering to handlers. Thread-safe in PAR. */
#ifndef TK_MESSAGE_H
#define TK_MESSAGE_H

#include "gasnetex.h"
#include "peer/peer.h"
#include "transport/transport.h"

struct trunkline_token {
    struct tk_arrival *arrival;
    const gex_AM_Entry_t *entry; /* NULL: a handler of the library's own */
};

/* What a client asked to be sent. */
struct tk_message {
    struct tk_peer *peer;
    uint8_t category; /* enum tk_message_category */
    uint8_t handler;
    const void *payload;
    size_t nbytes;
    void *dest;          /* Long */
    gex_Event_t *lc_opt; /* Medium, Long: GEX_EVENT_NOW or where to store an event */
    bool immediate;
    unsigned nargs;
    const gex_AM_Arg_t *args;
};

/* Handlers of the library's own: below GEX_AM_INDEX_BASE. They are Short, and may send nothing. */
enum tk_internal_handler {
    TK_HANDLER_BARRIER = 1,
    TK_HANDLER_EXIT,
    TK_HANDLER_NAMED,
    tk_internal_handlers
};
typedef void (*tk_internal_fn)(struct tk_peer *from, const int32_t *args);

/* Sets the way up from transports. Before anything arrives. */
void tk_message_open(void);
void tk_internal_register(enum tk_internal_handler index, tk_internal_fn fn);

/* 0, or 1 when nothing was sent (immediate only). */
int tk_request(struct tk_message *message);
int tk_reply(gex_Token_t token, struct tk_message *message);

/* A Short to a handler of the library's own; TK_BUSY when there is no room now. */
enum tk_status tk_internal_send(struct tk_peer *peer, enum tk_message_kind kind,
                                enum tk_internal_handler handler, unsigned nargs,
                                const int32_t *args);

/* Largest payloads with `nargs` arguments. */
size_t tk_medium_max(unsigned nargs);
size_t tk_long_max(void);

/* handlers.c */
int tk_handlers_register(gex_AM_Entry_t *table, size_t count);
const gex_AM_Entry_t *tk_handler_entry(uint8_t index);

#endif
