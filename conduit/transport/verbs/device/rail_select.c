/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Choice of the rails. Candidates are the first active port of each device that GASNET_IBV_PORTS
 * admits, and all ports that it names by number, ordered by network. This rank uses as many as
 * wanted, the nearest first. Equally near ports are distributed among the ranks of the host; with
 * GASNET_IBV_PORTS_TYPE=auto all ranks decide together (rail_share.c). Each port gets a verdict,
 * because users ask why a port is not used, most of all when none is. No lock: start-up only. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "topology/locality.h"
#include "topology/spread.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/known.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs.h"

/* A usable port. */
struct candidate {
    struct ibv_context *context;
    uint32_t verdict; /* its number */
    int port, distance;
    bool is_taken, is_elsewhere;
    struct tk_network network;
};

/* Why a port is used or not. */
struct verdict {
    char device[32];
    int port; /* 0: all of the device */
    bool is_used;
    char text[sizeof(((struct tk_rail *)NULL)->why)];
};

struct search {
    struct tk_port_family family;
    struct verdict *verdicts;
    uint32_t verdict_count;
    struct candidate *found;
    uint32_t count, wanted, most;
    uint32_t turn;
    unsigned broken; /* devices */
    bool in_order;   /* all ranks take the same ports, near or far */
    struct tk_choice *choice;
    tk_rail_sharer *share;
};

static enum tk_status no_memory(void)
{
    tk_log_error("out of memory for the choice of ports");
    return TK_FAIL;
}

static struct verdict *add_verdict(struct search *search, const char *device, int port)
{
    size_t size = (search->verdict_count + 1) * sizeof(*search->verdicts);
    struct verdict *verdicts = realloc(search->verdicts, size);
    if (!verdicts)
        return NULL;
    search->verdicts = verdicts;
    struct verdict *verdict = &verdicts[search->verdict_count++];
    *verdict = (struct verdict){.port = port};
    snprintf(verdict->device, sizeof(verdict->device), "%.31s", device);
    return verdict;
}

static void set_verdict(struct verdict *verdict, const char *text)
{
    snprintf(verdict->text, sizeof(verdict->text), "%s", text);
}

static const char *refusal(const struct search *search, struct ibv_context *context,
                           const char *device, int port, char *text, size_t size,
                           struct tk_network *network)
{
    struct tk_rail rail;
    if (!tk_port_filter_admits(search->family.filter, device, port)) {
        snprintf(text, size, "is not in %s", search->family.name);
        return text;
    }
    const char *why = tk_port_take(&rail, context, port);
    if (!why) {
        tk_network_of(network, &rail);
        return NULL;
    }
    snprintf(text, size, "%s", why);
    return text;
}

/* Unless ports are named, one port of a device is used, because all ports share the device's
 * bandwidth. */
static enum tk_status find_ports(struct search *search, struct ibv_context *context,
                                 const char *device, int ports, bool *any)
{
    char filtered[sizeof(((struct tk_rail *)NULL)->why)];
    for (int port = 1; port <= ports; port++) {
        struct candidate found = {
            .context = context, .verdict = search->verdict_count, .port = port};
        struct verdict *verdict = add_verdict(search, device, port);
        if (!verdict)
            return no_memory();
        const char *why =
            refusal(search, context, device, port, filtered, sizeof(filtered), &found.network);
        if (!why && *any && !tk_port_filter_names(search->family.filter, device, port))
            why = "is not named, and another of its device is used";
        if (why) {
            set_verdict(verdict, why);
            continue;
        }
        search->found[search->count++] = found;
        *any = true;
    }
    return TK_OK;
}

static enum tk_status whole_device(struct search *search, const char *device, const char *why)
{
    struct verdict *verdict = add_verdict(search, device, 0);
    if (!verdict)
        return no_memory();
    set_verdict(verdict, why);
    search->broken++;
    return TK_OK;
}

static enum tk_status look_at_device(struct search *search, struct ibv_device *device)
{
    const char *name = ibv_get_device_name(device);
    char closed[sizeof(((struct verdict *)NULL)->text)];
    errno = 0;
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;
    bool any = false;
    const char *lack;
    enum tk_status status = TK_OK;
    if (!context) {
        tk_device_explain_closed(errno, closed, sizeof(closed));
        return whole_device(search, name, closed);
    }
    int error = ibv_query_device(context, &attr), ports = error ? 0 : attr.phys_port_cnt;
    struct candidate *found =
        realloc(search->found, (search->count + (size_t)ports + 1) * sizeof(*found));
    if (found)
        search->found = found;
    if (!found)
        status = no_memory();
    else if (error)
        status = whole_device(search, name, "can't be queried");
    else if ((lack = tk_known_lack(context, &attr)) != NULL)
        status = whole_device(search, name, lack);
    else
        status = find_ports(search, context, name, ports, &any);
    if (!any)
        ibv_close_device(context);
    return status;
}

