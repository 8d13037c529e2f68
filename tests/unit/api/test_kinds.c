/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_MK_* and segments in the memory of devices, from the call down to the driver of fake_cuda.c:
 * codes and reasons of refusals, any order of destruction, which setting registers which memory,
 * and what other ranks learn. The network and start/ are fakes of this test. */
#include "config.h"

#include <dirent.h>

#include "api/between.h"
#include "base/report.h"
#include "fake_cuda.h"
#include "gasnet_mk.h"
#include "settings/settings.h"
#include "start/start.h"
#include "team/objects.h"
#include "transport/neighbour.h"
#include "transport/transport.h"
#include "unit.h"

enum { ranks = 4, clients_context = 7 };

/* ---- start/ and neighbours */

uint64_t tk_segment_limit_local = 1, tk_segment_limit_global = 1;

enum tk_status tk_attach(uintptr_t size)
{
    (void)size;
    return TK_FAIL;
}

enum tk_status tk_publish(struct trunkline_tm *tm, struct trunkline_ep *const *eps, size_t count)
{
    (void)tm, (void)eps, (void)count;
    return TK_OK;
}

uintptr_t tk_neighbour_addr_offset(struct tk_peer *peer, uint32_t endpoint)
{
    (void)peer, (void)endpoint;
    return 0; /* mapped, if it were host memory */
}

void tk_neighbours_admit(void)
{
    fail(); /* no CPU reads memory of devices */
}

struct tk_topology tk_topology;

/* ---- the network */

static struct {
    bool has_dmabuf, has_peer_memory;
    int registered, by_dmabuf, by_address;
    uintptr_t base;
    size_t size;
    uint64_t offset;
    const void *used; /* for messages */
} network;
static const uint32_t keys[] = {71, 72};

static enum tk_status register_region(struct tk_region *region)
{
    assert_true(region->is_device);
    bool is_dmabuf = region->dmabuf_fd >= 0;
    *(is_dmabuf ? &network.by_dmabuf : &network.by_address) += 1;
    if (!(is_dmabuf ? network.has_dmabuf : network.has_peer_memory)) {
        tk_log_error("paper0 refuses %s", is_dmabuf ? "dma-bufs" : "addresses");
        return TK_FAIL;
    }
    network.base = (uintptr_t)region->base;
    network.size = region->size;
    network.offset = region->dmabuf_offset;
    network.registered++;
    region->handle = &network;
    region->local_keys = region->remote_keys = keys;
    return TK_OK;
}

static void unregister_region(struct tk_region *region)
{
    network.registered--;
    region->handle = NULL;
}

static void use_segment(const struct tk_region *region)
{
    network.used = region;
}

static bool pins(void)
{
    return false;
}

static const uint32_t *remote_keys(const struct tk_pinned *pinned)
{
    (void)pinned;
    return keys;
}

static const struct tk_transport_memory memory = {.register_region = register_region,
                                                  .unregister_region = unregister_region,
                                                  .pins = pins,
                                                  .use_segment = use_segment,
                                                  .remote_keys = remote_keys};
static const struct tk_transport transport = {.memory = &memory};

/* ---- */

static gex_Client_t client = &tk_client;
static gex_EP_t ep1, ep2;
static gex_MK_t kind;
static gex_Segment_t segment;
static enum tk_status staging_status;
static unsigned stagings;

