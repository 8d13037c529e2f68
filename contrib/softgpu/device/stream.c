/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams: operations that run in order, by a thread of each stream, so that they are really
 * asynchronous to the client and to other streams. With ordered-streams one thread runs the
 * operations of all streams in the order of the calls. Owns streams, queues and their threads.
 *
 * The NULL stream of a context waits for what its blocking streams were given before, and they wait
 * for it, as the vendors define their legacy default stream. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>

#include "common/clock.h"
#include "contrib/softgpu/device/device.h"
#include "contrib/softgpu/support/draw.h"

struct queue {
    struct sgpu_op *head, **tail;
    pthread_cond_t wake;
    bool started, closing;
    bool busy; /* an operation runs, in the thread or in a caller that waits for it */
};

struct sgpu_stream {
    struct sgpu_stream *next;
    struct sgpu_context *context;
    struct queue *queue;
    struct sgpu_op *last; /* NULL: it had none */
    unsigned flags;
};

static struct sgpu_stream *streams;
static struct queue *ordered;
static pthread_cond_t any_done = PTHREAD_COND_INITIALIZER;
static uint64_t draws;
static __thread bool in_callback;

bool sgpu_in_callback(void)
{
    return in_callback;
}

/* ---- operations ---- */

struct sgpu_op *sgpu_op_create(enum sgpu_op_kind kind)
{
    struct sgpu_op *op = calloc(1, sizeof *op);

    if (op) {
        op->kind = kind;
        op->refs = 1;
    }
    return op;
}

struct sgpu_op *sgpu_op_get(struct sgpu_op *op)
{
    op->refs++;
    return op;
}

/* What it needed to run */
static void op_release(struct sgpu_op *op)
{
    unsigned n = op->after_count;

    op->after_count = 0;
    for (unsigned i = 0; i < n; i++)
        sgpu_op_put(op->after[i]);
    free(op->after);
    op->after = NULL;
    free(op->taken);
    op->taken = NULL;
    if (op->target)
        sgpu_memory_put(op->target);
    if (op->source)
        sgpu_memory_put(op->source);
    op->target = op->source = NULL;
}

void sgpu_op_put(struct sgpu_op *op)
{
    if (--op->refs > 0)
        return;
    op_release(op);
    free(op);
}

void sgpu_op_wait(struct sgpu_op *op)
{
    while (!op->done)
        pthread_cond_wait(&any_done, &sgpu_lock);
}

/* Errors after which a context is unusable */
static bool breaks_context(int status)
{
    return status == SGPU_ECC || status == SGPU_ILLEGAL_ADDRESS || status == SGPU_LAUNCH_FAILED;
}

/* Runs it, without the lock. */
static void op_run(struct queue *q, struct sgpu_op *op)
{
    q->busy = true;
    for (unsigned i = 0; i < op->after_count; i++)
        sgpu_op_wait(op->after[i]);
    op->status = op->context->failed ? op->context->failed : op->fault;
    sgpu_leave(0);
    in_callback = op->kind == SGPU_OP_CALL;
    sgpu_op_execute(op);
    in_callback = false;
    sgpu_enter();
    if (op->status != SGPU_OK && !op->context->failed &&
        (!op->waited_for || breaks_context(op->status)))
        op->context->failed = op->status;
    op->finished = tk_now();
    op->done = true;
    q->busy = false;
    op_release(op);
    pthread_cond_broadcast(&any_done);
}

/* ---- queues ---- */

static void *queue_thread(void *argument)
{
    struct queue *q = argument;

    sgpu_enter();
    for (;;) {
        struct sgpu_op *op = q->head;

        if (q->busy || (!op && !q->closing)) {
            pthread_cond_wait(&q->wake, &sgpu_lock);
            continue;
        }
        if (!op)
            break;
        q->head = op->next;
        if (!q->head)
            q->tail = &q->head;
        op_run(q, op);
        sgpu_op_put(op);
    }
    sgpu_leave(0);
    pthread_cond_destroy(&q->wake);
    free(q);
    return NULL;
}