static enum tk_status look_at_all(struct search *search)
{
    int devices = 0;
    enum tk_status status = tk_verbs_library_need();
    struct ibv_device **list = status == TK_OK ? ibv_get_device_list(&devices) : NULL;
    for (int i = 0; list && i < devices && status == TK_OK; i++)
        status = look_at_device(search, list[i]);
    if (list)
        ibv_free_device_list(list);
    return status;
}

/* Hosts find the ports of two InfiniBand subnets in different orders, and some have Ethernet ports
 * too: InfiniBand comes first, and its subnets in the order of their prefixes, so that rails with
 * one number are on one subnet. Then come RoCE and iWARP. Networks of these are left as found:
 * routers join them. */
static bool comes_before(const struct candidate *a, const struct candidate *b)
{
    if (a->network.is_ethernet != b->network.is_ethernet)
        return !a->network.is_ethernet;
    if (a->network.is_iwarp != b->network.is_iwarp)
        return !a->network.is_iwarp;
    return !a->network.is_ethernet &&
           memcmp(a->network.prefix, b->network.prefix, sizeof(a->network.prefix)) < 0;
}

/* Keeps the order of discovery among equals. */
static void sort_by_network(struct search *search)
{
    for (uint32_t i = 1; i < search->count; i++) {
        struct candidate moved = search->found[i];
        uint32_t at = i;
        for (; at > 0 && comes_before(&moved, &search->found[at - 1]); at--)
            search->found[at] = search->found[at - 1];
        search->found[at] = moved;
    }
}

/* All ports that the user names are used, unless ranks share them. */
static uint32_t rails_wanted(const struct search *search)
{
    uint32_t most = TK_DEFAULT_MAX_HCAS;
    if (search->family.is_auto)
        most = (uint32_t)tk_min(search->family.rails,
                                tk_settings.num_qps > 0 ? (size_t)tk_settings.num_qps : SIZE_MAX);
    else if (tk_settings.num_qps > 0)
        most = (uint32_t)tk_settings.num_qps;
    else if (*search->family.filter)
        most = UINT32_MAX;
    return (uint32_t)tk_min(tk_min(most, search->most), search->count);
}

static bool is_on(const struct search *search, uint32_t one, uint32_t other)
{
    return tk_network_is_same(&search->found[one].network, &search->found[other].network);
}

/* Counts ports on the network of the first one. */
static uint32_t count_first_network(const struct search *search)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->count; i++)
        count += is_on(search, 0, i);
    return count;
}

/* Restricts the choice to the network of the first port, which is the same on equal hosts: ports of
 * other networks don't reach it. If that network has fewer ports than wanted, the order of the
 * candidates replaces the distances: all ranks then take the same ports, near or far, because rails
 * with the same number must be on the same network. Call it when distances are known. */
static void keep_to_one_network(struct search *search)
{
    uint32_t first = count_first_network(search);
    search->in_order = first < search->wanted;
    for (uint32_t i = 0; first < search->count && i < search->count; i++) {
        if (search->in_order)
            search->found[i].distance = (int)i;
        else
            search->found[i].is_elsewhere = !is_on(search, 0, i);
    }
}

static void measure(struct search *search)
{
    for (uint32_t i = 0; i < search->count; i++) {
        struct candidate *c = &search->found[i];
        c->distance = tk_locality_distance(ibv_get_device_name(c->context->device));
    }
}

static bool is_left(const struct candidate *c)
{
    return !c->is_taken && !c->is_elsewhere;
}

/* Counts the remaining candidates at the smallest distance, which goes to *least. */
static uint32_t find_nearest(const struct search *search, int *least)
{
    uint32_t count = 0;
    *least = tk_distance_unknown;
    for (uint32_t i = 0; i < search->count; i++)
        if (is_left(&search->found[i]) && search->found[i].distance < *least)
            *least = search->found[i].distance;
    for (uint32_t i = 0; i < search->count; i++)
        count += is_left(&search->found[i]) && search->found[i].distance == *least;
    return count;
}

