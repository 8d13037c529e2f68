/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first bytes of a message on the wire, and what packs and unpacks them: the head, the head as
 * one number, and the tag, which is the head of a Short in 16 bits. Fast paths use the numbers,
 * because a head in registers needs no stores. No state. */
#ifndef TK_MESSAGE_HEAD_H
#define TK_MESSAGE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/platform.h"

enum tk_message_kind {
    TK_REQUEST, /* takes a credit; answered by a REPLY, an ACK or, later, a credit on another
                   message */
    TK_REPLY, /* gives the credit back; uses the buffer that the requester posted before it sent */
    TK_ACK,   /* as REPLY, without a handler */
    TK_CONTROL, /* at most one in each direction per job (exit notice); it has a receive buffer of
                   its own */
    TK_BOUNDED, /* a request without a reply, of a protocol that bounds how many are in flight to a
                   rank: tk_leaders_messages_max(). It takes no credit where shared receive queues
                   have buffers for all of them, and is a REQUEST elsewhere */
    /* Between transports: never delivered to the rooms above */
    TK_NOTICE,
    TK_LOAN,      /* verbs/data/credit_loan_messages.c */
    TK_GREETING,  /* verbs/cm/iwarp_first_send.c */
    TK_RENDEZVOUS /* verbs/data/rendezvous.h */
};

enum tk_message_category { TK_SHORT, TK_MEDIUM, TK_LONG };

enum {
    tk_max_args = 16,
    /* Bytes, header included: the manual's MaxMedium (--with-ibv-max-medium). */
    tk_message_max = TK_MAX_MEDIUM
};

/* The first bytes of every message on the wire; arguments (int32_t each) follow, then, at a
 * multiple of 8 bytes, the payload. Byte order is the host's: a job runs on one architecture. A
 * Medium costs 8 + 4*nargs, rounded up to 8. */
struct tk_message_head {
    uint8_t kind;
    uint8_t handler;
    uint8_t nargs;
    uint8_t credits; /* returned with this message; used by the transport only */
    uint8_t category;
    uint8_t packed; /* Long: the payload follows; otherwise it was put before */
    uint16_t reserved;
};

/* A head as one number, its first byte the lowest. The order of the members is chosen so that few
 * instructions convert a tag (below) to a head and back. */
enum {
    tk_head_handler_shift = 8,
    tk_head_nargs_shift = 16,
    tk_head_credits_shift = 24,
    tk_head_category_shift = 32,
    tk_head_reserved_shift = 48
};

static inline uint64_t tk_head_number(const struct tk_message_head *head)
{
    uint64_t number;
    memcpy(&number, head, sizeof(number));
    return TK_IS_BIG_ENDIAN ? __builtin_bswap64(number) : number;
}

/* The head of a client's Medium. */
static inline uint64_t tk_head_of_medium(enum tk_message_kind kind, uint8_t handler, unsigned nargs)
{
    return (uint64_t)TK_MEDIUM << tk_head_category_shift |
           (nargs << tk_head_nargs_shift | (unsigned)handler << tk_head_handler_shift |
            (unsigned)kind);
}

static inline uint8_t tk_head_handler(uint64_t head)
{
    return (uint8_t)(head >> tk_head_handler_shift);
}

static inline bool tk_head_is_reply(uint64_t head)
{
    return head & TK_REPLY;
}

static inline unsigned tk_head_nargs(uint64_t head)
{
    return head >> tk_head_nargs_shift & UINT8_MAX;
}

static inline struct tk_message_head tk_head_of_number(uint64_t number)
{
    struct tk_message_head head;
    number = TK_IS_BIG_ENDIAN ? __builtin_bswap64(number) : number;
    memcpy(&head, &number, sizeof(head));
    return head;
}

/* In front of the arguments of a Long. */
struct tk_long_head {
    uint64_t dest;
    uint32_t nbytes;
    uint32_t reserved;
};

enum {
    tk_message_head_max =
        sizeof(struct tk_message_head) + sizeof(struct tk_long_head) + 4 * tk_max_args
};

/* A whole message without payload, as it travels. */
struct tk_short {
    struct tk_message_head head;
    int32_t args[tk_max_args];
};

