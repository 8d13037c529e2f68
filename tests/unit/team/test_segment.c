/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Segments of this process and the endpoints they are bound to, with real memory, a peer table of
 * its own, and a fake network that records registrations. */
#include "config.h"

#include <dirent.h>
#include <sys/mman.h>

#include "bootstrap/bootstrap.h"
#include "settings/settings.h"
#include "team/objects.h"
#include "transport/shm/shm.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

enum { ranks = 4, me = 2, pages = 4 };

/* ---- the network, and neighbours */

static struct {
    bool is_open, pins, fails;
    int registered, calls;
    size_t present; /* bytes of the client's memory that were there when it was registered */
    const void *segment;
} network;
static unsigned admitted;
static const uint32_t keys[] = {71, 72};

bool tk_transports_pin(void)
{
    return network.is_open && network.pins;
}

static size_t present(const struct tk_region *region)
{
    unsigned char is_there[64];
    size_t count = region->size / tk_page_size(), bytes = 0;
    assert_true(count <= sizeof(is_there));
    assert_int_equal(mincore(region->base, region->size, is_there), 0);
    for (size_t i = 0; i < count; i++)
        bytes += is_there[i] & 1 ? tk_page_size() : 0;
    return bytes;
}

enum tk_status tk_transports_register(struct tk_region *region)
{
    if (!network.is_open)
        return TK_OK;
    network.calls++;
    network.present = present(region);
    if (network.fails)
        return TK_FAIL;
    network.registered++;
    region->handle = &network;
    region->local_keys = region->remote_keys = keys;
    return TK_OK;
}

void tk_transports_unregister(struct tk_region *region)
{
    network.registered--;
    region->handle = NULL;
}

void tk_transports_use_segment(const struct tk_region *region)
{
    network.segment = region ? region->base : NULL;
}

void tk_neighbours_admit(void)
{
    admitted++;
}

struct tk_topology tk_topology;

static struct trunkline_ep *ep1, *ep2;
static void *own; /* memory of the client's, untouched */
static size_t size;

/* A rank without neighbours whose network is open. */
static int set_up(void **state)
{
    unit_settings(NULL, NULL);
    size = pages * tk_page_size();
    memset(&network, 0, sizeof(network));
    network.is_open = true;
    admitted = 0;
    static uint32_t neighbours[] = {0, 1};
    tk_topology = (struct tk_topology){
        .hosts = 1, .local_size = 1, .nbrhd_size = 1, .nbrhd_ranks = neighbours, .cpus = 1};
    static uintptr_t offsets[ranks];
    if (tk_peers_open(me, ranks) != TK_OK)
        return -1;
    tk_peers_unmap(offsets, ranks);
    offsets[me] = 0;
    tk_peers.offsets = offsets;
    tk_peers.rails = 2;
    if (!ep1) {
        ep1 = tk_ep_create(GEX_EP_CAPABILITY_RMA, 0);
        ep2 = tk_ep_create(GEX_EP_CAPABILITY_RMA, 0);
    }
    own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return own == MAP_FAILED;
}

static int tear_down(void **state)
{
    munmap(own, size);
    return ep1->segment || ep2->segment || tk_ep.segment || network.registered;
}