/* Takes `count` of the `near` candidates at this distance, starting at the one of our turn. */
static void take_from(struct search *search, int distance, uint32_t near, uint32_t count)
{
    uint32_t first = (uint32_t)((uint64_t)search->turn * count % near), number = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        struct candidate *c = &search->found[i];
        if (!is_left(c) || c->distance != distance)
            continue;
        c->is_taken = (number + near - first) % near < count;
        number++;
    }
}

/* Ranks of a host that are equally near to several devices take different ones. Returns the number
 * of candidates of the last choice; 0: there was no choice. */
static uint32_t take_nearest(struct search *search)
{
    uint32_t taken = 0, near = 0, count = 0;
    while (taken < search->wanted) {
        int distance;
        near = find_nearest(search, &distance);
        count = (uint32_t)tk_min(near, search->wanted - taken);
        take_from(search, distance, near, count);
        taken += count;
    }
    return near > count ? near : 0;
}

/* ---- GASNET_IBV_PORTS_TYPE=auto ---- */

static int claimed_distance(const struct search *search, uint32_t i)
{
    if (search->in_order)
        return i < search->wanted ? 0 : tk_spread_never;
    return search->found[i].is_elsewhere ? tk_spread_never : search->found[i].distance;
}

/* Checks the answer: it comes from another process, whose settings may differ. */
static bool take_claims(struct search *search, const struct tk_rail_claim *claims)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->count; i++)
        count += claims[i].is_taken;
    for (uint32_t i = 0; count == search->wanted && i < search->count; i++)
        search->found[i].is_taken = claims[i].is_taken;
    return count == search->wanted;
}

/* If a host has one port, nothing is shared: this saves the ranks of most hosts a message to their
 * launcher. Ranks of a host see the same ports, used or not; a rank that sees no port has lost
 * them, and takes part. */
static bool is_shareable(const struct search *search)
{
    return search->share && search->verdict_count != 1;
}

/* Call it also without a port: the other ranks of the host wait for this rank's claims, or for its
 * answer that it takes no part because its setting differs. False: this rank decides alone. */
static bool take_shared(struct search *search)
{
    if (!is_shareable(search))
        return false;
    if (!search->family.is_auto)
        return search->share(NULL, 0, 0);
    struct tk_rail_claim *claims = calloc(search->count + 1, sizeof(*claims));
    for (uint32_t i = 0; claims && i < search->count; i++) {
        const struct candidate *c = &search->found[i];
        snprintf(claims[i].device, sizeof(claims->device), "%.31s",
                 ibv_get_device_name(c->context->device));
        claims[i].port = c->port;
        claims[i].distance = claimed_distance(search, i);
    }
    bool is_shared = claims && search->share(claims, search->count, search->wanted) &&
                     take_claims(search, claims);
    free(claims);
    return is_shared;
}

/* Are there at least as many nearer ports as are wanted? */
static bool is_far(const struct search *search, const struct candidate *c)
{
    uint32_t nearer = 0;
    for (uint32_t i = 0; i < search->count; i++)
        nearer += !search->found[i].is_elsewhere && search->found[i].distance < c->distance;
    return nearer >= search->wanted;
}

static void explain_shared(char *why, size_t size, const struct search *search)
{
    snprintf(why, size, "nearest of %u usable ports of %s, shared by GASNET_IBV_PORTS_TYPE=auto",
             search->count, *search->family.filter ? search->family.name : "this host");
}

static const char why_far[] = "nearest to no rank of this host, and nearer ones have as many ranks "
                              "(GASNET_IBV_PORTS_TYPE=auto)";

/* ---- What is logged of the choice ---- */

static void explain_choice(char *why, size_t size, const struct search *search, uint32_t dealt)
{
    const char *of = *search->family.filter ? search->family.name : "this host";
    if (search->count == 1)
        snprintf(why, size, "only usable device of %s", of);
    else if (search->wanted == search->count)
        snprintf(why, size, "one of all %u usable ports of %s", search->count, of);
    else if (dealt > 0)
        snprintf(why, size,
                 "one of the %u nearest of %u usable devices of %s, dealt out among ranks", dealt,
                 search->count, of);
    else if (search->wanted == 1)
        snprintf(why, size, "nearest of %u usable devices of %s", search->count, of);
    else
        snprintf(why, size, "one of the %u nearest of %u usable devices of %s", search->wanted,
                 search->count, of);
}

