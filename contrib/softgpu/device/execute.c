/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an operation does, without the lock: its memory cannot go away, because it holds references.
 * Owns nothing. */
#include "config.h"

#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "contrib/softgpu/device/device.h"

static void sleep_until(uint64_t deadline)
{
    struct timespec t = {(time_t)(deadline / TK_SECOND), (long)(deadline % TK_SECOND)};

    if (deadline > tk_now())
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
            ;
}

/* Copies in pieces, so that a client that looks too early sees a part of a slow copy. */
static void copy(struct sgpu_op *op)
{
    uint64_t begin = tk_now(), piece = sgpu_config.bandwidth > 0 ? 65536 : op->length;

    for (uint64_t row = 0; row < op->rows; row++)
        for (uint64_t at = 0; at < op->length; at += piece) {
            uint64_t n = op->length - at < piece ? op->length - at : piece;

            memmove(op->to + row * op->to_pitch + at, op->from + row * op->from_pitch + at, n);
            if (sgpu_config.bandwidth > 0)
                sleep_until(begin + (row * op->length + at + n) * 1000 / sgpu_config.bandwidth);
        }
}

static void set(struct sgpu_op *op)
{
    if (op->width == 1)
        memset(op->to, (int)op->value, op->length);
    else
        for (uint64_t at = 0; at < op->length; at += op->width)
            memcpy(op->to + at, &op->value, op->width);
}

/* An HCA may have written the bytes between rows. */
static void written(const struct sgpu_op *op)
{
    uint64_t rows = op->kind == SGPU_OP_COPY ? op->rows : 1;

    for (uint64_t row = 0; row < rows; row++)
        sgpu_weak_written(op->target->storage, op->target_offset + row * op->to_pitch, op->length);
}

void sgpu_op_execute(struct sgpu_op *op)
{
    if (op->delay > 0)
        sleep_until(tk_now() + op->delay);
    if (op->status != SGPU_OK)
        return;
    if (op->source && op->source->storage)
        sgpu_weak_reading();
    if (op->kind == SGPU_OP_COPY)
        copy(op);
    else if (op->kind == SGPU_OP_SET)
        set(op);
    else if (op->kind == SGPU_OP_CALL)
        op->call(op->argument);
    if (op->target && op->target->storage)
        written(op);
}