static bool queue_start(struct queue *q)
{
    pthread_attr_t detached;
    sigset_t all, old;
    pthread_t thread;

    if (q->started)
        return true;
    /* The client's signal handlers run in its own threads, except for faults of this thread at an
     * address of the client. */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    q->started = pthread_create(&thread, &detached, queue_thread, q) == 0;
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return q->started;
}

static struct queue *queue_create(void)
{
    struct queue *q = calloc(1, sizeof *q);

    if (!q)
        return NULL;
    q->tail = &q->head;
    pthread_cond_init(&q->wake, NULL);
    return q;
}

/* Its thread ends when it has run everything. */
static void queue_close(struct queue *q)
{
    if (q == ordered)
        return;
    if (!q->started && !q->busy) {
        pthread_cond_destroy(&q->wake);
        free(q);
        return;
    }
    q->closing = true;
    if (queue_start(q))
        pthread_cond_signal(&q->wake);
}

/* ---- streams ---- */

static struct queue *queue_for_stream(void)
{
    if (!sgpu_config.ordered_streams)
        return queue_create();
    if (!ordered)
        ordered = queue_create();
    return ordered;
}

static struct sgpu_stream *stream_add(struct sgpu_context *c, unsigned flags)
{
    struct sgpu_stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->queue = queue_for_stream();
    if (!s->queue) {
        free(s);
        return NULL;
    }
    s->context = c;
    s->flags = flags;
    s->next = streams;
    streams = s;
    return s;
}

int sgpu_stream_create(struct sgpu_context *c, unsigned flags, struct sgpu_stream **out)
{
    int status = sgpu_fault_call(SGPU_FAULT_STREAM, c->device);

    if (status != SGPU_OK)
        return status;
    if (flags & ~(unsigned)SGPU_STREAM_NON_BLOCKING)
        return SGPU_INVALID_VALUE;
    *out = stream_add(c, flags);
    return *out ? SGPU_OK : SGPU_OUT_OF_MEMORY;
}

void sgpu_stream_destroy(struct sgpu_stream *s)
{
    struct sgpu_stream **at = &streams;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    queue_close(s->queue);
    if (s->last)
        sgpu_op_put(s->last);
    free(s);
}

struct sgpu_stream *sgpu_stream_resolve(struct sgpu_context *c, const void *handle)
{
    if ((uintptr_t)handle <= 2) {
        if (!c->legacy)
            c->legacy = stream_add(c, 0);
        return c->legacy;
    }
    for (struct sgpu_stream *s = streams; s; s = s->next)
        if (s == handle)
            return s->context == c ? s : NULL;
    return NULL;
}

unsigned sgpu_stream_flags(const struct sgpu_stream *s)
{
    return s->flags;
}

void sgpu_streams_end(struct sgpu_context *c)
{
    struct sgpu_stream *next;

    for (struct sgpu_stream *s = streams; s; s = next) {
        next = s->next;
        if (s->context == c)
            sgpu_stream_destroy(s);
    }
    c->legacy = NULL;
}

/* ---- work ---- */

static bool pending(const struct sgpu_op *op)
{
    return op && !op->done;
}

/* Must an operation of `s` wait for those of `other`? */
static bool ordered_by_null_stream(const struct sgpu_stream *s, const struct sgpu_stream *other)
{
    struct sgpu_stream *legacy = s->context->legacy;

    return s != other && s->context == other->context && (s == legacy || other == legacy) &&
           !((s->flags | other->flags) & SGPU_STREAM_NON_BLOCKING);
}

static bool op_follows(struct sgpu_op *op, struct sgpu_op *before)
{
    struct sgpu_op **more = realloc(op->after, (op->after_count + 1) * sizeof(struct sgpu_op *));

    if (!more)
        return false;
    op->after = more;
    op->after[op->after_count++] = sgpu_op_get(before);
    return true;
}