static int farthest_taken(const struct search *search)
{
    int farthest = 0;
    for (uint32_t i = 0; i < search->count; i++)
        if (search->found[i].is_taken)
            farthest = (int)tk_max((size_t)farthest, (size_t)search->found[i].distance);
    return farthest;
}

static const char *why_not(const struct search *search, const struct candidate *c, int farthest)
{
    if (c->is_elsewhere && c->network.is_ethernet != search->found->network.is_ethernet)
        return "is Ethernet, and InfiniBand, which is used, does not reach it";
    if (c->is_elsewhere && c->network.is_iwarp != search->found->network.is_iwarp)
        return "is iWARP, and RoCE, which is used, does not reach it";
    if (c->is_elsewhere)
        return "is not on the network of the first port";
    if (c->distance > farthest)
        return "would do, but is not needed: those used are nearer, or were found first";
    return "would do, but is not needed: as near as those used, it is left to other ranks";
}

/* Opens the ports in the order of the candidates, which is the same on equal hosts: if rails are
 * separate networks, rails with the same number must be on the same one. */
static enum tk_status take_ports(struct search *search, const char *why)
{
    struct tk_choice *choice = search->choice;
    int farthest = farthest_taken(search);
    for (uint32_t i = 0; i < search->count; i++) {
        const struct candidate *c = &search->found[i];
        const char *device = ibv_get_device_name(c->context->device);
        struct verdict *verdict = &search->verdicts[c->verdict];
        if (!c->is_taken) {
            set_verdict(verdict, why_not(search, c, farthest));
            continue;
        }
        struct tk_rail *rail = &choice->rails[choice->count++];
        const char *refused = tk_port_take(rail, c->context, c->port);
        if (refused) {
            tk_log_error("%s:%d: the port's state changed during start-up: it %s", device, c->port,
                         refused);
            return TK_FAIL;
        }
        snprintf(rail->why, sizeof(rail->why), "%s", is_far(search, c) ? why_far : why);
        set_verdict(verdict, rail->why);
        verdict->is_used = true;
    }
    return TK_OK;
}

static bool is_used(const struct tk_choice *choice, const struct ibv_context *context)
{
    for (uint32_t i = 0; i < choice->count; i++)
        if (choice->rails[i].context == context)
            return true;
    return false;
}

/* Ports of a device share its context. */
static void close_unused(const struct search *search)
{
    for (uint32_t i = 0; i < search->count; i++) {
        struct ibv_context *context = search->found[i].context;
        bool is_last = true;
        for (uint32_t j = i + 1; j < search->count; j++)
            is_last &= search->found[j].context != context;
        if (is_last && !is_used(search->choice, context))
            ibv_close_device(context);
    }
}

static enum tk_status take_wanted(struct search *search)
{
    char why[sizeof(search->choice->rails->why)];
    size_t size = search->wanted * sizeof(*search->choice->rails);
    search->choice->rails = aligned_alloc(TK_CACHE_LINE, size);
    if (!search->choice->rails)
        return no_memory();
    memset(search->choice->rails, 0, size);
    if (search->wanted < search->count) {
        measure(search);
        keep_to_one_network(search);
    }
    bool is_shared = take_shared(search);
    uint32_t dealt = is_shared ? 0 : take_nearest(search);
    if (is_shared && search->wanted < search->count)
        explain_shared(why, sizeof(why), search);
    else
        explain_choice(why, sizeof(why), search, dealt);
    enum tk_status status = take_ports(search, why);
    if (status != TK_OK)
        search->choice->count = 0;
    close_unused(search);
    return status;
}

/* Lists unused ports for a message of one line: "softhca0:1 is down, mlx5_0:1 is not in
 * GASNET_IBV_PORTS". */
static void gather_unused(const struct search *search)
{
    char *text = search->choice->unused;
    size_t length = 0, space = sizeof(search->choice->unused);
    if (search->verdict_count == 0)
        snprintf(text, space, "%s", tk_no_device);
    for (uint32_t i = 0; i < search->verdict_count && length < space; i++) {
        const struct verdict *v = &search->verdicts[i];
        char port[16] = "";
        if (v->is_used)
            continue;
        if (v->port > 0)
            snprintf(port, sizeof(port), ":%d", v->port);
        length += (size_t)snprintf(text + length, space - length, "%s%s%s %s", length ? ", " : "",
                                   v->device, port, v->text);
    }
    if (length >= space)
        strcpy(text + space - sizeof(" ..."), " ...");
}

