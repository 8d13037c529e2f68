/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies and fills: which memory they touch, and whether the caller waits. Owns nothing.
 *
 * As on real devices a copy is asynchronous to pinned host memory only: one from pageable memory
 * takes its source at the call, one to pageable memory is done when the call returns. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/softgpu/device/device.h"

/* One side of a copy */
struct side {
    uint64_t address;
    struct sgpu_memory *memory; /* NULL: pageable */
    uint8_t *bytes;             /* where the library accesses it */
};

static bool side_on_device(const struct side *s)
{
    return s->memory && s->memory->storage;
}

static uint64_t side_offset(const struct side *s)
{
    return s->memory->offset + (s->address - s->memory->address);
}

/* False: the address or the range does not suit the call. */
static bool side_find(struct side *s, uint64_t address, uint64_t length, bool device, bool host)
{
    struct sgpu_memory *m = sgpu_memory_find(address);

    *s = (struct side){address, m, (uint8_t *)(uintptr_t)address};
    if (!m || !m->storage) {
        if (m && !sgpu_memory_holds(m, address, length))
            s->memory = NULL; /* partly pinned */
        return host && address != 0 && address + length >= address &&
               !sgpu_memory_was_freed(address);
    }
    if (!device || !m->accessible || !sgpu_memory_holds(m, address, length))
        return false;
    s->bytes = m->storage->view + side_offset(s);
    return true;
}

static void op_set_target(struct sgpu_op *op, const struct side *to)
{
    op->to = to->bytes;
    op->target = to->memory;
    if (to->memory)
        to->memory->refs++;
    op->target_offset = side_on_device(to) ? side_offset(to) : 0;
}

static struct sgpu_op *copy_create(const struct side *to, const struct side *from,
                                   const struct sgpu_rows *rows)
{
    struct sgpu_op *op = sgpu_op_create(SGPU_OP_COPY);

    if (!op)
        return NULL;
    op_set_target(op, to);
    op->from = from->bytes;
    op->source = from->memory;
    if (from->memory)
        from->memory->refs++;
    op->length = rows->width;
    op->rows = rows->count;
    op->to_pitch = rows->to_pitch;
    op->from_pitch = rows->from_pitch;
    return op;
}

/* The caller may reuse the source when the call returns. */
static bool take_source(struct sgpu_op *op)
{
    uint8_t *to = op->taken = malloc(op->rows * op->length);

    if (!to)
        return false;
    for (uint64_t i = 0; i < op->rows; i++)
        memcpy(to + i * op->length, op->from + i * op->from_pitch, op->length);
    op->from = to;
    op->from_pitch = op->length;
    return true;
}

/* Runs the operation as the fault rules and the caller require. Takes over the caller's
 * reference. */
static int start(struct sgpu_context *c, struct sgpu_stream *s, struct sgpu_op *op, bool wait)
{
    struct sgpu_verdict v = sgpu_fault_judge(SGPU_FAULT_COPY, c->device);
    struct sgpu_stream *stream = s ? s : sgpu_stream_resolve(c, NULL);
    int status = SGPU_OUT_OF_MEMORY;

    op->delay = v.delay;
    op->fault = (int)v.error;
    if (v.error != SGPU_OK && (wait || !v.run))
        status = op->fault;
    else if (stream && wait)
        status = sgpu_stream_run(stream, op);
    else if (stream)
        status = sgpu_stream_submit(stream, op, NULL);
    sgpu_op_put(op);
    return status;
}

int sgpu_copy(struct sgpu_context *c, struct sgpu_stream *s, uint64_t to, uint64_t from,
              uint64_t length, enum sgpu_direction direction)
{
    const struct sgpu_rows one = {length, 1, length, length};

    return sgpu_copy_rows(c, s, to, from, &one, direction);
}

/* The length from the first byte to the last; 0: the pitch is too small, or the length
 * overflows. */
static uint64_t extent(const struct sgpu_rows *r, uint64_t pitch)
{
    uint64_t length;

    if (pitch < r->width || __builtin_mul_overflow(r->count - 1, pitch, &length) ||
        __builtin_add_overflow(length, r->width, &length))
        return 0;
    return length;
}

int sgpu_copy_rows(struct sgpu_context *c, struct sgpu_stream *s, uint64_t to, uint64_t from,
                   const struct sgpu_rows *rows, enum sgpu_direction direction)
{
    bool any = direction == SGPU_ANY || direction == SGPU_UNSTAGED;
    bool staged = direction != SGPU_UNSTAGED;
    bool to_device = direction == SGPU_HTOD || direction == SGPU_DTOD || any;
    bool to_host = direction == SGPU_DTOH || direction == SGPU_HTOH || any;
    bool from_device = direction == SGPU_DTOH || direction == SGPU_DTOD || any;
    bool from_host = direction == SGPU_HTOD || direction == SGPU_HTOH || any;
    struct side target, source;
    struct sgpu_op *op;
    uint64_t to_length, from_length;

    if (rows->width == 0 || rows->count == 0)
        return SGPU_OK;
    to_length = extent(rows, rows->to_pitch);
    from_length = extent(rows, rows->from_pitch);
    if (to_length == 0 || from_length == 0)
        return SGPU_INVALID_VALUE;
    if (direction == SGPU_ANY && sgpu_config.no_uva)
        return SGPU_INVALID_VALUE;
    if (!side_find(&target, to, to_length, to_device, to_host) ||
        !side_find(&source, from, from_length, from_device, from_host))
        return SGPU_INVALID_VALUE;
    op = copy_create(&target, &source, rows);
    if (!op)
        return SGPU_OUT_OF_MEMORY;
    if (s && staged && !source.memory && target.memory && !take_source(op)) { /* pageable */
        sgpu_op_put(op);
        return SGPU_OUT_OF_MEMORY;
    }
    return start(c, s, op,
                 s ? staged && !target.memory
                   : !side_on_device(&target) || !side_on_device(&source));
}

int sgpu_set(struct sgpu_context *c, struct sgpu_stream *s, uint64_t to, uint32_t value,
             unsigned width, uint64_t count)
{
    struct side target;
    struct sgpu_op *op;

    if (count == 0)
        return SGPU_OK;
    if (to % width != 0 || count > UINT64_MAX / width ||
        !side_find(&target, to, count * width, true, true) || !target.memory)
        return SGPU_INVALID_VALUE;
    op = sgpu_op_create(SGPU_OP_SET);
    if (!op)
        return SGPU_OUT_OF_MEMORY;
    op_set_target(op, &target);
    op->length = count * width;
    op->width = width;
    op->value = value;
    return start(c, s, op, false);
}

int sgpu_call(struct sgpu_stream *s, void (*call)(void *), void *argument)
{
    struct sgpu_op *op = sgpu_op_create(SGPU_OP_CALL);
    int status;

    if (!op)
        return SGPU_OUT_OF_MEMORY;
    op->call = call;
    op->argument = argument;
    status = sgpu_stream_submit(s, op, NULL);
    sgpu_op_put(op);
    return status;
}