static int open_files(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* ---- memory */

static void memory_of_the_library_is_zeroed_and_a_file(void **state)
{
    struct trunkline_segment *s = tk_segment_create(NULL, size);
    assert_non_null(s->base);
    assert_int_equal(s->size, size);
    assert_true(s->area.fd >= 0);
    assert_ptr_equal(s->client, &tk_client);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(((char *)s->base)[i], 0);
    memset(s->base, 1, size);
    tk_segment_destroy(s);
}

static void memory_of_the_library_goes_with_the_segment(void **state)
{
    int before = open_files();
    struct trunkline_segment *s = tk_segment_create(NULL, size);
    unsigned char is_there;
    void *base = s->base;
    assert_int_equal(open_files(), before + 1);
    tk_segment_destroy(s);
    assert_int_equal(open_files(), before);
    assert_int_not_equal(mincore(base, 1, &is_there), 0);
}

static void memory_of_the_client_stays_the_clients(void **state)
{
    memset(own, 'c', size);
    struct trunkline_segment *s = tk_segment_create(own, size);
    assert_ptr_equal(s->base, own);
    assert_int_equal(s->area.fd, -1);
    tk_segment_destroy(s);
    assert_int_equal(((char *)own)[size - 1], 'c');
}

/* ---- registration */

static void a_segment_is_registered_once_and_as_a_whole(void **state)
{
    struct trunkline_segment *s = tk_segment_create(own, size);
    assert_int_equal(network.registered, 1);
    assert_ptr_equal(s->region.base, own);
    assert_int_equal(s->region.size, size);
    tk_segment_destroy(s);
    assert_int_equal(network.registered, 0);
    assert_int_equal(network.calls, 1);
}

static void without_a_network_nothing_is_registered(void **state)
{
    network.is_open = false;
    struct trunkline_segment *s = tk_segment_create(NULL, size);
    assert_int_equal(network.calls, 0);
    assert_null(tk_segment_bound(ep1, s).keys);
    tk_segment_destroy(s);
}

static void a_registration_that_fails_leaves_nothing_behind(void **state)
{
    int before = open_files();
    network.fails = true;
    assert_null(tk_segment_create(NULL, size));
    assert_null(tk_segment_create(own, size));
    assert_int_equal(tk_segment_fill(&tk_segment, NULL, size), TK_FAIL);
    assert_null(tk_segment.base);
    assert_int_equal(tk_segment.size, 0);
    assert_int_equal(network.calls, 3);
    assert_int_equal(open_files(), before);
}

static void after_a_failure_the_same_segment_can_be_filled(void **state)
{
    network.fails = true;
    assert_int_equal(tk_segment_fill(&tk_segment, NULL, size), TK_FAIL);
    network.fails = false;
    assert_int_equal(tk_segment_fill(&tk_segment, NULL, size), TK_OK);
    tk_segment_empty(&tk_segment);
}

static void where_a_device_pins_memory_it_is_present_before(void **state)
{
    network.pins = true;
    struct trunkline_segment *s = tk_segment_create(NULL, size);
    assert_int_equal(tk_area_present(&s->area), size);
    tk_segment_destroy(s);
    if (tk_populate(own, tk_page_size()) != 0)
        skip(); /* before Linux 5.14 */
    tk_segment_destroy(tk_segment_create(own, size));
    assert_int_equal(network.present, size);
}

static void where_none_pins_memory_it_comes_when_it_is_touched(void **state)
{
    struct trunkline_segment *s = tk_segment_create(NULL, size);
    assert_int_equal(tk_area_present(&s->area), 0);
    tk_segment_destroy(s);
    tk_segment_destroy(tk_segment_create(own, size));
    assert_int_equal(network.present, 0);
}

static void memory_is_reserved_where_the_user_wants_it(void **state)
{
    unit_settings("GASNET_SEGMENT_RESERVE=1", NULL);
    struct trunkline_segment *s = tk_segment_create(NULL, size);
    assert_int_equal(tk_area_present(&s->area), size);
    tk_segment_destroy(s);
}

static void neighbours_are_let_in_only_for_memory_of_the_client(void **state)
{
    tk_segment_destroy(tk_segment_create(own, size));
    assert_int_equal(admitted, 0); /* there are none */
    tk_topology.nbrhd_size = 2;
    tk_segment_destroy(tk_segment_create(NULL, size));
    assert_int_equal(admitted, 0); /* they open the file */
    tk_segment_destroy(tk_segment_create(own, size));
    assert_int_equal(admitted, 1);
}

/* ---- binding */

static void a_bound_segment_is_what_others_are_given(void **state)
{
    struct trunkline_segment *s = tk_segment_create(NULL, size);
    assert_true(tk_segment_bind(ep1, s));
    assert_ptr_equal(ep1->segment, s);
    struct tk_bound bound = tk_bound_of(me, ep1->index);
    assert_int_equal(bound.base, (uintptr_t)s->base);
    assert_int_equal(bound.size, size);
    assert_int_equal(bound.endpoint, ep1->index);
    assert_int_equal(bound.fd, s->area.fd);
    assert_int_equal(bound.inode, s->area.inode);
    assert_memory_equal(bound.keys, keys, sizeof(keys));
    tk_segment_destroy(s);
}

static void memory_of_the_client_is_given_to_others_as_no_file(void **state)
{
    struct trunkline_segment *s = tk_segment_create(own, size);
    assert_int_equal(tk_segment_bound(ep1, s).fd, -1);
    tk_segment_destroy(s);
}

static void an_endpoint_has_one_segment_for_as_long_as_that_exists(void **state)
{
    struct trunkline_segment *first = tk_segment_create(NULL, size),
                             *second = tk_segment_create(own, size);
    assert_true(tk_segment_bind(ep1, first));
    assert_false(tk_segment_bind(ep1, second));
    assert_false(tk_segment_bind(ep1, first));
    assert_ptr_equal(ep1->segment, first);
    assert_int_equal(tk_bound_of(me, ep1->index).base, (uintptr_t)first->base);
    tk_segment_destroy(first);
    assert_true(tk_segment_bind(ep1, second));
    assert_int_equal(tk_bound_of(me, ep1->index).base, (uintptr_t)own);
    tk_segment_destroy(second);
}

static void a_segment_may_be_bound_to_several_endpoints_and_is_unbound_from_all(void **state)
{
    struct trunkline_segment *s = tk_segment_create(own, size);
    assert_true(tk_segment_bind(ep1, s));
    assert_true(tk_segment_bind(ep2, s));
    assert_true(tk_segment_bind(&tk_ep, s));
    tk_segment_destroy(s);
    assert_null(ep1->segment);
    assert_null(ep2->segment);
    assert_null(tk_ep.segment);
    for (uint32_t e = 0; e <= ep2->index; e++)
        assert_int_equal(tk_bound_of(me, e).size, 0);
}

static void messages_go_to_the_segment_of_endpoint_0(void **state)
{
    struct trunkline_segment *s = tk_segment_create(own, size);
    assert_true(tk_segment_bind(ep1, s));
    assert_int_equal(tk_segment_area.size, 0);
    assert_null(network.segment);
    assert_true(tk_segment_bind(&tk_ep, s));
    assert_ptr_equal(tk_segment_area.base, own);
    assert_int_equal(tk_segment_area.size, size);
    assert_ptr_equal(network.segment, own);
    tk_segment_destroy(s);
    assert_int_equal(tk_segment_area.size, 0);
    assert_null(network.segment);
}

static void a_network_is_given_no_segment_that_it_has_not_registered(void **state)
{
    network.is_open = false;
    struct trunkline_segment *s = tk_segment_create(own, size);
    assert_true(tk_segment_bind(&tk_ep, s));
    assert_null(network.segment);
    assert_ptr_equal(tk_segment_area.base, own);
    tk_segment_destroy(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(memory_of_the_library_is_zeroed_and_a_file),
    TEST(memory_of_the_library_goes_with_the_segment),
    TEST(memory_of_the_client_stays_the_clients),
    TEST(a_segment_is_registered_once_and_as_a_whole),
    TEST(without_a_network_nothing_is_registered),
    TEST(a_registration_that_fails_leaves_nothing_behind),
    TEST(after_a_failure_the_same_segment_can_be_filled),
    TEST(where_a_device_pins_memory_it_is_present_before),
    TEST(where_none_pins_memory_it_comes_when_it_is_touched),
    TEST(memory_is_reserved_where_the_user_wants_it),
    TEST(neighbours_are_let_in_only_for_memory_of_the_client),
    TEST(a_bound_segment_is_what_others_are_given),
    TEST(memory_of_the_client_is_given_to_others_as_no_file),
    TEST(an_endpoint_has_one_segment_for_as_long_as_that_exists),
    TEST(a_segment_may_be_bound_to_several_endpoints_and_is_unbound_from_all),
    TEST(messages_go_to_the_segment_of_endpoint_0),
    TEST(a_network_is_given_no_segment_that_it_has_not_registered),
};

UNIT_MAIN(tests)
