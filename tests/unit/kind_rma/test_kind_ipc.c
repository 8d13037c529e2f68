/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of neighbours' devices, mapped by a fake IPC: when a handle is opened, who shares its
 * mapping, and which mapping a replacing record closes. As in CUDA, a process opens a handle once.
 */
#include "config.h"

#include "fake_job.h"
#include "kind_rma/kind_rma_private.h"
#include "settings/settings.h"
#include "unit.h"

enum { handles = 8, owner = 1 };

static struct {
    bool is_open[handles];
    unsigned opens, closes, held;
    bool refuses;
} ipc;

static uintptr_t place_of(unsigned handle, unsigned times)
{
    return 0x100000 * (uintptr_t)(handle + 1) + 0x10000000 * (uintptr_t)times;
}

static enum tk_status paper_open(struct tk_kind_device *device, const struct tk_kind_ipc *of,
                                 uintptr_t *base, struct tk_kind_why *why)
{
    unsigned handle = of->handle[0];
    (void)device;
    assert_false(ipc.is_open[handle]);
    if (ipc.refuses)
        return tk_kind_why(why, "no");
    ipc.is_open[handle] = true;
    *base = place_of(handle, ipc.opens++);
    return TK_OK;
}

static void paper_close(struct tk_kind_device *device, uintptr_t base)
{
    unsigned handle = (unsigned)(base % 0x10000000 / 0x100000 - 1);
    (void)device;
    assert_true(ipc.is_open[handle]);
    ipc.is_open[handle] = false;
    ipc.closes++;
}

static const struct tk_kind_class paper = {.name = "PAPER",
                                           .gex_class = TK_KIND_CUDA_UVA,
                                           .ipc_open = paper_open,
                                           .ipc_close = paper_close};
static struct tk_kind_device device = {.class = &paper};

void tk_kind_device_hold(struct tk_kind_device *d)
{
    (void)d;
    ipc.held++;
}

void tk_kind_device_put(struct tk_kind_device *d)
{
    (void)d;
    ipc.held--;
}

struct tk_kind_device *tk_kind_device_like(int gex_class, const unsigned char *uuid)
{
    (void)uuid;
    return gex_class == TK_KIND_CUDA_UVA ? &device : NULL;
}

static struct tk_bound_kind kinds[16];

/* The owner's record of the segment of `endpoint`: at `base` in the allocation of `handle`.
 */
static struct tk_bound record(uint32_t endpoint, unsigned handle, uint32_t serial)
{
    struct tk_bound_kind *kind = &kinds[endpoint];
    *kind = (struct tk_bound_kind){
        .gex_class = TK_KIND_CUDA_UVA, .has_ipc = 1, .serial = serial, .offset = 64};
    kind->ipc[0] = (unsigned char)handle;
    return (struct tk_bound){
        .base = 0x5000, .size = 4096, .endpoint = endpoint, .fd = -1, .kind = kind};
}

static uintptr_t here(const struct tk_bound *bound)
{
    const struct tk_kind_mapping *mapping = tk_kind_ipc_find(owner, bound);
    return mapping ? bound->base + mapping->offset - 64 : 0;
}

static int set_up(void **state)
{
    (void)state;
    memset(&ipc, 0, sizeof(ipc));
    fake_job_open(2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tk_kind_ipc_release(&device);
    assert_int_equal(tk_kind_ipc_holds(&device), 0);
    assert_int_equal(ipc.held, 0);
    assert_int_equal(ipc.opens, ipc.closes);
    fake_job_close();
    return 0;
}

static void a_segment_is_mapped_once(void **state)
{
    (void)state;
    const struct tk_bound bound = record(1, 3, 1);
    assert_int_equal(here(&bound), place_of(3, 0));
    assert_int_equal(here(&bound), place_of(3, 0));
    assert_int_equal(ipc.opens, 1);
    assert_int_equal(tk_kind_ipc_holds(&device), 1);
}

static void segments_in_one_allocation_share_its_mapping(void **state)
{
    (void)state;
    const struct tk_bound one = record(1, 3, 1), two = record(2, 3, 1), other = record(3, 4, 2);
    assert_int_equal(here(&one), place_of(3, 0));
    assert_int_equal(here(&two), place_of(3, 0));
    assert_int_equal(here(&other), place_of(4, 1));
    assert_int_equal(ipc.opens, 2);
}

static void a_record_that_replaces_another_closes_its_mapping(void **state)
{
    (void)state;
    struct tk_bound bound = record(1, 3, 1);
    here(&bound);
    bound = record(1, 4, 2);
    assert_int_equal(here(&bound), place_of(4, 1));
    assert_int_equal(ipc.closes, 1);
}

/* The driver gave a new allocation the address and the handle of one that was freed. */
static void memory_made_anew_is_mapped_anew(void **state)
{
    (void)state;
    struct tk_bound bound = record(1, 3, 1);
    assert_int_equal(here(&bound), place_of(3, 0));
    bound = record(1, 3, 2);
    assert_int_equal(here(&bound), place_of(3, 1));
    assert_int_equal(ipc.closes, 1);
}

/* Of two endpoints one is used before the other: neither keeps the freed memory. */
static void no_endpoint_keeps_memory_that_was_freed(void **state)
{
    (void)state;
    struct tk_bound one = record(1, 3, 1), two = record(2, 3, 1);
    here(&one);
    here(&two);
    one = record(1, 3, 2);
    two = record(2, 3, 2);
    assert_int_equal(here(&one), place_of(3, 1));
    assert_int_equal(here(&two), place_of(3, 1));
    assert_int_equal(ipc.opens, 2);
    assert_int_equal(ipc.closes, 1);
}

static void memory_made_anew_may_be_mapped_where_the_old_one_was_not(void **state)
{
    (void)state;
    struct tk_bound bound = record(1, 3, 1);
    ipc.refuses = true;
    assert_int_equal(here(&bound), 0);
    ipc.refuses = false;
    assert_int_equal(here(&bound), 0); /* it is not asked again */
    bound = record(1, 3, 2);
    assert_int_equal(here(&bound), place_of(3, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(a_segment_is_mapped_once),
    TEST(segments_in_one_allocation_share_its_mapping),
    TEST(a_record_that_replaces_another_closes_its_mapping),
    TEST(memory_made_anew_is_mapped_anew),
    TEST(no_endpoint_keeps_memory_that_was_freed),
    TEST(memory_made_anew_may_be_mapped_where_the_old_one_was_not),
};

UNIT_MAIN(tests)
