/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring of messages in the receiver's shared memory: many senders (threads of several processes),
 * one receiving process. It knows nothing of peers: the user provides the memory and a number that
 * names the sender. The hot path is here, the rare cases are in ring.c and ring_send.c.
 *
 * Positions: one word counts all slots and payload lines that were ever taken. Senders advance
 * `tail` with one compare-and-swap, which reserves both; the receiver advances its own `taken`, and
 * `head` when it gives space back. One store of a slot's word publishes the slot. The receiver
 * never writes to it, so its cache line keeps one owner. The count in the word tells the laps
 * apart, and only counts are ever stored there.
 *
 * Ordering: publishing releases the message and reading the word acquires it; storing `head`
 * releases the space and reading it acquires it. All else is relaxed. PAR has two locks, which are
 * only tried: one for the few instructions in which a thread takes a message (so an empty poll
 * reads two words to find where to look, as in SEQ), and one for giving space back. */
#ifndef TK_RING_H
#define TK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/copy.h"
#include "base/lock.h"
#include "base/mode.h"
#include "base/status.h"
#include "transport/shm/ring_queue.h"

enum {
    tk_ring_line = 64,
    tk_ring_slot_max = tk_ring_line - 8, /* bytes of a message that fit its slot */
    tk_ring_slots_max = 8192,
    tk_ring_lines_max = 32768,
    /* Lines take 24 bits of a position, slots 40. A sender that slept must not mistake an old
     * `head` for a new one: 2^40 messages last more than a day at full rate, 2^32 would last
     * minutes. Lines may wrap sooner: they are compared only when slots are less than a lap apart,
     * and tk_ring_message_max() keeps a lap of messages below 2^24 lines. */
    tk_ring_line_bits = 24
};

#define TK_RING_SLOT  (UINT64_C(1) << tk_ring_line_bits)
#define TK_RING_LINES (TK_RING_SLOT - 1)

/* Word of a slot: low 32 bits: its position plus 1; then 16 bits: the sender; then 16 bits: the
 * number of bytes. A number above tk_ring_slot_max means tk_ring_slot_max + lines, and `blob`
 * begins with a struct tk_ring_note. If the highest bit is set they are a tag, whose meaning the
 * sender chooses, and the whole slot belongs to it. */
struct tk_ring_slot {
    _Alignas(tk_ring_line) _Atomic uint64_t word;
    char blob[tk_ring_slot_max];
};

/* In front of a message that is larger than its slot. The head stays in the slot if it fits behind
 * this, so the receiver need not touch the lines of the payload before the handler does. With the
 * head in the first line, each message had that line fetched from the sender's cache, and a lap
 * later the sender had to fetch it back before any later store could commit: one cache miss per
 * message. The payload also begins at a line, where copies are fastest. */
struct tk_ring_note {
    uint32_t nbytes; /* in the lines */
    uint32_t head;   /* bytes in the slot behind this; 0: the head is in the lines */
};

enum { tk_ring_head_max = tk_ring_slot_max - sizeof(struct tk_ring_note) };

/* What lies in shared memory. */
struct tk_ring_shared {
    _Alignas(tk_ring_line) _Atomic uint64_t tail; /* written by senders */
    _Alignas(tk_ring_line) _Atomic uint64_t head; /* written by the receiver, after each eighth */
    struct tk_ring_slot slots[];
};

/* A sender's handle; threads of one process may share it. */
struct tk_ring_out {
    struct tk_ring_shared *shared;
    char *payload;
    uint64_t mask;  /* of a slot's offset in the array */
    uint64_t limit; /* slots, as part of a position */
    uint64_t from;  /* as part of a slot's word */
    uint64_t lines;
    /* The head when the ring last looked full, less what is kept for queued threads: to the others
     * the ring then looks full sooner, at no cost. */
    _Atomic uint64_t head;
    struct tk_ring_queue queue;
};

