/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traces: the calls of the interface that a rank makes, in a file. Only in libraries configured
 * with --enable-trace and in the trace twins; in others TK_TRACED(...) expands to nothing. Each
 * thread records into a ring of its own (ring.h); a thread of the library writes the rings to the
 * file. Only the end of the job waits for the file. */
#ifndef TK_TRACE_H
#define TK_TRACE_H

#include <stdarg.h>

#include "base/bits.h"
#include "base/traced.h"
#include "stats/stats.h"
#include "trace/event.h"

/* Classes that are recorded now; 0: none. Written at the start, the end, and by the program; a
 * thread that reads it late may record one event too many or too few. */
extern TK_HIDDEN uint32_t tk_trace_mask;

enum tk_trace_bit {
#define TK_TRACE_OP(id, letter, name) tk_trace_bit_##id = 1 << ((letter) - 'A'),
#include "trace/trace.def"
};

static inline bool tk_trace_has(enum tk_trace_bit bit)
{
    return tk_is_traced && (__atomic_load_n(&tk_trace_mask, __ATOMIC_RELAXED) & bit);
}

/* The place in the program's source, as set by the program. */
struct tk_trace_place {
    const char *given, *kept; /* name of the file; our copy */
    unsigned line;
};

/* A call in progress, made at `place`. It saves the thread's data about the message of an outer
 * call. */
struct tk_trace_call {
    uint64_t begin; /* 0: it is not recorded */
    uint64_t nbytes;
    struct tk_trace_place place;
    uint32_t peer, sequence, outer_peer, outer_sequence, outer_path;
    uint8_t op, handler, outer_handler;
    struct tk_rails_taken rails, *outer_rails;
};

void tk_trace_begin(struct tk_trace_call *call, enum tk_trace_op op, uint32_t peer, size_t nbytes);
void tk_trace_end(const struct tk_trace_call *call);

static inline void tk_trace_leave(const struct tk_trace_call *call)
{
    tk_if_unlikely(call->begin) tk_trace_end(call);
}

/* Records a completed wait inside of a call. */
void tk_trace_waited(enum tk_trace_op op, uint32_t peer, uint64_t since);

/* Records a connection that was made for a peer. */
void tk_trace_connected(uint32_t peer, unsigned rail, uint64_t since);

/* Records the rest of this block as one event. The peer of a message need not be given. The
 * arguments are evaluated if the class is recorded. */
#define TK_TRACED(id, peer, nbytes) TK_TRACED_AS(tk_trace_##id, id, peer, nbytes)

/* The same, recorded as `op`, which is of the class of `id`. */
#define TK_TRACED_AS(op, id, peer, nbytes)                                                         \
    TK_IF_TRACED(__attribute__((__cleanup__(tk_trace_leave))) struct tk_trace_call trace_call;     \
                 trace_call.begin = 0; tk_if_unlikely(tk_trace_has(tk_trace_bit_##id))             \
                     tk_trace_begin(&trace_call, op, peer, nbytes);)

/* The same for a handler; `number` is what tk_trace_number() gave the sender. */
void tk_trace_begin_handler(struct tk_trace_call *call, enum tk_trace_op op, uint32_t from,
                            uint8_t handler, size_t nbytes, uint16_t number);

#define TK_TRACE_HANDLER(is_reply, from, handler, nbytes, number)                                  \
    TK_IF_TRACED(                                                                                  \
        __attribute__((__cleanup__(tk_trace_leave))) struct tk_trace_call trace_call;              \
        trace_call.begin = 0; tk_if_unlikely(tk_trace_has(tk_trace_bit_request_handler))           \
            tk_trace_begin_handler(&trace_call,                                                    \
                                   (is_reply) ? tk_trace_reply_handler : tk_trace_request_handler, \
                                   from, handler, nbytes, number);)

/* The current call sends a message to `peer`. Returns its number, which travels in 16 bits; 0 if it
 * can't carry one (`is_numbered` is false). */
uint16_t tk_trace_number(uint32_t peer, uint8_t handler, bool is_numbered);

/* The message was not sent after all. */
void tk_trace_unsent(void);

/* ---- life ---- */

struct tk_trace_plan {
    const char *file; /* with `%` for the rank; "-": standard error */
    uint32_t mask;    /* as of tk_stats_mask_parse() */
    uint32_t rank, size;
    const char *host; /* stays */
    bool records;     /* this rank writes; otherwise it may still have to create the file that
                       * others write to */
    bool local;       /* record operations of a rank on itself too */
};

/* At start-up, before the last wait for others: creates the file. If it can't be written, one line
 * reports that, and nothing is recorded. */
void tk_trace_open(const struct tk_trace_plan *plan);

/* From now on events are recorded. */
void tk_trace_start(void);

/* The first sets the offset at the start (before tk_trace_start()): from then on times are by rank
 * 0's clock. The second sets the offset at the end, after recording has stopped, and corrects the
 * written lines. */
void tk_trace_align(const struct tk_trace_offset *offset, bool at_end);

/* Stops recording. */
void tk_trace_stop(void);

/* The same, and writes the remaining events, once for each process. `how`: how the job ended.
 * Async-signal-safe; waits a second or two for a writer that is blocked by the disk. */
void tk_trace_close(const char *how);

/* ---- programs ---- */

bool tk_trace_is_open(void);
void tk_trace_vprint(const char *format, va_list args) __attribute__((format(printf, 1, 0)));
/* Letters; "": nothing. */
const char *tk_trace_mask_text(void);
void tk_trace_mask_set(const char *text);
bool tk_trace_local(void);
void tk_trace_local_set(bool local);

/* The current line of the program's source, as set by this thread. A frozen one does not change;
 * each freeze needs an unfreeze. */
void tk_trace_line_set(const char *file, unsigned line);
void tk_trace_line_get(const char **file, unsigned *line);
void tk_trace_line_freeze(int by);

#endif
