/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much the cache may pin, by the settings of the manual: a victim pool for this rank's own
 * transfers and, where segments are not registered as a whole, a main pool for transfers of other
 * ranks. One cache serves both: space that other ranks have not requested is available to this
 * rank. No limit is found by probing. No state. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "firehose/firehose_private.h"
#include "memory/memory.h"
#include "settings/settings.h"

enum {
    /* Each watched region may split a mapping in three, and Linux allows a process 65530 mappings
       (vm.max_map_count). */
    regions_default_max = 16384,
    /* A transfer may begin and end inside of granules, which a neighbouring transfer shares. */
    regions_per_granule = 2,
    regions_per_bucket = 2, /* with all in use, a lookup visits two on average */
    buckets_max = 1 << 20
};

static const double pinnable_part = 2.0 / 3, /* of the host's memory, as in the manual */
    main_part = 0.75; /* of that, where other ranks use it too, as in the manual */

/* A number below 1 is a fraction of `whole`. */
static enum tk_status find_share(const char *name, const char *text, double whole, double *value)
{
    if (!tk_parse_share(text, value)) {
        tk_log_error("%s='%s' is neither a fraction below 1 (as 0.5 or 5/8) nor a number from 1 "
                     "(with K, M, G or T)",
                     name, text);
        return TK_FAIL;
    }
    if (*value < 1)
        *value *= whole;
    return TK_OK;
}

static size_t power_below(uint64_t value)
{
    size_t power = 1;
    while (power <= value / 2)
        power *= 2;
    return power;
}

/* A setting of 0: as large as necessary for the regions to cover all of the memory, within the
 * bounds of the manual. */
static size_t find_granule(uint64_t setting, uint64_t bytes, uint64_t regions)
{
    size_t page = tk_page_size(), granule = (size_t)128 << 10;
    if (setting > 0)
        return tk_max(page, power_below(setting));
    while (granule * regions < bytes && granule < page * page)
        granule *= 2;
    return granule;
}

static enum tk_status find_regions(double part, double device, unsigned sharers, double *regions)
{
    const char *text = tk_settings.pinned_regions_max;
    *regions = part * device;
    if (*text && find_share("GASNET_PINNED_REGIONS_MAX", text, device, regions) != TK_OK)
        return TK_FAIL;
    *regions /= sharers;
    if (!*text && *regions > regions_default_max)
        *regions = regions_default_max;
    return TK_OK;
}

/* Splits a pool into a main and a victim part. A part that is not given (0) gets the rest; if
 * neither is given, the main part gets `part` of the pool. */
static void share(double *pool, double *main, double victim, double part)
{
    if (*main == 0 && victim == 0)
        *main = part * *pool;
    else if (*main == 0)
        *main = *pool > victim ? *pool - victim : 0;
    else if (victim > 0)
        *pool = *main + victim;
    else if (*main > *pool)
        *pool = *main;
}

static void share_out(struct tk_firehose_limits *limits, double bytes, double regions)
{
    double exported_bytes = (double)tk_settings.firehose_m,
           exported = (double)tk_settings.firehose_r;
    share(&bytes, &exported_bytes, (double)tk_settings.firehose_maxvictim_m, main_part);
    share(&regions, &exported, (double)tk_settings.firehose_maxvictim_r,
          bytes > 0 ? exported_bytes / bytes : 0);
    limits->bytes = (uint64_t)bytes;
    limits->regions = (uint64_t)regions;
    limits->granule =
        find_granule(tk_settings.firehose_maxregion_size, limits->bytes, limits->regions);
    limits->counts_static = tk_settings.firehose_m == 0 || tk_settings.firehose_maxvictim_m == 0;
    limits->exported = tk_min((uint64_t)exported, (uint64_t)exported_bytes / limits->granule);
}

static void keep_all(struct tk_firehose_limits *limits, double bytes, double regions)
{
    uint64_t own = tk_settings.firehose_maxvictim_m, count = (uint64_t)regions;
    limits->bytes = own ? own : (uint64_t)bytes;
    limits->regions =
        tk_settings.firehose_maxvictim_r > 0 ? (uint64_t)tk_settings.firehose_maxvictim_r : count;
    limits->granule =
        find_granule(tk_settings.firehose_maxregion_size, limits->bytes, limits->regions);
    limits->counts_static = own == 0;
    limits->exported = 0;
}

static size_t find_buckets(uint64_t regions)
{
    double wanted = (double)regions / regions_per_bucket * tk_settings.firehose_table_scale;
    size_t buckets = 16;
    while ((double)buckets < wanted && buckets < buckets_max)
        buckets *= 2;
    return buckets;
}

enum tk_status tk_firehose_physmem(uint64_t host_memory, uint64_t *bytes)
{
    const char *text = tk_settings.physmem_max;
    double value = pinnable_part * (double)host_memory;
    if (*text && find_share("GASNET_PHYSMEM_MAX", text, (double)host_memory, &value) != TK_OK)
        return TK_FAIL;
    *bytes = (uint64_t)value;
    return TK_OK;
}

enum tk_status tk_firehose_find_limits(struct tk_firehose_limits *limits, uint64_t host_memory,
                                       uint64_t device_regions, unsigned sharers, bool exports)
{
    uint64_t pinnable;
    double regions;
    if (tk_firehose_physmem(host_memory, &pinnable) != TK_OK)
        return TK_FAIL;
    double bytes = (double)pinnable;
    double part = bytes < (double)host_memory ? bytes / (double)host_memory : 1;
    if (find_regions(part, (double)device_regions, sharers, &regions) != TK_OK)
        return TK_FAIL;
    limits->pinnable_bytes = (uint64_t)(bytes / sharers);
    limits->pinnable_regions = (uint64_t)regions;
    if (exports)
        share_out(limits, bytes / sharers, regions);
    else
        keep_all(limits, bytes / sharers, regions);
    uint64_t useful = regions_per_granule * (limits->bytes / limits->granule);
    limits->regions = tk_min(limits->regions, useful ? useful : 1);
    limits->buckets = find_buckets(limits->regions);
    return TK_OK;
}

void tk_firehose_warn_of_limits(const struct tk_firehose_limits *limits)
{
    if (limits->bytes > limits->pinnable_bytes)
        tk_log_warn(
            "GASNET_FIREHOSE_M and GASNET_FIREHOSE_MAXVICTIM_M add up to %" PRIu64
            " bytes for each rank, but %" PRIu64 " can be pinned for it "
            "(GASNET_PHYSMEM_MAX): registrations may be refused, or leave the host no memory",
            limits->bytes, limits->pinnable_bytes);
    if (limits->regions > limits->pinnable_regions)
        tk_log_warn("GASNET_FIREHOSE_R and GASNET_FIREHOSE_MAXVICTIM_R add up to %" PRIu64
                    " regions for each rank, but %" PRIu64 " can be pinned for it "
                    "(GASNET_PINNED_REGIONS_MAX): registrations may be refused",
                    limits->regions, limits->pinnable_regions);
}

enum tk_status tk_firehose_footprint(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    struct tk_firehose_limits limits;
    if (!tk_settings.use_firehose || tk_shape_peers(shape) == 0)
        return TK_OK;
    if (tk_firehose_find_limits(&limits, shape->host_memory, shape->device_regions, shape->local,
                                tk_is_on_demand) != TK_OK)
        return TK_FAIL;
    total->private_bytes += tk_firehose_regions_bytes(&limits) + tk_table_bytes(limits.buckets);
    return TK_OK;
}