/* The receiver's handle. */
struct tk_ring_in {
    TK_UNLOCKED uintptr_t next; /* the slot at `taken`, */
    TK_UNLOCKED uint32_t seq;   /* and the count in its word when it is published */
    _Atomic bool behind;        /* PAR: an eighth or more may be ready to be given back */
    tk_lock_t taking;           /* guards next, seq and taken */
    _Atomic uint64_t taken;     /* messages before this are taken */
    _Atomic uint64_t finished;  /* PAR: messages before this are finished; a lower bound */
    _Atomic uint64_t retired;   /* space before this is given back: equal to shared->head */
    struct tk_ring_shared *shared;
    char *payload;
    uint64_t mask; /* of a slot's offset in the array */
    uint64_t lines;
    uint64_t places;        /* slots - 1 */
    uint64_t within;        /* bits of a position that are 0 where an eighth of the slots ends */
    uint64_t due;           /* bits of a position that change where an eighth ends */
    uint64_t lines_most;    /* the most lines of a message */
    _Atomic uint64_t *done; /* PAR, for each slot: the position behind its message, if that was
                               finished before an earlier one */
    tk_lock_t lock;         /* guards retired and shared->head */
};

/* A message taken. blob == NULL: the slot's word is malformed, and `from` wrote it. */
struct tk_ring_item {
    char *blob; /* in place, at a multiple of 8: the whole message, or its head alone */
    size_t nbytes;
    char *rest; /* the payload, if it is not behind the head: in place, at a line; NULL: none */
    size_t rest_size;
    unsigned from;
    unsigned tag;        /* 0: none */
    uint64_t start, end; /* positions; the ring's own */
};

/* ---- Sizes ---- */

/* Both powers of two, slots >= 2; lines >= 8 and a multiple of a page, because the payload is
 * mapped twice in a row: the caller ensures that. */
bool tk_ring_legal(uint64_t slots, uint64_t lines);

/* Bytes of struct tk_ring_shared with its slots: a multiple of 64. The payload has lines * 64 bytes
 * elsewhere. */
size_t tk_ring_bytes(uint32_t slots);

/* Private bytes for a ring that several threads empty; 0 if only one thread does. */
static inline size_t tk_ring_done_bytes(uint32_t slots, bool is_threaded)
{
    return is_threaded ? slots * sizeof(_Atomic uint64_t) : 0;
}

/* Bytes of the largest message that fits any ring at rest. Senders keep to it. */
size_t tk_ring_message_max(uint32_t slots, uint32_t lines);

/* ---- Opening ---- */

/* Makes a ring of memory at a multiple of 64, before other processes see it. `start` is the
 * position at which counts begin: 0, for which zeroed memory is a valid ring already; tests use
 * others. */
void tk_ring_format(struct tk_ring_shared *shared, uint32_t slots, uint64_t start);

/* `payload`: as this process has it mapped, twice in a row. Messages carry `from` as their
 * sender. */
void tk_ring_out_open(struct tk_ring_out *out, struct tk_ring_shared *shared, char *payload,
                      uint32_t slots, uint32_t lines, uint16_t from);

/* TK_FAIL: out of memory, which was logged. Before anything is sent. */
enum tk_status tk_ring_in_open(struct tk_ring_in *in, struct tk_ring_shared *shared, char *payload,
                               uint32_t slots, uint32_t lines);
void tk_ring_in_close(struct tk_ring_in *in);

/* ---- Positions ---- */

static inline uint64_t tk_ring_advance(uint64_t position, uint64_t lines)
{
    uint64_t line = (position + lines) & TK_RING_LINES;
    return ((position & ~TK_RING_LINES) + TK_RING_SLOT) | line;
}

static inline uint32_t tk_ring_seq(uint64_t position)
{
    return (uint32_t)(position >> tk_ring_line_bits) + 1;
}

static inline struct tk_ring_slot *tk_ring_slot(struct tk_ring_shared *shared, uint64_t position,
                                                uint64_t mask)
{
    enum { line_bits = 6 };
    size_t place = position >> (tk_ring_line_bits - line_bits) & mask;
    return (struct tk_ring_slot *)(void *)((char *)shared->slots + place);
}

/* ---- Contention ---- */

/* Waits for 0.2 us. Call it when another thread was faster, at this end of the ring: it leaves that
 * thread the cache line that both need. */
void tk_ring_stand_back(void);

/* ---- Sending ---- */

