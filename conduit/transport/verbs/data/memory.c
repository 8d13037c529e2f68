/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registered memory: slabs of message buffers, segments, and memory registered on the fly. Buffers
 * have one size, so that any free one serves any message; only those of shared receive queues may
 * be smaller (data/rendezvous.h). Pages of a slab are allocated on first use: a rank with 63 peers
 * posts 50 MB of buffers and touches few. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "trace/trace.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

static tk_lock_t growing = TK_LOCK_INIT; /* the list of slabs */

/* ---- one memory region on each device, and its keys by rail ---- */

static struct tk_registration *make_registration(void)
{
    struct tk_registration *r =
        calloc(1, tk_registration_bytes(tk_verbs.rail_count, tk_verbs.device_count));
    if (!r)
        return NULL;
    r->remote = r->local + tk_verbs.rail_count;
    r->mrs = (struct ibv_mr **)tk_align_up((uintptr_t)(r->remote + tk_verbs.rail_count),
                                           sizeof(*r->mrs));
    return r;
}

static size_t __attribute__((unused)) size_of(const struct tk_registration *r)
{
    for (uint32_t i = 0; i < tk_verbs.device_count; i++)
        if (r->mrs[i])
            return r->mrs[i]->length;
    return 0;
}

/* For traces: what the registration in progress is for. */
static inline void register_for(enum tk_trace_path what)
{
    if (tk_is_traced)
        tk_path_taken = 1 + (unsigned)what;
}

static void deregister(struct tk_registration *r)
{
    int error = errno;
    for (uint32_t i = 0; i < tk_verbs.device_count; i++)
        if (r->mrs[i])
            ibv_dereg_mr(r->mrs[i]);
    free(r);
    errno = error;
}

/* False: there is no `mr`. */
static bool keep(struct tk_registration *r, const struct tk_device *device, struct ibv_mr *mr)
{
    if (!mr)
        return false;
    r->mrs[device->index] = mr;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].device == device) {
            r->local[i] = mr->lkey;
            r->remote[i] = mr->rkey;
        }
    return true;
}

/* For error messages: the device that refused a registration. */
static const struct tk_device *refusing = &tk_verbs.device;

/* Registers with all devices, or with one alone. NULL: errno has the reason. */
static struct tk_registration *reg(const struct tk_device *only, void *base, size_t size,
                                   int access)
{
    struct tk_registration *r = make_registration();
    if (!r)
        return NULL;
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next) {
        if (only && device != only)
            continue;
        if (keep(r, device, ibv_reg_mr(device->pd, base, size, access)))
            continue;
        __atomic_store_n(&refusing, device, __ATOMIC_RELAXED);
        deregister(r);
        return NULL;
    }
    return r;
}

/* For registrations that last until exit: counts the memory as static. */
static struct tk_registration *reg_for_good(const struct tk_device *only, void *base, size_t size,
                                            const char *what, int remote_access)
{
    struct tk_registration *r = reg(only, base, size, IBV_ACCESS_LOCAL_WRITE | remote_access);
    if (!r)
        tk_explain_registration(refusing, what, size, errno);
    else
        tk_firehose_account_static((int64_t)size);
    return r;
}

/* Registering with on-demand paging checks no page. In memory that is not writable the first
 * transfer would fail, even one that only reads. So this refuses such memory, as pinning would. */
static struct tk_registration *reg_paged(void *base, size_t size, int access)
{
    if ((access & IBV_ACCESS_LOCAL_WRITE) && !tk_mapping_is_writable(base, size)) {
        errno = EFAULT;
        return NULL;
    }
    return reg(NULL, base, size, access | IBV_ACCESS_ON_DEMAND);
}

/* A paged segment pins no memory, so it counts against no limit. */
static struct tk_registration *reg_segment(void *base, size_t size)
{
    int access = IBV_ACCESS_LOCAL_WRITE | tk_verbs.remote_access;
    if (!tk_verbs.is_paged)
        return reg_for_good(NULL, base, size, "segment", tk_verbs.remote_access);
    struct tk_registration *r = reg_paged(base, size, access);
    if (!r)
        tk_explain_registration(refusing, "segment", size, errno);
    return r;
}