/* The head of a Short in 16 bits, for transports that have no more space: the highest bit is 1,
 * then the kind, the number of arguments and the handler. */
enum {
    tk_tag_bit = 0x8000,
    tk_tag_reply = 0x1000,
    tk_tag_args_shift = 8,
    tk_tag_args_max = 15,
    tk_tag_handler = 0xff
};

static inline unsigned tk_tag(bool is_reply, unsigned nargs, uint8_t handler)
{
    return tk_tag_bit | (is_reply ? tk_tag_reply : 0u) | nargs << tk_tag_args_shift | handler;
}

static inline unsigned tk_tag_nargs(unsigned tag)
{
    return tag >> tk_tag_args_shift & tk_tag_args_max;
}

enum {
    /* Handler and number of arguments. In a head they are this many bits higher, above the kind. */
    tk_tag_call = tk_tag_handler | tk_tag_args_max << tk_tag_args_shift,
    tk_tag_reply_shift = 12,
    tk_handler_of_client =
        0x80 /* GEX_AM_INDEX_BASE: handlers of the library do not have this bit */
};
_Static_assert(TK_REQUEST == 0 && TK_REPLY == 1 && TK_SHORT == 0 &&
                   1 << tk_tag_reply_shift == (int)tk_tag_reply &&
                   (int)tk_head_nargs_shift == tk_head_handler_shift + (int)tk_tag_args_shift,
               "a head is the bits of a tag in other places");

static inline struct tk_message_head tk_tag_head(unsigned tag)
{
    return tk_head_of_number((tag & tk_tag_call) << tk_head_handler_shift |
                             (tag >> tk_tag_reply_shift & TK_REPLY));
}

/* Is it the head of a Short for a client's handler? A tag expresses all of that except the
 * credits. */
static inline bool tk_head_has_tag(uint64_t head)
{
    const uint64_t credits = (uint64_t)UINT8_MAX << tk_head_credits_shift;
    const uint64_t call = tk_tag_call & ~(unsigned)tk_handler_of_client;
    return (head & ~(credits | call << tk_head_handler_shift | TK_REPLY)) ==
           tk_handler_of_client << tk_head_handler_shift;
}

/* Is it what tk_head_of_medium() makes? */
static inline bool tk_head_is_medium(uint64_t head)
{
    const uint64_t free = (uint64_t)UINT8_MAX << tk_head_nargs_shift |
                          (uint64_t)INT8_MAX << tk_head_handler_shift | TK_REPLY;
    return (head & ~free) == tk_head_of_medium(TK_REQUEST, tk_handler_of_client, 0);
}

/* For a head that has a tag: handler and number of arguments are adjacent in memory and form one
 * number. */
_Static_assert(offsetof(struct tk_message_head, handler) + 1 ==
                       offsetof(struct tk_message_head, nargs) &&
                   (int)tk_tag_args_shift == 8,
               "they stand as in a tag");
static inline unsigned tk_head_tag(const struct tk_message_head *head)
{
    uint16_t call;
    memcpy(&call, (const char *)head + offsetof(struct tk_message_head, handler), sizeof(call));
    call = TK_IS_BIG_ENDIAN ? __builtin_bswap16(call) : call;
    return tk_tag_bit + ((unsigned)head->kind << tk_tag_reply_shift) + call;
}

/* Where the payload of a message begins. */
static inline size_t tk_message_front(bool is_long, unsigned nargs)
{
    return tk_align_up(sizeof(struct tk_message_head) +
                           (is_long ? sizeof(struct tk_long_head) : 0) + 4u * nargs,
                       8);
}

static inline size_t tk_short_size(unsigned nargs)
{
    return tk_message_front(false, nargs);
}

static inline void tk_short_build(struct tk_short *at, struct tk_message_head head,
                                  const int32_t *args)
{
    at->head = head;
    unsigned nargs = at->head.nargs;
    for (unsigned i = 0; i < nargs; i++)
        at->args[i] = args[i];
    if (nargs & 1)
        at->args[nargs] = 0; /* padding must not carry stack contents to others */
}

#endif