/* Does a slot with these lines fit between tail and a head that may be outdated? */
static inline bool tk_ring_fits(const struct tk_ring_out *out, uint64_t head, uint64_t tail,
                                uint64_t lines)
{
    return tail - (head & ~TK_RING_LINES) < out->limit &&
           (lines == 0 || ((tail - head) & TK_RING_LINES) + lines <= out->lines);
}

static inline uint64_t tk_ring_out_slots(const struct tk_ring_out *out)
{
    return out->mask / tk_ring_line + 1;
}

/* Reduces the head as if `kept` slots and lines (a position) were not free. */
static inline uint64_t tk_ring_head_less(uint64_t head, uint64_t kept)
{
    return ((head & ~TK_RING_LINES) - (kept & ~TK_RING_LINES)) | ((head - kept) & TK_RING_LINES);
}

static inline uint64_t tk_ring_true_head(const struct tk_ring_out *out)
{
    return atomic_load_explicit(&out->shared->head, memory_order_acquire);
}

static inline uint64_t tk_ring_learn_head(struct tk_ring_out *out)
{
    uint64_t head = tk_ring_true_head(out);
    if (TK_THREADED)
        head = tk_ring_head_less(head, tk_peek(&out->queue.kept));
    if (head != atomic_load_explicit(&out->head, memory_order_relaxed))
        atomic_store_explicit(&out->head, head, memory_order_release);
    return head;
}

/* Takes a slot and lines; *ticket is their position. Reads the true head when the known one leaves
 * no space. False: full, nothing was done. */
bool tk_ring_reserve(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket);

/* The word of a message; its size may be a tag. */
static inline uint64_t tk_ring_word(const struct tk_ring_out *out, uint64_t ticket, uint64_t size)
{
    return tk_ring_seq(ticket) | out->from | size << 48;
}

/* Takes a slot and lines. Fails if another sender interferes or the known head leaves no space. */
static inline bool tk_ring_try(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    struct tk_ring_shared *shared = out->shared;
    *ticket = atomic_load_explicit(&shared->tail, memory_order_relaxed);
    /* Acquire: another thread may have read this head, and we write to the space that it frees. */
    uint64_t head = atomic_load_explicit(&out->head, memory_order_acquire);
    tk_if_unlikely(!tk_ring_fits(out, head, *ticket, lines)) return false;
    uint64_t tail = *ticket;
    uint64_t next = lines ? tk_ring_advance(tail, lines) : tail + TK_RING_SLOT;
    return atomic_compare_exchange_weak_explicit(&shared->tail, &tail, next, memory_order_relaxed,
                                                 memory_order_relaxed);
}

static inline bool tk_ring_try_slot(struct tk_ring_out *out, uint64_t *ticket)
{
    return tk_ring_try(out, 0, ticket);
}

/* lines > 0 */
static inline bool tk_ring_try_lines(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    if (lines == 0)
        __builtin_unreachable();
    return tk_ring_try(out, lines, ticket);
}

static inline void tk_ring_store_word(const struct tk_ring_out *out, struct tk_ring_slot *slot,
                                      uint64_t ticket, uint64_t size)
{
    atomic_store_explicit(&slot->word, tk_ring_word(out, ticket, size), memory_order_release);
}

/* Claims tk_ring_slot_max bytes at a multiple of 8 in which to build a message; NULL: full, nothing
 * was done. All later messages wait behind it: before tk_ring_publish() do not wait, poll or run
 * client code. Thread-safe. */
static inline char *tk_ring_claim(struct tk_ring_out *out, uint64_t *ticket)
{
    bool taken = tk_ring_try_slot(out, ticket);
    tk_if_unlikely(!taken && !tk_ring_reserve(out, 0, ticket)) return NULL;
    return tk_ring_slot(out->shared, *ticket, out->mask)->blob;
}

/* nbytes <= tk_ring_slot_max. */
static inline void tk_ring_publish(const struct tk_ring_out *out, uint64_t ticket, size_t nbytes)
{
    tk_ring_store_word(out, tk_ring_slot(out->shared, ticket, out->mask), ticket, nbytes);
}

/* The lines of a ticket. */
static inline char *tk_ring_lines_at(const struct tk_ring_out *out, uint64_t ticket)
{
    return out->payload + (ticket & (out->lines - 1)) * tk_ring_line;
}