/* ---- memory of accelerators: no page of the host is pinned, and the CPU can't access it ---- */

static struct ibv_mr *accelerator_mr(struct ibv_pd *pd, const struct tk_region *region, int access)
{
    if (region->dmabuf_fd < 0)
        return ibv_reg_mr(pd, region->base, region->size, access);
    return tk_reg_dmabuf_mr(pd, region->dmabuf_offset, region->size, (uintptr_t)region->base,
                            region->dmabuf_fd, access);
}

/* The caller may have another way to register, so it decides whether this is printed. */
static void explain_accelerator(const struct tk_region *region, const struct tk_device *device)
{
    const char *call = region->dmabuf_fd < 0 ? "ibv_reg_mr" : "ibv_reg_dmabuf_mr";
    tk_log_error("%s of %zu bytes of an accelerator with %s: %s", call, region->size,
                 ibv_get_device_name(device->context->device), strerror(errno));
}

static struct tk_registration *reg_accelerator(const struct tk_region *region)
{
    int access = IBV_ACCESS_LOCAL_WRITE | tk_verbs.remote_access;
    struct tk_registration *r = make_registration();
    if (!r)
        return NULL;
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next) {
        if (keep(r, device, accelerator_mr(device->pd, region, access)))
            continue;
        explain_accelerator(region, device);
        deregister(r);
        return NULL;
    }
    return r;
}

enum tk_status tk_verbs_register(struct tk_region *region)
{
    TK_TRACED(memory_register, tk_trace_no_peer, region->size);
    register_for(tk_trace_path_segment);
    struct tk_registration *r =
        region->is_device ? reg_accelerator(region) : reg_segment(region->base, region->size);
    if (!r)
        return TK_FAIL;
    tk_count_rare(tk_counter_segments_registered);
    region->handle = r;
    region->local_keys = r->local;
    region->remote_keys = r->remote;
    return TK_OK;
}

bool tk_verbs_pins(void)
{
    return tk_verbs_is_open() && tk_verbs.pins && !tk_verbs.is_paged;
}

void tk_verbs_unregister(struct tk_region *region)
{
    TK_TRACED(memory_deregister, tk_trace_no_peer, region->size);
    register_for(tk_trace_path_segment);
    deregister(region->handle);
    region->handle = NULL;
    region->local_keys = region->remote_keys = NULL;
    if (!tk_verbs.is_paged && !region->is_device)
        tk_firehose_account_static(-(int64_t)region->size);
}

void tk_verbs_use_segment(const struct tk_region *region)
{
    tk_verbs.segment = region ? region->handle : NULL;
}

void tk_segment_forget(void)
{
    if (tk_verbs.segment)
        deregister(tk_verbs.segment);
    tk_verbs.segment = NULL;
}

/* ---- on the fly: peers get no access, except with registration on demand and on iWARP ---- */

static void *pin(void *base, size_t size, bool is_source, uint32_t *key)
{
    TK_TRACED(memory_register, tk_trace_no_peer, size);
    register_for(tk_trace_path_region);
    int access = is_source ? 0 : IBV_ACCESS_LOCAL_WRITE;
    /* On iWARP the peer's device writes the data of a read (RFC 5040 4.1). */
    if (tk_verbs.has_iwarp)
        access |= IBV_ACCESS_REMOTE_WRITE;
    if (tk_is_on_demand)
        access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct tk_registration *r =
        tk_verbs.is_paged ? reg_paged(base, size, access) : reg(NULL, base, size, access);
    if (r)
        *key = r->local[0];
    return r;
}

static void unpin(void *handle)
{
    TK_TRACED(memory_deregister, tk_trace_no_peer, size_of(handle));
    register_for(tk_trace_path_region);
    deregister(handle);
}

const uint32_t *tk_verbs_remote_keys(const struct tk_pinned *pinned)
{
    const struct tk_registration *r = pinned->handle;
    return r->remote;
}

static void explain(size_t size, int error)
{
    tk_warn_registration(__atomic_load_n(&refusing, __ATOMIC_RELAXED), size, error);
}

