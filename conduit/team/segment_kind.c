/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Segments in the memory of devices: opens the memory and registers it with the HCAs as
 * GASNET_MK_WAY says. No state, no lock. */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "settings/settings.h"
#include "team/objects.h"
#include "transport/transport.h"

/* The fields that a device segment adds to a host segment. */
struct kind_part {
    struct tk_kind_memory memory;
    struct tk_bound_kind bound;
};

/* By what the memory is registered (NULL: it is not), and which attempts failed before. */
struct registration {
    const char *by;
    char why[400];
};

static struct kind_part *part_of(const struct trunkline_segment *segment)
{
    return (struct kind_part *)((char *)segment->kind_memory - offsetof(struct kind_part, memory));
}

static bool is_way(const char *way)
{
    return strcmp(tk_settings.mk_way, way) == 0;
}

static void note(struct registration *r, const char *way, const char *why)
{
    size_t used = strlen(r->why);
    snprintf(r->why + used, sizeof(r->why) - used, "%s%s: %s", used ? "; " : "", way, why);
}

/* The transports log why they refuse. */
static bool register_region(struct trunkline_segment *segment, struct registration *r,
                            const char *way)
{
    char why[300] = "";
    tk_report_into(why, sizeof(why));
    enum tk_status status = tk_transports_register(&segment->region);
    tk_report_into(NULL, 0);
    if (status != TK_OK)
        note(r, way, why);
    else if (segment->region.handle)
        r->by = way;
    return status == TK_OK;
}

/* The registration holds the dma-buf; the descriptor has no further use. */
static bool by_dmabuf(struct trunkline_segment *segment, struct registration *r)
{
    const struct tk_kind_memory *memory = segment->kind_memory;
    struct tk_region *region = &segment->region;
    struct tk_kind_why why;
    if (memory->device->class->export_dmabuf(memory->device, memory->base, memory->size,
                                             &region->dmabuf_fd, &region->dmabuf_offset,
                                             &why) != TK_OK) {
        region->dmabuf_fd = -1;
        note(r, "dma-buf", why.text);
        return false;
    }
    bool is_registered = register_region(segment, r, "dma-buf");
    close(region->dmabuf_fd);
    region->dmabuf_fd = -1;
    return is_registered;
}

static bool by_peer_memory(struct trunkline_segment *segment, struct registration *r)
{
    segment->region.dmabuf_fd = -1;
    return register_region(segment, r, "peer memory");
}

static bool register_any(struct trunkline_segment *segment, struct registration *r)
{
    bool is_auto = is_way("auto");
    segment->region = (struct tk_region){
        .base = segment->base, .size = segment->size, .is_device = true, .dmabuf_fd = -1};
    return ((is_auto || is_way("dmabuf")) && by_dmabuf(segment, r)) ||
           ((is_auto || is_way("peermem")) && by_peer_memory(segment, r));
}

static void print(const struct trunkline_segment *segment, const struct registration *r)
{
    char device[160], remote[60] = "staged through host memory";
    const struct tk_kind_memory *memory = segment->kind_memory;
    bool is_ipc = memory->has_ipc && !is_way("staged");
    if (!tk_settings.verboseenv)
        return;
    if (r->by)
        snprintf(remote, sizeof(remote), "in place by %s", r->by);
    tk_log_info("segment [%p, +%zu) of %s, memory of the %s: from other hosts %s, from ranks of "
                "this host %s%s%s (GASNET_MK_WAY=%s)",
                segment->base, (size_t)segment->size,
                tk_kind_device_text(memory->device, device, sizeof(device)),
                memory->is_ours ? "library" : "client", remote,
                is_ipc ? "by IPC" : "staged through host memory", r->why[0] ? "; " : "", r->why,
                tk_settings.mk_way);
}

/* Without a registration data is staged, unless the user asked for that registration. A job without
 * a network has no device to register with: handle is NULL there too. */
static enum tk_status kind_register(struct trunkline_segment *segment, struct tk_kind_why *why)
{
    struct registration r = {0};
    bool is_registered = register_any(segment, &r);
    print(segment, &r);
    if (is_registered || !(is_way("dmabuf") || is_way("peermem")))
        return TK_OK;
    return tk_kind_why(why, "it can't be registered as GASNET_MK_WAY=%s asks: %.150s",
                       tk_settings.mk_way, r.why);
}

static void describe(struct kind_part *part)
{
    const struct tk_kind_memory *memory = &part->memory;
    const struct tk_kind_facts *facts = &memory->device->facts;
    part->bound = (struct tk_bound_kind){.gex_class = (uint8_t)memory->device->class->gex_class,
                                         .has_ipc = memory->has_ipc,
                                         .needs_flush = facts->needs_flush,
                                         .serial = memory->serial,
                                         .offset = memory->ipc.offset};
    memcpy(part->bound.uuid, facts->uuid, sizeof(part->bound.uuid));
    memcpy(part->bound.ipc, memory->ipc.handle, sizeof(part->bound.ipc));
}

void tk_segment_close_kind(struct trunkline_segment *segment)
{
    struct kind_part *part = part_of(segment);
    tk_kind_memory_close(&part->memory);
    segment->kind_memory = NULL;
    free(part);
}

static enum tk_status kind_fill(struct trunkline_segment *segment, struct tk_kind_device *device,
                                const struct tk_area *asked, bool *is_argument,
                                struct tk_kind_why *why)
{
    struct kind_part *part = calloc(1, sizeof(*part));
    if (!part)
        tk_panic("out of memory for the description of a segment");
    if (tk_kind_memory_open(&part->memory, device, (uintptr_t)asked->base, asked->size, is_argument,
                            why) != TK_OK) {
        free(part);
        return TK_FAIL;
    }
    describe(part);
    segment->kind_memory = &part->memory;
    segment->base = (void *)part->memory.base;
    segment->size = part->memory.size;
    segment->area = (struct tk_area){.base = segment->base, .size = segment->size, .fd = -1};
    *is_argument = false;
    if (kind_register(segment, why) == TK_OK)
        return TK_OK;
    tk_segment_close_kind(segment);
    return TK_FAIL;
}

struct trunkline_segment *tk_segment_create_on(struct tk_kind_device *device, void *address,
                                               uintptr_t size, bool *is_argument,
                                               struct tk_kind_why *why)
{
    const struct tk_area asked = {.base = address, .size = size};
    struct trunkline_segment *segment = calloc(1, sizeof(*segment));
    if (!segment)
        tk_panic("out of memory for the description of a segment");
    segment->client = &tk_client;
    if (kind_fill(segment, device, &asked, is_argument, why) == TK_OK)
        return segment;
    free(segment);
    return NULL;
}

const struct tk_bound_kind *tk_segment_bound_kind(const struct trunkline_segment *segment)
{
    return segment->kind_memory ? &part_of(segment)->bound : NULL;
}

bool tk_segment_is_valid(const struct trunkline_segment *segment)
{
    struct tk_kind_why why;
    if (!segment->kind_memory || tk_kind_memory_is_valid(segment->kind_memory, &why))
        return true;
    tk_log_error("the memory under a device segment was freed before gex_Segment_Destroy(): %s",
                 why.text);
    return false;
}
