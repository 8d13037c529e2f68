/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See paper_device.h. */
#include "config.h"

#include <sched.h>

#include "tests/unit/kind_rma/paper_device.h"
#include "unit.h"

char *device_at, *view;
struct paper_gpu gpu;

bool is_on_device(uintptr_t at)
{
    return at - (uintptr_t)device_at < size;
}

char *seen(uintptr_t at, const struct tk_kind_device *device)
{
    assert_int_equal(is_on_device(at), device != NULL);
    return device ? view + (at - (uintptr_t)device_at) : (char *)at;
}

static enum tk_status paper_copy(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    if (gpu.busy > 0) {
        gpu.busy--;
        return TK_BUSY;
    }
    if (gpu.fails > 0 && --gpu.fails == 0) {
        snprintf(why->text, sizeof(why->text), "the device fell off the bus");
        return TK_FAIL;
    }
    copy->event = (void *)(uintptr_t)(gpu.looks + 1);
    gpu.in_flight++;
    gpu.copies++;
    return TK_OK;
}

static enum tk_status paper_test(struct tk_kind_copy *copy, struct tk_kind_why *why)
{
    (void)why;
    uintptr_t left = (uintptr_t)copy->event - 1;
    copy->event = (void *)left;
    if (left > 0)
        return TK_BUSY;
    gpu.in_flight--;
    gpu.copied += copy->nbytes;
    if (!gpu.lowest || copy->to < gpu.lowest)
        gpu.lowest = copy->to;
    if (gpu.only_counts || gpu.no_bytes)
        return TK_OK;
    size_t rows = copy->rows > 1 ? copy->rows : 1;
    for (size_t i = 0; i < rows; i++)
        memmove(seen(copy->to + i * copy->to_pitch, copy->to_device),
                seen(copy->from + i * copy->from_pitch, copy->from_device), copy->nbytes);
    return TK_OK;
}

/* The bytes read must be in memory before. */
static enum tk_status paper_flush(struct tk_kind_device *device, struct tk_kind_why *why)
{
    (void)device;
    gpu.flushes++;
    if (gpu.expected)
        assert_memory_equal(view + 1, gpu.expected, 1000);
    return gpu.fails_flush ? tk_kind_why(why, "it fell off the bus") : TK_OK;
}

static const struct tk_kind_class paper = {.name = "PAPER",
                                           .gex_class = TK_KIND_CUDA_UVA,
                                           .copy = paper_copy,
                                           .copy_test = paper_test,
                                           .flush = paper_flush};
struct tk_kind_device device = {.class = &paper};
struct tk_kind_memory memory = {.device = &device, .size = size};
const struct tk_bound_kind kind = {.gex_class = TK_KIND_CUDA_UVA};

void tk_kind_device_hold(struct tk_kind_device *d)
{
    (void)d;
    __atomic_add_fetch(&gpu.held, 1, __ATOMIC_RELAXED);
}

/* Simulates another thread that runs between the check for the last user and the drop. */
void tk_kind_device_put(struct tk_kind_device *d)
{
    (void)d;
    sched_yield();
    __atomic_sub_fetch(&gpu.held, 1, __ATOMIC_RELAXED);
}

unsigned tk_kind_device_uses(const struct tk_kind_device *d)
{
    (void)d;
    return __atomic_load_n(&gpu.held, __ATOMIC_RELAXED);
}

struct tk_kind_device *tk_kind_device_like(int gex_class, const unsigned char *uuid)
{
    (void)gex_class, (void)uuid;
    return NULL;
}

const char *tk_kind_device_text(const struct tk_kind_device *d, char *text, size_t room)
{
    (void)d;
    snprintf(text, room, "PAPER device");
    return text;
}