static enum tk_status open_staging(void)
{
    stagings++;
    return staging_status;
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

static int files;

static int set_up(void **state)
{
    static uint32_t nbrhd_of[ranks], host_of[ranks], nbrhd_ranks[ranks];
    for (uint32_t r = 0; r < ranks; r++)
        nbrhd_ranks[r] = r;
    unit_settings(NULL, NULL);
    memset(&fake_cuda, 0, sizeof(fake_cuda));
    fake_cuda.count = 2;
    fake_cuda.has_dmabuf = 1;
    fake_cuda.stack[fake_cuda.depth++] = clients_context;
    memset(&network, 0, sizeof(network));
    network.has_dmabuf = network.has_peer_memory = true;
    tk_topology = (struct tk_topology){.nbrhd_of = nbrhd_of,
                                       .host_of = host_of,
                                       .nbrhd_ranks = nbrhd_ranks,
                                       .nbrhd_size = ranks,
                                       .nbrhds = 1};
    static uintptr_t offsets[ranks];
    if (tk_peers_open(0, ranks) != TK_OK)
        return -1;
    tk_peers_unmap(offsets, ranks);
    offsets[0] = 0;
    tk_peers.offsets = offsets;
    tk_peers.rails = 2;
    if (!ep1) {
        ep1 = tk_ep_create(GEX_EP_CAPABILITY_RMA, 0);
        ep2 = tk_ep_create(GEX_EP_CAPABILITY_RMA, 0);
    }
    tk_verbose_errors = true;
    tk_staging.open = open_staging;
    staging_status = TK_OK;
    stagings = 0;
    kind = GEX_MK_INVALID;
    segment = GEX_SEGMENT_INVALID;
    tk_transports.at[0] = &transport;
    tk_transports.count = 1;
    files = open_files();
    return 0;
}

static int tear_down(void **state)
{
    return fake_cuda.depth != 1 || fake_cuda.retained[0] || fake_cuda.retained[1] ||
           fake_cuda.streams || fake_cuda.events || network.registered || ep1->segment ||
           ep2->segment || open_files() != files;
}

static gex_MK_Create_args_t cuda(int device)
{
    return (gex_MK_Create_args_t){.gex_class = GEX_MK_CLASS_CUDA_UVA,
                                  .gex_args = {.gex_class_cuda_uva = {.gex_CUdevice = device}}};
}

static void create(int device)
{
    const gex_MK_Create_args_t args = cuda(device);
    assert_int_equal(gex_MK_Create(&kind, client, &args, 0), GASNET_OK);
}

/* The code, one line with the cause, and nothing changed. */
static void assert_no_kind(int code, const gex_MK_Create_args_t *args, gex_Flags_t flags,
                           const char *cause)
{
    gex_MK_t made = (gex_MK_t)&made;
    unit_listen();
    int got = gex_MK_Create(&made, client, args, flags);
    const char *said = unit_heard();
    assert_int_equal(got, code);
    assert_ptr_equal(made, &made);
    unit_assert_says(said, cause);
    assert_int_equal(unit_lines(said), 1);
    assert_int_equal(fake_cuda.depth, 1);
}

static void assert_no_segment(int code, void *address, size_t size, const char *cause)
{
    gex_Segment_t made = (gex_Segment_t)&made;
    unit_listen();
    int got = gex_Segment_Create(&made, client, address, size, kind, 0);
    const char *said = unit_heard();
    assert_int_equal(got, code);
    assert_ptr_equal(made, &made);
    unit_assert_says(said, cause);
    assert_int_equal(unit_lines(said), 1);
    assert_int_equal(network.registered, 0);
}

/* ---- kinds */

static void a_kind_says_what_it_is(void **state)
{
    create(1);
    assert_ptr_equal(gex_MK_QueryClient(kind), client);
    assert_int_equal(gex_MK_QueryFlags(kind), 0);
    assert_int_equal(gex_MK_QueryClass(kind), GEX_MK_CLASS_CUDA_UVA);
    assert_null(gex_MK_QueryCData(kind));
    gex_MK_SetCData(kind, &network);
    assert_ptr_equal(gex_MK_QueryCData(kind), &network);
    assert_int_equal(stagings, 1);
    gex_MK_Destroy(kind, 0);
}

static void wrong_arguments_are_bad_arguments(void **state)
{
    gex_MK_Create_args_t args = cuda(0);
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 1, "flags are 0x1");
    assert_no_kind(GASNET_ERR_BAD_ARG, NULL, 0, "args is NULL");
    args.gex_flags = (uint64_t)1 << 40;
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 0, "args->gex_flags 0x10000000000");
    args.gex_flags = 0;
    args.gex_class = GEX_MK_CLASS_HOST;
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 0, "its kind is GEX_MK_HOST");
    args.gex_class = (gex_MK_Class_t)4;
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 0, "class 4 is unknown");
    args.gex_class = (gex_MK_Class_t)-1;
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 0, "is unknown");
    args = (gex_MK_Create_args_t){.gex_class = GEX_MK_CLASS_ZE};
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 0, "gex_zeContext must not be NULL");
    args = cuda(0);
    client = GEX_CLIENT_INVALID;
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 0, "the client is GEX_CLIENT_INVALID");
    client = (gex_Client_t)&args;
    assert_no_kind(GASNET_ERR_BAD_ARG, &args, 0, "is not the client of gex_Client_Init");
    client = &tk_client;
    unit_listen();
    int code = gex_MK_Create(NULL, client, &args, 0);
    unit_assert_says(unit_heard(), "mk_p is NULL");
    assert_int_equal(code, GASNET_ERR_BAD_ARG);
}