static int op_order(struct sgpu_stream *s, struct sgpu_op *op, struct sgpu_op *event)
{
    op->context = s->context;
    if (sgpu_config.delay > 0 && op->kind != SGPU_OP_MARK) {
        if (draws == 0)
            draws = sgpu_config.seed;
        op->delay += sgpu_draw_below(&draws, sgpu_config.delay * 1000 + 1);
    }
    if (pending(event) && !op_follows(op, event))
        return SGPU_OUT_OF_MEMORY;
    for (struct sgpu_stream *other = streams; other; other = other->next)
        if (pending(other->last) && ordered_by_null_stream(s, other) &&
            !op_follows(op, other->last))
            return SGPU_OUT_OF_MEMORY;
    return SGPU_OK;
}

static void stream_follow(struct sgpu_stream *s, struct sgpu_op *op)
{
    if (s->last)
        sgpu_op_put(s->last);
    s->last = sgpu_op_get(op);
}

int sgpu_stream_submit(struct sgpu_stream *s, struct sgpu_op *op, struct sgpu_op *event)
{
    struct queue *q = s->queue;
    int status = op_order(s, op, event);

    if (status != SGPU_OK)
        return status;
    if (!queue_start(q))
        return SGPU_OUT_OF_MEMORY;
    stream_follow(s, op);
    *q->tail = sgpu_op_get(op);
    q->tail = &op->next;
    pthread_cond_signal(&q->wake);
    return SGPU_OK;
}

int sgpu_stream_run(struct sgpu_stream *s, struct sgpu_op *op)
{
    struct queue *q = s->queue;
    int status;

    op->waited_for = true;
    /* Switching threads costs more than a small copy. */
    if (!q->head && !q->busy) {
        status = op_order(s, op, NULL);
        if (status != SGPU_OK)
            return status;
        stream_follow(s, op);
        op_run(q, op);
        pthread_cond_signal(&q->wake);
        return op->status;
    }
    status = sgpu_stream_submit(s, op, NULL);
    if (status != SGPU_OK)
        return status;
    sgpu_op_wait(op);
    return op->status;
}

int sgpu_stream_query(struct sgpu_stream *s)
{
    return s->context->failed ? s->context->failed : pending(s->last) ? SGPU_NOT_READY : SGPU_OK;
}

int sgpu_stream_wait(struct sgpu_stream *s)
{
    struct sgpu_context *c = s->context;
    struct sgpu_op *last = s->last ? sgpu_op_get(s->last) : NULL;

    if (last) {
        sgpu_op_wait(last);
        sgpu_op_put(last);
    }
    return c->failed;
}

static bool stream_selected(const struct sgpu_stream *s, const struct sgpu_context *c, int device)
{
    return pending(s->last) && (c ? s->context == c : s->context->device == device);
}

/* Does not wait for operations that other threads add meanwhile. */
static void wait_selected(const struct sgpu_context *c, int device)
{
    size_t n = 0;
    struct sgpu_op **last;

    for (const struct sgpu_stream *s = streams; s; s = s->next)
        n += stream_selected(s, c, device);
    last = n > 0 ? malloc(n * sizeof(struct sgpu_op *)) : NULL;
    if (!last)
        return;
    n = 0;
    for (const struct sgpu_stream *s = streams; s; s = s->next)
        if (stream_selected(s, c, device))
            last[n++] = sgpu_op_get(s->last);
    for (size_t i = 0; i < n; i++) {
        sgpu_op_wait(last[i]);
        sgpu_op_put(last[i]);
    }
    free(last);
}

int sgpu_streams_wait(struct sgpu_context *c)
{
    wait_selected(c, -1);
    return c->failed;
}

void sgpu_device_wait(int device)
{
    wait_selected(NULL, device);
}