/* The minimum of all devices, because each device registers every region. */
static uint64_t regions_max(void)
{
    int least = 0;
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next) {
        struct ibv_device_attr attr = {.max_mr = 0};
        ibv_query_device(device->context, &attr);
        if (attr.max_mr > 0 && (least == 0 || attr.max_mr < least))
            least = attr.max_mr;
    }
    return (uint64_t)least;
}

enum tk_status tk_verbs_open_firehose(unsigned ranks_on_host, bool is_first)
{
    struct tk_firehose_device device = {.pin = pin,
                                        .unpin = unpin,
                                        .explain = explain,
                                        .regions_max = regions_max(),
                                        .sharers = ranks_on_host,
                                        .is_first = is_first,
                                        .is_paged = tk_verbs.is_paged};
    enum tk_status status = tk_firehose_open(&device);
    if (tk_firehose_is_open())
        tk_verbs.rma_limits.register_min = tk_settings.firehose_min;
    return status;
}

/* ---- slabs of buffers ---- */

static void buffer_open(struct tk_buffer *buffer, char *data, uint32_t size, const uint32_t *keys,
                        uint32_t key)
{
    buffer->data = data;
    buffer->keys = keys;
    buffer->sge = (struct ibv_sge){.addr = (uintptr_t)data, .length = size, .lkey = key};
    buffer->wr =
        (struct ibv_recv_wr){.wr_id = (uintptr_t)buffer, .sg_list = &buffer->sge, .num_sge = 1};
}

static void fill_pool(struct tk_slab *slab, unsigned count, struct tk_pool *pool,
                      const struct tk_rail *rail)
{
    const uint32_t *keys = slab->registration->local;
    uint32_t key = rail ? keys[rail - tk_verbs.rails] : keys[0];
    uint32_t size = rail ? tk_recv_size() : tk_buffer_size;
    char *first = (char *)slab->area.base + (rail ? 0 : tk_send_buffers_at);
    for (unsigned i = count; i-- > 0;) {
        char *data = first + i * tk_buffer_stride_of(size);
        buffer_open(&slab->buffers[i], data, size, keys, key);
        tk_pool_give(pool, &slab->buffers[i]);
    }
}