static void what_lacks_is_a_matter_of_resources(void **state)
{
    gex_MK_Create_args_t args = cuda(2);
    assert_no_kind(GASNET_ERR_RESOURCE, &args, 0,
                   "gex_MK_Create: class CUDA_UVA: there is no CUDA device 2");
    args = cuda(0);
    fake_cuda.no_uva = 1;
    assert_no_kind(GASNET_ERR_RESOURCE, &args, 0, "no unified addressing");
    fake_cuda.no_uva = 0;
    fake_cuda.is_missing = true;
    assert_no_kind(GASNET_ERR_RESOURCE, &args, 0, "libcuda.so.1 can't be loaded");
    fake_cuda.is_missing = false;
    staging_status = TK_FAIL;
    gex_MK_t made;
    assert_int_equal(gex_MK_Create(&made, client, &args, 0), GASNET_ERR_RESOURCE);
    assert_int_equal(fake_cuda.retained[0], 0);
}

static void silent_clients_get_the_code_alone(void **state)
{
    gex_MK_Create_args_t args = cuda(2);
    tk_verbose_errors = false;
    unit_listen();
    int code = gex_MK_Create(&kind, client, &args, 0);
    assert_string_equal(unit_heard(), "");
    assert_int_equal(code, GASNET_ERR_RESOURCE);
}

static void destroy_kind(void *mk)
{
    gex_MK_Destroy(mk, 0);
}

static void host_memory_has_no_object(void **state)
{
    unit_assert_panic(destroy_kind, GEX_MK_HOST, "it is GEX_MK_HOST");
    unit_assert_panic(destroy_kind, GEX_MK_INVALID, "it is GEX_MK_INVALID");
}

/* ---- segments */

static void kinds_and_segments_go_in_any_order(void **state)
{
    gex_Segment_t more;
    gex_MK_t second;
    create(0);
    second = kind;
    create(0);
    assert_int_equal(gex_Segment_Create(&segment, client, NULL, 100, kind, 0), GASNET_OK);
    assert_int_equal(gex_Segment_Create(&more, client, NULL, 100, second, 0), GASNET_OK);
    gex_MK_Destroy(kind, 0);
    assert_int_equal(fake_cuda.retained[0], 1);
    gex_Segment_Destroy(more, 0);
    gex_MK_Destroy(second, 0);
    assert_int_equal(fake_cuda.retained[0], 1);
    gex_Segment_Destroy(segment, 0);
    assert_int_equal(fake_cuda.retained[0], 0);
    assert_int_equal(fake_cuda.allocations, 0);
}

static void a_segment_is_where_the_device_has_it(void **state)
{
    create(0);
    assert_int_equal(gex_Segment_Create(&segment, client, NULL, 100, kind, 0), GASNET_OK);
    assert_int_equal((uintptr_t)gex_Segment_QueryAddr(segment), heap);
    assert_int_equal(gex_Segment_QuerySize(segment), 65536);
    assert_ptr_equal(gex_Segment_QueryClient(segment), client);
    gex_Segment_Destroy(segment, 0);
    uintptr_t own = fake_cuda_allocate(5000, 0);
    assert_int_equal(gex_Segment_Create(&segment, client, (void *)(own + 8), 77, kind, 0),
                     GASNET_OK);
    assert_int_equal((uintptr_t)gex_Segment_QueryAddr(segment), own + 8);
    assert_int_equal(gex_Segment_QuerySize(segment), 77);
    gex_Segment_Destroy(segment, 0);
    assert_int_equal(fake_cuda.allocations, 1);
    gex_MK_Destroy(kind, 0);
}

static void a_wrong_address_is_a_bad_argument_and_no_memory_is_not(void **state)
{
    create(0);
    uintptr_t own = fake_cuda_allocate(4096, 0);
    fake_cuda_allocate(4096, 0);
    assert_no_segment(GASNET_ERR_BAD_ARG, (void *)own, 4097, "is not in one allocation");
    assert_no_segment(GASNET_ERR_BAD_ARG, &network, 1, "is not memory of CUDA");
    fake_cuda.failing = "cuMemAlloc";
    fake_cuda.code = 2;
    assert_no_segment(
        GASNET_ERR_RESOURCE, NULL, 100,
        "gex_Segment_Create: 100 bytes of CUDA_UVA: cuMemAlloc of 65536 bytes, of 12345");
    gex_MK_Destroy(kind, 0);
}

static void setting(const char *way)
{
    char text[40];
    snprintf(text, sizeof(text), "GASNET_MK_WAY=%s", way);
    unit_settings(text, NULL);
}