/* Requests ownership of all lines at once. Stores commit in order, and each would otherwise wait
 * for its own line where the receiver has read it. More lines than a core keeps in flight only
 * delay the copy. The jump costs one instruction a line, a loop three. */
static inline void tk_ring_own(const char *at, uint64_t lines)
{
#define TK_RING_OWN(n)                                                                             \
case n:                                                                                            \
    tk_prefetch_write(at + ((n)-1) * tk_ring_line);                                                \
    __attribute__((fallthrough))
    switch (lines) {
        TK_RING_OWN(16);
        TK_RING_OWN(15);
        TK_RING_OWN(14);
        TK_RING_OWN(13);
        TK_RING_OWN(12);
        TK_RING_OWN(11);
        TK_RING_OWN(10);
        TK_RING_OWN(9);
        TK_RING_OWN(8);
        TK_RING_OWN(7);
        TK_RING_OWN(6);
        TK_RING_OWN(5);
        TK_RING_OWN(4);
        TK_RING_OWN(3);
        TK_RING_OWN(2);
        TK_RING_OWN(1);
    default:
        break;
    }
#undef TK_RING_OWN
}

/* For a message that is built in place and has lines: the place for its head of head_size bytes, at
 * most tk_ring_head_max. */
static inline char *tk_ring_note_at(struct tk_ring_slot *slot, size_t head_size, size_t nbytes)
{
    struct tk_ring_note note = {.nbytes = (uint32_t)nbytes, .head = (uint32_t)head_size};
    memcpy(slot->blob, &note, sizeof(note));
    return slot->blob + sizeof(note);
}

/* Would a message with so many lines fit now? Another thread may take the space at any time. */
bool tk_ring_has_space(struct tk_ring_out *out, uint64_t lines);

/* Lines that a message needs besides its slot. */
static inline uint64_t tk_ring_lines_for(size_t head_size, size_t nbytes)
{
    size_t outside = head_size <= tk_ring_head_max ? nbytes : head_size + nbytes;
    return (outside + tk_ring_line - 1) / tk_ring_line;
}

/* Copies head and payload into reserved lines, in which they fit, and publishes them.
 */
void tk_ring_fill(const struct tk_ring_out *out, uint64_t ticket, uint64_t lines, const void *head,
                  size_t head_size, const void *payload, size_t nbytes);

/* Slow path: a message that exceeds a slot, meets other senders, or finds no space at first. */
enum tk_status tk_ring_send_slowly(struct tk_ring_out *out, const void *head, size_t head_size,
                                   const void *payload, size_t nbytes);

/* Copies head and payload, one behind the other. TK_BUSY: full, nothing was done. Thread-safe.
 */
static inline enum tk_status tk_ring_send(struct tk_ring_out *out, const void *head,
                                          size_t head_size, const void *payload, size_t nbytes)
{
    uint64_t ticket;
    bool fits = head_size + nbytes <= tk_ring_slot_max;
    tk_if_unlikely(!fits || !tk_ring_try_slot(out, &ticket)) return tk_ring_send_slowly(
        out, head, head_size, payload, nbytes);
    struct tk_ring_slot *slot = tk_ring_slot(out->shared, ticket, out->mask);
    tk_copy_small(slot->blob, head, head_size);
    tk_copy_small(slot->blob + head_size, payload, nbytes);
    tk_ring_store_word(out, slot, ticket, head_size + nbytes);
    return TK_OK;
}

/* ---- Receiving ---- */

/* The slot of the next message to take, and its word. */
struct tk_ring_look {
    struct tk_ring_slot *slot;
    uint64_t word;
};

static inline uint64_t tk_ring_taken(const struct tk_ring_in *in)
{
    return atomic_load_explicit((_Atomic uint64_t *)&in->taken, memory_order_relaxed);
}

/* Is the next message published? In PAR, without the lock, the two words may not match while
 * another thread takes a message: the result is then a guess, which the next look corrects. */
static inline bool tk_ring_look(const struct tk_ring_in *in, struct tk_ring_look *at)
{
    at->slot = (struct tk_ring_slot *)tk_peek(&in->next);
    at->word = atomic_load_explicit(&at->slot->word, memory_order_acquire);
    return (uint32_t)at->word == tk_peek(&in->seq);
}

