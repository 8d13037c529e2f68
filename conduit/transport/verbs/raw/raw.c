/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Raw rails for clients: opens the ports of the job's own rails again, or the ports that the job
 * would choose if it needed any; also domains, memory and completion queues on them. Owns the
 * rails. No lock: one thread opens and closes rails; otherwise they are only read. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"
#include "transport/verbs/raw/raw.h"
#include "transport/verbs/raw/raw_private.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

static struct {
    struct tk_rail *rails;
    trunkline_rail_t *described;
    uint32_t count;
} raw;

const struct tk_rail *tk_raw_rail(const trunkline_rail_t *rail)
{
    return &raw.rails[rail->index];
}

static void *table(uint32_t count, size_t size)
{
    void *rows = calloc(count, size);
    if (!rows)
        tk_log_error("out of memory for %u rails", count);
    return rows;
}

/* ---- Which ports */

/* Once for all rails of a device. */
static struct ibv_context *raw_open_device(const struct ibv_context *other)
{
    for (uint32_t i = 0; i < raw.count; i++)
        if (raw.rails[i].context->device == other->device)
            return raw.rails[i].context;
    struct ibv_context *context = ibv_open_device(other->device);
    if (!context)
        tk_log_error("%s can't be opened once more: %s", ibv_get_device_name(other->device),
                     strerror(errno));
    return context;
}

static enum tk_status take_again(const struct tk_rail *other)
{
    struct tk_rail *rail = &raw.rails[raw.count];
    struct ibv_context *context = raw_open_device(other->context);
    if (!context)
        return TK_FAIL;
    const char *why = tk_port_take(rail, context, other->address.port);
    rail->context = context;
    raw.count++; /* before the rest, so that the context is always closed */
    if (!why)
        return TK_OK;
    tk_log_error("%s:%u %s", other->address.device, other->address.port, why);
    return TK_FAIL;
}

static enum tk_status take_those_of_the_job(void)
{
    raw.rails = table(tk_verbs.rail_count, sizeof(*raw.rails));
    for (uint32_t i = 0; raw.rails && i < tk_verbs.rail_count; i++)
        if (take_again(&tk_verbs.rails[i]) != TK_OK)
            return TK_FAIL;
    return raw.rails ? TK_OK : TK_FAIL;
}

static enum tk_status raw_choose(uint32_t turn)
{
    struct tk_choice choice;
    enum tk_status status = tk_rails_choose(&choice, turn, NULL);
    raw.rails = choice.rails;
    raw.count = choice.count;
    if (status != TK_OK || choice.count > 0)
        return status;
    tk_rails_report_none(choice.unused);
    return TK_FAIL;
}

/* ---- Their description */

static enum tk_status describe_rail(uint32_t index)
{
    const struct tk_rail *rail = &raw.rails[index];
    const struct tk_port_address *a = &rail->address;
    trunkline_rail_t *described = &raw.described[index];
    *described = (trunkline_rail_t){.context = rail->context,
                                    .index = index,
                                    .rate_mbps = a->rate_mbps,
                                    .message_max = rail->message_max,
                                    .mtu = 128u << a->mtu,
                                    .lid = a->lid,
                                    .pkey_index = (uint16_t)rail->pkey_index,
                                    .gid_index = (uint8_t)a->gids[0].index,
                                    .port = a->port,
                                    .is_ethernet = a->is_ethernet,
                                    .reads_in = a->reads,
                                    .reads_out = a->reads_out};
    if (a->needs_gid)
        memcpy(described->gid, a->gids[0].raw, sizeof(described->gid));
    snprintf(described->name, sizeof(described->name), "%s:%u", a->device, a->port);
    int error = ibv_query_device(rail->context, &described->limits);
    if (!error)
        return TK_OK;
    tk_log_error("%s can't be queried: %s", a->device, strerror(error));
    return TK_FAIL;
}

static enum tk_status describe_rails(void)
{
    raw.described = table(raw.count, sizeof(*raw.described));
    for (uint32_t i = 0; raw.described && i < raw.count; i++)
        if (describe_rail(i) != TK_OK)
            return TK_FAIL;
    return raw.described ? TK_OK : TK_FAIL;
}

enum tk_status tk_raw_check(void)
{
    struct tk_port_family family;
    return tk_port_family_find(&family, 0); /* is the name of the setting valid? */
}

enum tk_status tk_raw_open(const trunkline_rail_t **rails, unsigned *count, uint32_t turn)
{
    if (!raw.described) {
        enum tk_status status = tk_verbs_is_open() ? take_those_of_the_job() : raw_choose(turn);
        if (status == TK_OK)
            status = describe_rails();
        if (status != TK_OK) {
            tk_raw_close();
            return status;
        }
    }
    *rails = raw.described;
    *count = raw.count;
    return TK_OK;
}

void tk_raw_close(void)
{
    for (uint32_t i = 0; i < raw.count; i++) {
        bool is_last = true;
        for (uint32_t later = i + 1; later < raw.count; later++)
            is_last &= raw.rails[later].context != raw.rails[i].context;
        if (is_last)
            ibv_close_device(raw.rails[i].context);
    }
    free(raw.rails);
    free(raw.described);
    raw.rails = NULL;
    raw.described = NULL;
    raw.count = 0;
}

/* ---- What is on them */

enum tk_status tk_raw_domain_open(trunkline_domain_t *domain, const trunkline_rail_t *rail,
                                  bool own_context)
{
    *domain = (trunkline_domain_t){.rail = rail, .context = rail->context};
    if (own_context)
        domain->context = ibv_open_device(rail->context->device);
    if (domain->context)
        domain->pd = ibv_alloc_pd(domain->context);
    if (domain->pd)
        return TK_OK;
    tk_log_error("%s: no protection domain%s: %s; the device has %d", rail->name,
                 own_context ? " in a context of its own" : "", strerror(errno),
                 rail->limits.max_pd);
    tk_raw_domain_close(domain);
    return TK_FAIL;
}

void tk_raw_domain_close(trunkline_domain_t *domain)
{
    if (domain->pd)
        ibv_dealloc_pd(domain->pd);
    if (domain->context && domain->context != domain->rail->context)
        ibv_close_device(domain->context);
    *domain = (trunkline_domain_t){.pd = NULL};
}

enum tk_status tk_raw_memory_open(struct ibv_mr **memory, const trunkline_domain_t *domain,
                                  void *address, size_t size, int access)
{
    const struct tk_device device = {.context = domain->context};
    *memory = ibv_reg_mr(domain->pd, address, size, access);
    if (*memory)
        return TK_OK;
    tk_explain_registration(&device, "client", size, errno);
    return TK_FAIL;
}

enum tk_status tk_raw_cq_open(struct ibv_cq **cq, const trunkline_domain_t *domain, uint32_t depth,
                              struct ibv_comp_channel *channel)
{
    const struct ibv_device_attr *limits = &domain->rail->limits;
    *cq = ibv_create_cq(domain->context, (int)depth, NULL, channel, 0);
    if (*cq)
        return TK_OK;
    tk_log_error("%s: no completion queue of %u entries: %s; the device has %d of up to %d",
                 domain->rail->name, depth, strerror(errno), limits->max_cq, limits->max_cqe);
    return TK_FAIL;
}