static void each_verdict(const struct search *search, tk_port_verdict report)
{
    for (uint32_t i = 0; i < search->verdict_count; i++) {
        const struct verdict *v = &search->verdicts[i];
        report(v->device, v->port, v->is_used, v->text);
    }
}

static void log_verdict(const char *device, int port, bool is_used, const char *text)
{
    if (port == 0)
        tk_log_info("device %s is not used: it %s", device, text);
    else if (is_used)
        tk_log_info("port %s:%d is used: %s", device, port, text);
    else
        tk_log_info("port %s:%d is not used: it %s", device, port, text);
}

/* One line for a job: most often the ports of all hosts are of one kind. */
static void log_advice(const struct tk_choice *choice)
{
    for (uint32_t i = 0; tk_peers.me == 0 && i < choice->count; i++) {
        const char *advice = tk_known_advice(choice->rails[i].vendor);
        if (!advice)
            continue;
        tk_log_warn("%s %s (GASNET_IBV_PORTS_VERBOSE=0 silences this)",
                    choice->rails[i].address.device, advice);
        return;
    }
}

/* Each host logs once that a device is broken (if none is left, another message reports that), and
 * all verdicts if a setting asks for them. */
static void log_choice(const struct search *search)
{
    int64_t level = tk_settings.ibv_ports_verbose;
    bool is_asked = tk_getenv("GASNET_IBV_PORTS_VERBOSE") != NULL, is_first = search->turn == 0;
    if (level > 0)
        log_advice(search->choice);
    if (level > 1 || (level == 1 && is_asked && is_first))
        each_verdict(search, log_verdict);
    else if (level == 1 && search->broken > 0 && search->count > 0 && is_first)
        tk_log_warn("ports that are not used: %s (GASNET_IBV_PORTS_VERBOSE=0 silences this)",
                    search->choice->unused);
}

const char tk_no_device[] = "no RDMA device on this host";

/* The command that runs this job on the software device, for the launcher that started it. */
static const char *way_to_software(void)
{
    if (tk_getenv("TRUNKLINE_LAUNCHED"))
        return "GASNET_SOFTHCA=always";
    if (tk_getenv("OMPI_COMM_WORLD_SIZE"))
        return "softhca run -- mpirun ...";
    if (tk_getenv("SLURM_STEP_NUM_TASKS"))
        return "softhca run -- srun ...";
    if (tk_getenv("PRTE_JOB_SIZE"))
        return "softhca run -- prun ...";
    return "softhca run -- ..., or gasnetrun_ibv";
}

void tk_rails_report_none(const char *unused)
{
    if (!strcmp(unused, tk_no_device))
        tk_log_error("%s; load its driver, or run over the software device: %s", unused,
                     way_to_software());
    else if (!strstr(unused, "softhca") && !tk_getenv("TRUNKLINE_LAUNCHED"))
        tk_log_error("no usable RDMA port: %s; the software device needs none: %s", unused,
                     way_to_software());
    else
        tk_log_error("no usable RDMA port: %s", unused);
}

/* The caller frees the verdicts. */
static enum tk_status search_ports(struct search *search)
{
    *search->choice = (struct tk_choice){.count = 0};
    if (tk_port_family_find(&search->family, search->turn) != TK_OK)
        return TK_FAIL;
    enum tk_status status = look_at_all(search);
    sort_by_network(search);
    search->wanted = rails_wanted(search);
    if (status == TK_OK && search->count > 0)
        status = take_wanted(search);
    else if (status == TK_OK)
        take_shared(search);
    gather_unused(search);
    free(search->found);
    tk_locality_drop();
    return status;
}

static enum tk_status choose(struct search *search)
{
    enum tk_status status = search_ports(search);
    if (status == TK_OK)
        log_choice(search);
    free(search->verdicts);
    return status;
}

enum tk_status tk_rails_choose(struct tk_choice *choice, uint32_t turn, tk_rail_sharer *share)
{
    return choose(
        &(struct search){.most = UINT32_MAX, .turn = turn, .choice = choice, .share = share});
}

enum tk_status tk_rails_choose_few(struct tk_choice *choice, uint32_t turn, uint32_t most)
{
    return choose(&(struct search){.most = most, .turn = turn, .choice = choice});
}

enum tk_status tk_rails_explain(struct tk_choice *choice, tk_port_verdict report)
{
    struct search search = {.most = UINT32_MAX, .choice = choice};
    enum tk_status status = search_ports(&search);
    each_verdict(&search, report);
    free(search.verdicts);
    return status;
}