/* PAR: may an eighth or more be ready to be given back? The thread that finished the last message
 * of an eighth may have left before other threads finished the rest. */
static inline bool tk_ring_is_behind(const struct tk_ring_in *in)
{
    return TK_THREADED && atomic_load_explicit((_Atomic bool *)&in->behind, memory_order_relaxed);
}

/* PAR: give finished messages back, in order. The first does so at the end of an eighth; the second
 * also gives back what was left over then. */
void tk_ring_retire(struct tk_ring_in *in);
void tk_ring_retire_rest(struct tk_ring_in *in);
static inline void tk_ring_retire_left(struct tk_ring_in *in)
{
    if (tk_ring_is_behind(in))
        tk_ring_retire_rest(in);
}

/* Is there a message to take, or space to give back? Exact, because a thread calls it last before
 * it sleeps. One word says how much is taken. */
static inline bool tk_ring_has_come(const struct tk_ring_in *in)
{
    uint64_t taken = tk_ring_taken(in);
    struct tk_ring_slot *slot = tk_ring_slot(in->shared, taken, in->mask);
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);
    return (uint32_t)word == tk_ring_seq(taken) || tk_ring_is_behind(in);
}

/* Begins to take a message; tk_ring_pass() completes it. False: there is no message, or another
 * thread is about to take it. */
static inline bool tk_ring_begin(struct tk_ring_in *in, struct tk_ring_look *at)
{
    tk_if_unlikely(!tk_trylock_free(&in->taking)) return false;
    tk_if_likely(tk_ring_look(in, at)) return true;
    tk_unlock(&in->taking);
    return false;
}

/* The same for a ring that is mostly empty: PAR finds that out without the lock. */
static inline bool tk_ring_begin_next(struct tk_ring_in *in, struct tk_ring_look *at)
{
    return (!TK_THREADED || tk_ring_look(in, at)) && tk_ring_begin(in, at);
}

/* Takes the message that ends in front of `end`. */
static inline void tk_ring_pass(struct tk_ring_in *in, const struct tk_ring_look *at, uint64_t end)
{
    atomic_store_explicit(&in->taken, end, memory_order_relaxed);
    tk_poke(&in->seq, (uint32_t)at->word + 1);
    tk_poke(&in->next, (uintptr_t)tk_ring_slot(in->shared, end, in->mask));
    tk_unlock(&in->taking);
}

static inline unsigned tk_ring_from(const struct tk_ring_look *at)
{
    return at->word >> 32 & 0xffff;
}

static inline unsigned tk_ring_size(const struct tk_ring_look *at)
{
    return (unsigned)(at->word >> 48);
}

static inline bool tk_ring_is_tagged(const struct tk_ring_look *at)
{
    return at->word >> 63 != 0;
}

/* Takes a message with a tag; tk_ring_size() returns the tag. Returns the position behind the
 * message. */
static inline uint64_t tk_ring_pass_tagged(struct tk_ring_in *in, const struct tk_ring_look *at)
{
    uint64_t end = tk_ring_taken(in) + TK_RING_SLOT;
    tk_ring_pass(in, at, end);
    return end;
}

static inline uint64_t tk_ring_lines_of(const struct tk_ring_look *at)
{
    uint64_t size = tk_ring_size(at);
    return size <= tk_ring_slot_max || tk_ring_is_tagged(at) ? 0 : size - tk_ring_slot_max;
}

static inline void tk_ring_find_lines(const struct tk_ring_in *in, struct tk_ring_item *item,
                                      uint64_t lines)
{
    struct tk_ring_note note;
    char *at = in->payload + (item->start & (in->lines - 1)) * tk_ring_line;
    tk_copy_small(&note, item->blob, sizeof(note));
    tk_if_unlikely(lines > in->lines_most || note.nbytes > lines * tk_ring_line ||
                   note.head > tk_ring_head_max) item->blob = NULL;
    else if (note.head == 0)
    {
        item->blob = at;
        item->nbytes = note.nbytes;
    }
    else
    {
        item->blob += sizeof(note);
        item->nbytes = note.head;
        item->rest = at;
        item->rest_size = note.nbytes;
    }
}