static void the_setting_says_how_memory_is_registered(void **state)
{
    static const struct {
        const char *way;
        bool has_dmabuf, has_peer_memory;
        int by_dmabuf, by_address, registered;
        const char *error; /* NULL: made */
    } cases[] = {
        {"auto", true, true, 1, 0, 1, NULL},
        {"auto", false, true, 1, 1, 1, NULL},
        {"auto", false, false, 1, 1, 0, NULL},
        {"dmabuf", true, true, 1, 0, 1, NULL},
        {"dmabuf", false, true, 1, 0, 0, "GASNET_MK_WAY=dmabuf asks: dma-buf: paper0 refuses dma"},
        {"peermem", true, true, 0, 1, 1, NULL},
        {"peermem", true, false, 0, 1, 0, "asks: peer memory: paper0 refuses addresses"},
        {"ipc", true, true, 0, 0, 0, NULL},
        {"staged", true, true, 0, 0, 0, NULL},
    };
    create(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        network.by_dmabuf = network.by_address = 0;
        network.has_dmabuf = cases[i].has_dmabuf;
        network.has_peer_memory = cases[i].has_peer_memory;
        setting(cases[i].way);
        if (cases[i].error) {
            assert_no_segment(GASNET_ERR_RESOURCE, NULL, 100, cases[i].error);
        } else {
            assert_int_equal(gex_Segment_Create(&segment, client, NULL, 100, kind, 0), GASNET_OK);
            assert_int_equal(network.registered, cases[i].registered);
            gex_Segment_Destroy(segment, 0);
        }
        assert_int_equal(network.by_dmabuf, cases[i].by_dmabuf);
        assert_int_equal(network.by_address, cases[i].by_address);
        assert_int_equal(network.registered, 0);
        assert_int_equal(fake_cuda.allocations, 0);
    }
    gex_MK_Destroy(kind, 0);
}

static void a_job_without_a_network_registers_nothing(void **state)
{
    tk_transports.count = 0;
    setting("dmabuf");
    create(0);
    assert_int_equal(gex_Segment_Create(&segment, client, NULL, 100, kind, 0), GASNET_OK);
    assert_null(segment->region.handle);
    gex_Segment_Destroy(segment, 0);
    gex_MK_Destroy(kind, 0);
}

static void a_dma_buf_is_of_the_segment(void **state)
{
    create(0);
    uintptr_t own = fake_cuda_allocate(65536, 0);
    assert_int_equal(gex_Segment_Create(&segment, client, (void *)(own + 5000), 77, kind, 0),
                     GASNET_OK);
    assert_int_equal(network.base, own + 5000);
    assert_int_equal(network.size, 77);
    assert_int_equal(network.offset, 5000 % 4096);
    gex_Segment_Destroy(segment, 0);
    gex_MK_Destroy(kind, 0);
}

/* ---- endpoints */

static void a_device_segment_is_bound_to_other_endpoints_than_0(void **state)
{
    create(0);
    assert_int_equal(gex_Segment_Create(&segment, client, NULL, 100, kind, 0), GASNET_OK);
    unit_listen();
    int code = gex_EP_BindSegment(&tk_ep, segment, 0);
    const char *said = unit_heard();
    assert_int_equal(code, GASNET_ERR_BAD_ARG);
    unit_assert_says(said, "can't be bound to endpoint 0");
    assert_int_equal(unit_lines(said), 1);
    assert_null(tk_ep.segment);
    assert_int_equal(gex_EP_BindSegment(ep1, segment, 0), GASNET_OK);
    assert_int_equal(gex_EP_BindSegment(ep2, segment, 0), GASNET_OK);
    assert_null(network.used);
    gex_Segment_Destroy(segment, 0);
    gex_MK_Destroy(kind, 0);
}

static void memory_freed_under_a_segment_is_not_bound(void **state)
{
    create(0);
    uintptr_t own = fake_cuda_allocate(4096, 0);
    assert_int_equal(gex_Segment_Create(&segment, client, (void *)own, 77, kind, 0), GASNET_OK);
    fake_cuda.allocations = 0;
    unit_listen();
    int code = gex_EP_BindSegment(ep1, segment, 0);
    const char *said = unit_heard();
    assert_int_equal(code, GASNET_ERR_BAD_ARG);
    unit_assert_says(said, "was freed before gex_Segment_Destroy()");
    assert_int_equal(unit_lines(said), 1);
    gex_Segment_Destroy(segment, 0);
    gex_MK_Destroy(kind, 0);
}