static struct tk_registration *reg_buffers(const struct tk_rail *rail, const struct tk_area *area,
                                           const char *what)
{
    TK_TRACED(memory_register, tk_trace_no_peer, area->size);
    register_for(tk_trace_path_buffers);
    return reg_for_good(rail ? rail->device : NULL, area->base, area->size, what,
                        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

/* With a rail: receive buffers of that rail, which may be smaller. Without: send buffers, for any
 * rail. */
static enum tk_status slab_open(const struct tk_rail *rail, struct tk_pool *pool, unsigned count,
                                const char *what)
{
    uint32_t buffer_size = rail ? tk_recv_size() : tk_buffer_size;
    struct tk_slab *slab = calloc(1, tk_slab_bytes(count));
    if (!slab) {
        tk_log_error("out of memory for %u buffers", count);
        return TK_FAIL;
    }
    if (tk_area_open(&slab->area, what, tk_slab_area_bytes(count, buffer_size), false) != TK_OK)
        goto free_slab;
    slab->registration = reg_buffers(rail, &slab->area, what);
    if (!slab->registration)
        goto close_area;
    fill_pool(slab, count, pool, rail);
    slab->next = tk_verbs.slabs;
    tk_verbs.slabs = slab;
    return TK_OK;
close_area:
    tk_area_close(&slab->area);
free_slab:
    free(slab);
    return TK_FAIL;
}

enum tk_status tk_bounce_pool_open(unsigned count)
{
    tk_pool_init(&tk_verbs.bounce_pool);
    if (slab_open(NULL, &tk_verbs.bounce_pool, count, "bounce buffers") != TK_OK)
        return TK_FAIL;
    /* The slab is registered with all devices, and not touched yet: so present pages were
     * pinned. */
    const struct tk_area *area = &tk_verbs.slabs->area;
    tk_verbs.pins = tk_area_present(area) >= area->size;
    return TK_OK;
}

static enum tk_status large_pool_grow(unsigned count)
{
    tk_lock(&growing);
    enum tk_status status =
        slab_open(NULL, &tk_verbs.large_pool, count, "buffers for large messages");
    tk_unlock(&growing);
    tk_count_add(tk_counter_large_buffers, count);
    return status;
}

enum tk_status tk_large_pool_open(unsigned count)
{
    tk_pool_init(&tk_verbs.large_pool);
    return count > 0 ? large_pool_grow(count) : TK_OK;
}

struct tk_buffer *tk_large_buffer_take(void)
{
    struct tk_buffer *buffer;
    while (!(buffer = tk_pool_take(&tk_verbs.large_pool)))
        if (large_pool_grow(tk_pool_growth_min) != TK_OK)
            tk_panic("no memory for a message larger than GASNET_RBUF_SIZE (%zu): fewer are under "
                     "way with a lower GASNET_AM_CREDITS_TOTAL, none with GASNET_RBUF_SIZE=0",
                     (size_t)tk_settings.rbuf_size);
    return buffer;
}

/* The sink is not a bounce buffer, because bounce buffers may run out. */
enum tk_status tk_fence_sink_open(void)
{
    struct tk_pool pool;
    tk_pool_init(&pool);
    if (slab_open(NULL, &pool, 1, "reads behind puts") != TK_OK)
        return TK_FAIL;
    tk_verbs.fence_sink = tk_pool_take(&pool);
    return TK_OK;
}

/* The first put that must be flushed may be that of a rank without accelerators. */
void tk_fence_sink_need(void)
{
    tk_lock(&growing);
    if (!tk_verbs.fence_sink && tk_fence_sink_open() != TK_OK)
        tk_panic("no registered memory for reads behind puts to memory of accelerators");
    tk_unlock(&growing);
}

enum tk_status tk_recv_pool_open(struct tk_rail *rail, unsigned count)
{
    tk_pool_init(&rail->recv_pool);
    rail->recv_buffers = count;
    if (count == 0)
        return TK_OK;
    return slab_open(rail, &rail->recv_pool, count, "receive buffers");
}

TK_FIRST_USE unsigned tk_recv_buffers_wanted(uint32_t conns, uint32_t primaries)
{
    const struct tk_verbs_limits limits = {.credits_pp = tk_verbs.credits_pp,
                                           .credits_total = tk_verbs.credits_all};
    const struct tk_verbs_receivers receivers = {.primaries = primaries,
                                                 .conns = conns,
                                                 .notices = (unsigned)tk_notice_buffers(),
                                                 .is_threaded = TK_THREADED};
    return tk_verbs_receive_buffers(&limits, &receivers);
}

enum tk_status tk_recv_pool_grow(struct tk_rail *rail)
{
    tk_lock(&growing);
    enum tk_status status =
        slab_open(rail, &rail->recv_pool, tk_pool_growth_min, "receive buffers");
    tk_unlock(&growing);
    return status;
}

enum tk_status tk_recv_pool_fit(struct tk_rail *rail, unsigned wanted)
{
    unsigned more = tk_verbs_pool_growth(rail->recv_buffers, wanted);
    if (more == 0)
        return TK_OK;
    tk_lock(&growing);
    enum tk_status status = slab_open(rail, &rail->recv_pool, more, "receive buffers");
    tk_unlock(&growing);
    if (status == TK_OK)
        rail->recv_buffers += more;
    return status;
}

/* Also takes buffers of other ports of the same device: a dead port does not need its buffers. */
struct tk_buffer *tk_recv_buffer_take(struct tk_rail *rail)
{
    struct tk_buffer *buffer = tk_pool_take(&rail->recv_pool);
    for (uint32_t i = 0; !buffer && i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].device == rail->device)
            buffer = tk_pool_take(&tk_verbs.rails[i].recv_pool);
    if (!buffer && tk_recv_pool_grow(rail) == TK_OK)
        buffer = tk_pool_take(&rail->recv_pool);
    return buffer;
}

void tk_buffers_close(void)
{
    while (tk_verbs.slabs) {
        struct tk_slab *slab = tk_verbs.slabs;
        tk_verbs.slabs = slab->next;
        deregister(slab->registration);
        tk_firehose_account_static(-(int64_t)slab->area.size);
        tk_area_close(&slab->area);
        free(slab);
    }
}