/* Any message. */
static inline void tk_ring_pass_any(struct tk_ring_in *in, const struct tk_ring_look *at,
                                    struct tk_ring_item *item)
{
    uint64_t lines = tk_ring_lines_of(at);
    item->start = tk_ring_taken(in);
    item->end = tk_ring_advance(item->start, lines);
    tk_ring_pass(in, at, item->end);
    item->blob = at->slot->blob;
    item->rest = NULL;
    item->rest_size = 0;
    item->from = tk_ring_from(at);
    item->tag = tk_ring_is_tagged(at) ? tk_ring_size(at) : 0;
    item->nbytes = item->tag ? tk_ring_slot_max : tk_ring_size(at);
    if (lines)
        tk_ring_find_lines(in, item, lines);
}

/* A message whose head is in its slot and whose payload is in lines, before tk_ring_pass(). */
struct tk_ring_parts {
    char *head, *rest;
    size_t head_size, rest_size;
    uint64_t start, end;
};

/* False: the message has no such parts, or its size is wrong; tk_ring_pass_any() finds out. `at`
 * has no tag. */
static inline bool tk_ring_part(const struct tk_ring_in *in, const struct tk_ring_look *at,
                                struct tk_ring_parts *parts)
{
    const uint64_t lines =
        (uint64_t)tk_ring_size(at) - tk_ring_slot_max; /* without lines: 0 or huge */
    struct tk_ring_note note;
    memcpy(&note, at->slot->blob, sizeof(note));
    tk_if_unlikely(lines - 1 >= in->lines_most || note.nbytes > lines * tk_ring_line ||
                   note.head - 1 >= tk_ring_head_max) return false;
    parts->start = tk_ring_taken(in);
    parts->end = tk_ring_advance(parts->start, lines);
    parts->head = at->slot->blob + sizeof(note);
    parts->head_size = note.head;
    parts->rest = in->payload + (parts->start & (in->lines - 1)) * tk_ring_line;
    parts->rest_size = note.nbytes;
    return true;
}

/* Space is given back where an eighth of the slots or of the lines ends: at rest seven eighths are
 * free for senders. */
static inline bool tk_ring_ends_eighth(const struct tk_ring_in *in, uint64_t start, uint64_t end)
{
    return ((start ^ end) & in->due) != 0;
}

static inline _Atomic uint64_t *tk_ring_done_word(const struct tk_ring_in *in, uint64_t position)
{
    return &in->done[(position >> tk_ring_line_bits) & in->places];
}

/* PAR. The thread whose message begins at `finished` advances it: a message that is finished in
 * order needs no word in `done`. A thread that finishes out of order leaves a word there and does
 * not look again; the next thread that gives space back advances `finished` over that message, with
 * the lock. So there is one writer at a time. */
static inline void tk_ring_finish(struct tk_ring_in *in, uint64_t start, uint64_t end)
{
    tk_if_likely(atomic_load_explicit(&in->finished, memory_order_acquire) == start)
        atomic_store_explicit(&in->finished, end, memory_order_release);
    else atomic_store_explicit(tk_ring_done_word(in, start), end, memory_order_release);
}

static inline void tk_ring_give_back(struct tk_ring_in *in, uint64_t end)
{
    if (TK_THREADED)
        tk_ring_retire(in);
    else
        atomic_store_explicit(&in->shared->head, end, memory_order_release);
}

static inline void tk_ring_done_from(struct tk_ring_in *in, uint64_t start, uint64_t end)
{
    if (TK_THREADED)
        tk_ring_finish(in, start, end);
    if (tk_ring_ends_eighth(in, start, end))
        tk_ring_give_back(in, end);
}

/* The message is no longer read. Call it once for each item: in PAR in any order and from any
 * thread, otherwise in the order of taking. */
static inline void tk_ring_done(struct tk_ring_in *in, const struct tk_ring_item *item)
{
    tk_ring_done_from(in, item->start, item->end);
}

/* The same for a message that fit its slot. */
static inline void tk_ring_done_slot(struct tk_ring_in *in, uint64_t end)
{
    if (TK_THREADED)
        tk_ring_finish(in, end - TK_RING_SLOT, end);
    tk_if_unlikely((end & in->within) == 0) tk_ring_give_back(in, end);
}

#endif