/* Neither its owner nor a neighbour can load from it. */
static void others_learn_what_they_need_and_no_local_address(void **state)
{
    void *owner, *local = &owner;
    uintptr_t size;
    create(1);
    uintptr_t own = fake_cuda_allocate(8192, 1);
    assert_int_equal(gex_Segment_Create(&segment, client, (void *)(own + 64), 77, kind, 0),
                     GASNET_OK);
    assert_int_equal(gex_EP_BindSegment(ep1, segment, 0), GASNET_OK);
    struct tk_bound bound = tk_bound_of(tk_peers.me, ep1->index);
    assert_int_equal(bound.kind->gex_class, GEX_MK_CLASS_CUDA_UVA);
    assert_int_equal(bound.kind->offset, 64);
    assert_true(bound.kind->has_ipc && bound.kind->needs_flush);
    assert_memory_equal(bound.kind->ipc, &own, sizeof(own));
    assert_memory_equal(bound.kind->uuid, "bbbbbbbbbbbbbbbb", 16);
    assert_memory_equal(bound.keys, keys, sizeof(keys));
    assert_int_equal(bound.fd, -1);
    bound.base = 0x1234;
    bound.keys = NULL;
    tk_bound_set(2, &bound);
    for (gex_Rank_t r = 0; r < 3; r += 2) {
        gex_Event_t event = gex_EP_QueryBoundSegmentNB(gex_TM_Pair(&tk_ep, ep1->index), r, &owner,
                                                       &local, &size, 0);
        assert_ptr_equal(event, GEX_EVENT_INVALID);
        assert_int_equal((uintptr_t)owner, r == 0 ? own + 64 : 0x1234);
        assert_int_equal(size, 77);
        assert_null(local);
    }
    gex_Segment_Destroy(segment, 0);
    gex_MK_Destroy(kind, 0);
}

static void users_see_devices_and_why_a_path_is_not_taken(void **state)
{
    unit_settings("GASNET_VERBOSEENV=1", NULL);
    network.has_dmabuf = false;
    unit_listen();
    const gex_MK_Create_args_t args = cuda(1);
    int code = gex_MK_Create(&kind, client, &args, 0);
    const char *said = unit_heard();
    assert_int_equal(code, GASNET_OK);
    unit_assert_says(said, "memory kind of CUDA_UVA device 1 (Paper 1, PCI 0001:3b:01.0)");
    assert_int_equal(unit_lines(said), 1);
    unit_listen();
    code = gex_Segment_Create(&segment, client, NULL, 100, kind, 0);
    said = unit_heard();
    assert_int_equal(code, GASNET_OK);
    unit_assert_says(said, "from other hosts in place by peer memory");
    unit_assert_says(said, "from ranks of this host by IPC");
    unit_assert_says(said, "dma-buf: paper0 refuses dma-bufs");
    assert_int_equal(unit_lines(said), 1);
    gex_Segment_Destroy(segment, 0);
    /* HCAs serve only ranks of other hosts. */
    unit_listen();
    fake_cuda.failing = "cuIpcGetMemHandle";
    fake_cuda.code = 801;
    code = gex_Segment_Create(&segment, client, NULL, 100, kind, 0);
    fake_cuda.failing = NULL;
    said = unit_heard();
    assert_int_equal(code, GASNET_OK);
    unit_assert_says(said, "from other hosts in place by peer memory, from ranks of this host "
                           "staged through host memory");
    gex_Segment_Destroy(segment, 0);
    unit_settings("GASNET_VERBOSEENV=1", "GASNET_MK_WAY=staged", NULL);
    unit_listen();
    code = gex_Segment_Create(&segment, client, NULL, 100, kind, 0);
    said = unit_heard();
    assert_int_equal(code, GASNET_OK);
    unit_assert_says(said, "from other hosts staged through host memory, from ranks of this host "
                           "staged through host memory (GASNET_MK_WAY=staged)");
    gex_Segment_Destroy(segment, 0);
    gex_MK_Destroy(kind, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(a_kind_says_what_it_is),
    TEST(wrong_arguments_are_bad_arguments),
    TEST(what_lacks_is_a_matter_of_resources),
    TEST(silent_clients_get_the_code_alone),
    TEST(host_memory_has_no_object),
    TEST(kinds_and_segments_go_in_any_order),
    TEST(a_segment_is_where_the_device_has_it),
    TEST(a_wrong_address_is_a_bad_argument_and_no_memory_is_not),
    TEST(the_setting_says_how_memory_is_registered),
    TEST(a_job_without_a_network_registers_nothing),
    TEST(a_dma_buf_is_of_the_segment),
    TEST(a_device_segment_is_bound_to_other_endpoints_than_0),
    TEST(memory_freed_under_a_segment_is_not_bound),
    TEST(others_learn_what_they_need_and_no_local_address),
    TEST(users_see_devices_and_why_a_path_is_not_taken),
};

UNIT_MAIN(tests)
