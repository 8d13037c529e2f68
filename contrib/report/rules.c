/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See rules.h: the table, and the rules that counters and records of --top answer. A rule is silent
 * about small amounts, so that a short healthy job has no findings. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/report/rules_private.h"

/* ---- over ranks ---- */

/* A rank of the largest value, and what the others have. */
struct over_ranks {
    uint32_t ranks, rank;
    uint64_t sum, max;
};

static struct over_ranks over(const struct report_model *model, const char *const *names)
{
    struct over_ranks all = {0};
    for (uint32_t i = 0; i < model->rank_count; i++) {
        const struct report_rank *rank = &model->ranks[i];
        if (!rank->counters)
            continue;
        uint64_t value = report_sum(rank->counters, names);
        if (all.ranks == 0 || value > all.max) {
            all.max = value;
            all.rank = i;
        }
        all.sum += value;
        all.ranks++;
    }
    return all;
}

static uint64_t total(const struct report_model *model, const char *name)
{
    const char *const names[] = {name, NULL};
    return over(model, names).sum;
}

static double seconds_of(const struct report_rank *rank)
{
    return (double)rank->micros / 1e6;
}

/* The peer that most of a rank's waits of this kind were for, by a trace; -1: not known. */
static int64_t worst_peer(const struct report_model *model, uint32_t rank, const char *kind)
{
    uint64_t most = 0;
    int64_t peer = -1;
    for (size_t i = 0; i < model->waits.count; i++) {
        const struct trace_entry *e = &model->waits.entries[i];
        if (e->first == rank && e->second != tk_trace_no_peer && strcmp(e->name, kind) == 0 &&
            e->sum.ns > most) {
            most = e->sum.ns;
            peer = (int64_t)e->second;
        }
    }
    return peer;
}

/* How long a rank waited, how often, and of how much time: by its counters, else by its trace. */
struct waited {
    uint64_t ns, calls;
    double seconds;
};

static struct waited waited_of(const struct report_model *model, uint32_t number,
                               const char *ns_name, const char *calls_name, const char *kind)
{
    const struct report_rank *rank = &model->ranks[number];
    struct waited waited = {report_counter(rank, ns_name), report_counter(rank, calls_name),
                            seconds_of(rank)};
    if (rank->counters || !rank->is_traced)
        return waited;
    for (size_t i = 0; i < model->waits.count; i++) {
        const struct trace_entry *e = &model->waits.entries[i];
        if (e->first != number || strcmp(e->name, kind) != 0)
            continue;
        waited.ns += e->sum.ns;
        waited.calls += e->sum.calls;
    }
    waited.seconds = (double)(model->timeline.end - model->timeline.begin) / 1e9;
    return waited;
}

/* A tenth of the time, and a hundredth of a second. */
static bool waits(const struct report_model *model, struct finding *f, const char *ns_name,
                  const char *calls_name, const char *what, const char *kind)
{
    struct waited worst = {0, 0, 1};
    uint32_t who = 0, ranks = 0;
    for (uint32_t i = 0; i < model->rank_count; i++) {
        struct waited one = waited_of(model, i, ns_name, calls_name, kind);
        if (one.seconds <= 0 || one.ns < 10000000 || (double)one.ns < 1e8 * one.seconds)
            continue;
        if (ranks++ == 0 || (double)one.ns / one.seconds > (double)worst.ns / worst.seconds) {
            worst = one;
            who = i;
        }
    }
    if (ranks == 0)
        return false;
    int64_t peer = worst_peer(model, who, kind);
    char whose[48] = "";
    if (peer >= 0)
        snprintf(whose, sizeof(whose), "%s rank %" PRId64, kind[0] == 'c' ? " of" : " towards",
                 peer);
    finding_say(f, "Rank %u waited %.0f %% of its time for %s%s.", who,
                (double)worst.ns / 1e7 / worst.seconds, what, whose);
    finding_prove(f, "time waited", "%.3f s of %.3f s", (double)worst.ns / 1e9, worst.seconds);
    finding_prove(f, "waits", "%" PRIu64, worst.calls);
    finding_prove(f, "ranks that waited 10 % or more", "%u", ranks);
    return true;
}

static bool credits(const struct report_model *model, struct finding *f)
{
    return waits(model, f, "credit_wait_ns", "credit_waits", "credits", "c");
}

static bool space(const struct report_model *model, struct finding *f)
{
    return waits(model, f, "room_wait_ns", "room_waits", "space in queues and buffers", "s");
}

/* Four times the mean of the others. */
static bool is_unbalanced(const struct report_model *model, const struct over_ranks *all,
                          uint64_t least, double *mean)
{
    if (all->ranks < 3 || all->max < least || all->ranks != report_size(model))
        return false;
    *mean = (double)(all->sum - all->max) / (all->ranks - 1);
    return (double)all->max > 4 * *mean;
}

static void say_balance(struct finding *f, const struct over_ranks *all, double mean,
                        const char *did, const char *what)
{
    if (mean > 0)
        finding_say(f, "Rank %u %s %.1f times as many %s as the mean of the others.", all->rank,
                    did, (double)all->max / mean, what);
    else
        finding_say(f, "Rank %u alone %s %s.", all->rank, did, what);
    finding_prove(f, "this rank", "%" PRIu64, all->max);
    finding_prove(f, "mean of the others", "%.1f", mean);
}

static bool bytes_balance(const struct report_model *model, struct finding *f)
{
    static const char *const names[] = {"put_bytes_", "get_bytes_", "message_bytes_", NULL};
    struct over_ranks all = over(model, names);
    double mean;
    if (!is_unbalanced(model, &all, 16 << 20, &mean))
        return false;
    say_balance(f, &all, mean, "moved", "bytes");
    return true;
}

static bool messages_balance(const struct report_model *model, struct finding *f)
{
    static const char *const names[] = {"shorts_received", "mediums_received", "longs_received",
                                        NULL};
    struct over_ranks all = over(model, names);
    double mean;
    if (!is_unbalanced(model, &all, 10000, &mean))
        return false;
    say_balance(f, &all, mean, "handled", "messages");
    return true;
}

static bool evictions(const struct report_model *model, struct finding *f)
{
    uint64_t evicted = total(model, "regions_evicted");
    uint64_t registered = total(model, "regions_registered");
    if (evicted < 100 || evicted * 10 < registered)
        return false;
    finding_say(f,
                "%" PRIu64 " of %" PRIu64
                " registrations on demand were evicted for others: memory is registered again "
                "and again.",
                evicted, registered);
    finding_prove(f, "registrations on the fly", "%" PRIu64, registered);
    finding_prove(f, "registrations found", "%" PRIu64, total(model, "regions_found"));
    finding_prove(f, "evictions", "%" PRIu64, evicted);
    return true;
}

static bool invalidations(const struct report_model *model, struct finding *f)
{
    uint64_t gone = total(model, "regions_invalidated");
    uint64_t registered = total(model, "regions_registered");
    if (gone < 100 || gone * 2 < registered)
        return false;
    finding_say(f,
                "%" PRIu64 " of %" PRIu64
                " registrations on demand ended because the program unmapped the memory: it "
                "allocates and frees what it transfers.",
                gone, registered);
    finding_prove(f, "registrations on the fly", "%" PRIu64, registered);
    finding_prove(f, "invalidations", "%" PRIu64, gone);
    return true;
}

static bool failovers(const struct report_model *model, struct finding *f)
{
    uint64_t failed = total(model, "failovers"), back = total(model, "connections_back");
    if (failed == 0)
        return false;
    f->weight = failed > back ? FINDING_ERROR : FINDING_WARNING;
    finding_say(f,
                "%" PRIu64 " connection%s failed and other connections took over their work; "
                "%" PRIu64 " came back.",
                failed, failed == 1 ? "" : "s", back);
    finding_prove(f, "failovers", "%" PRIu64, failed);
    finding_prove(f, "connections back", "%" PRIu64, back);
    return true;
}

static bool repeated(const struct report_model *model, struct finding *f)
{
    uint64_t again = total(model, "datagrams_repeated"), made = total(model, "connections_made");
    if (again < 10 || again * 10 < made)
        return false;
    finding_say(f,
                "%" PRIu64 " datagrams for connections were sent again while %" PRIu64
                " queue pairs were made: datagrams are lost, or ranks answer late.",
                again, made);
    finding_prove(f, "datagrams sent again", "%" PRIu64, again);
    finding_prove(f, "connections made", "%" PRIu64, made);
    return true;
}

static bool closed(const struct report_model *model, struct finding *f)
{
    uint64_t gone = total(model, "connections_closed"), made = total(model, "connections_made");
    if (gone < 10 || gone * 10 < made)
        return false;
    finding_say(f,
                "%" PRIu64 " times connections to a peer were closed for others, of %" PRIu64
                " that were made: ranks talk to more peers than they may be connected to.",
                gone, made);
    finding_prove(f, "connections closed", "%" PRIu64, gone);
    finding_prove(f, "connections made", "%" PRIu64, made);
    return true;
}

static bool offers(const struct report_model *model, struct finding *f)
{
    uint64_t offered = total(model, "messages_offered");
    uint64_t sent = total(model, "medium_requests") + total(model, "medium_replies");
    if (offered < 1000 || offered * 2 < sent)
        return false;
    finding_say(f,
                "%" PRIu64 " of %" PRIu64
                " Mediums were larger than a receive buffer, so that each cost one more round "
                "trip.",
                offered, sent);
    finding_prove(f, "large messages offered", "%" PRIu64, offered);
    finding_prove(f, "Mediums sent", "%" PRIu64, sent);
    return true;
}

static bool staging(const struct report_model *model, struct finding *f)
{
    static const char *const names[] = {"kind_copy", "kind_ipc",    "kind_hca",
                                        "kind_slot", "kind_target", NULL};
    uint64_t waited = total(model, "kind_slot_waits"), moved = over(model, names).sum;
    if (waited < 100 || waited * 4 < moved)
        return false;
    finding_say(f, "%" PRIu64 " of %" PRIu64 " device transfers waited for staging memory.", waited,
                moved);
    finding_prove(f, "waits for staging memory", "%" PRIu64, waited);
    finding_prove(f, "device transfers", "%" PRIu64, moved);
    return true;
}

/* Ends that a program did not choose. "asked for by the program": it goes on. */
static bool is_bad_end(const char *how)
{
    static const char *const good[] = {"exit", "asked for by the program", "", NULL};
    for (const char *const *word = good; *word; word++)
        if (strcmp(how, *word) == 0)
            return false;
    return true;
}

/* How a rank ended that did not leave in order; NULL: it did, or no file tells. A trace without an
 * end tells, if that of another rank has one. */
static const char *bad_end(const struct report_model *model, const struct report_rank *rank)
{
    if (rank->how[0] || !rank->is_traced || model->ended == 0)
        return rank->is_known && is_bad_end(rank->how) ? rank->how : NULL;
    return "its trace has no end: it was killed, or still runs";
}

static bool ends(const struct report_model *model, struct finding *f)
{
    uint32_t bad = 0, first = 0;
    for (uint32_t i = 0; i < model->rank_count; i++)
        if (bad_end(model, &model->ranks[i]) && bad++ == 0)
            first = i;
    if (bad == 0)
        return false;
    f->weight = FINDING_ERROR;
    finding_say(f, "%u rank%s did not leave in order; rank %u: %s.", bad, bad == 1 ? "" : "s",
                first, bad_end(model, &model->ranks[first]));
    for (uint32_t i = first; i < model->rank_count; i++) {
        const char *how = bad_end(model, &model->ranks[i]);
        char who[80];
        if (!how)
            continue;
        snprintf(who, sizeof(who), "rank %u on %.50s", i, model->ranks[i].host);
        finding_prove(f, who, "%s", how);
    }
    return true;
}

/* Ranks of which nothing is known though others have files. */
static bool absent(const struct report_model *model, struct finding *f)
{
    uint32_t size = report_size(model), known = 0;
    int64_t first = -1;
    for (uint32_t i = 0; i < size; i++) {
        bool is_known = i < model->rank_count && model->ranks[i].is_known;
        known += is_known;
        if (!is_known && first < 0)
            first = i;
    }
    if (known == size || known == 0)
        return false;
    finding_say(f,
                "The files are of %u of %u ranks. The first that is missing is rank %" PRId64 ".",
                known, size, first);
    finding_prove(f, "ranks in the files", "%u", known);
    finding_prove(f, "ranks of the job", "%u", size);
    return true;
}

static bool stuck(const struct report_model *model, struct finding *f)
{
    uint32_t who = 0;
    uint64_t longest = 0;
    for (uint32_t i = 0; i < model->rank_count; i++)
        if (model->ranks[i].was_seen && model->ranks[i].waits_for[0] &&
            model->ranks[i].wait_micros > longest) {
            longest = model->ranks[i].wait_micros;
            who = i;
        }
    if (longest < 10 * UINT64_C(1000000))
        return false;
    const struct report_rank *rank = &model->ranks[who];
    finding_say(f, "Rank %u waits for %s since %.1f s; gasnetrun_ibv --explain prints what for.",
                who, rank->waits_for, (double)longest / 1e6);
    finding_prove(f, "state", "%s", rank->state);
    if (rank->wait_peer != tk_trace_no_peer)
        finding_prove(f, "peer", "rank %u", rank->wait_peer);
    return true;
}

static bool silent(const struct report_model *model, struct finding *f)
{
    if (model->silent_hosts == 0)
        return false;
    finding_say(f, "%u host%s not answered in time; the last record of --top lacks %s ranks.",
                model->silent_hosts, model->silent_hosts == 1 ? " has" : "s have",
                model->silent_hosts == 1 ? "its" : "their");
    finding_prove(f, "hosts without an answer", "%u of %u", model->silent_hosts, model->hosts);
    return true;
}

/* ---- the table ---- */

static const struct rule {
    const char *name, *setting;
    enum finding_weight weight;
    bool (*find)(const struct report_model *model, struct finding *f);
} rules[] = {
    {"bad-end", "", FINDING_ERROR, ends},
    {"ranks-missing", "", FINDING_WARNING, absent},
    {"stuck", "", FINDING_ERROR, stuck},
    {"silent-hosts", "GASNET_SSH_HEARTBEAT", FINDING_WARNING, silent},
    {"failover", "GASNET_IBV_FAILOVER", FINDING_WARNING, failovers},
    {"credits", "GASNET_AM_CREDITS_PP", FINDING_WARNING, credits},
    {"space", "GASNET_NETWORKDEPTH_PP", FINDING_WARNING, space},
    {"late-rank", "", FINDING_WARNING, finding_late_rank},
    {"busy-handlers", "", FINDING_WARNING, finding_busy_handlers},
    {"bytes-balance", "", FINDING_NOTE, bytes_balance},
    {"messages-balance", "", FINDING_NOTE, messages_balance},
    {"evictions", "GASNET_FIREHOSE_MAXVICTIM_M", FINDING_WARNING, evictions},
    {"invalidations", "", FINDING_NOTE, invalidations},
    {"connections-closed", "GASNET_CONNECT_MAX", FINDING_WARNING, closed},
    {"datagrams-repeated", "GASNET_CONNECT_RETRANS_MIN", FINDING_WARNING, repeated},
    {"rendezvous", "GASNET_RBUF_SIZE", FINDING_NOTE, offers},
    {"staging", "GASNET_MK_STAGING", FINDING_NOTE, staging},
    {"trace-lost", "GASNET_TRACEMASK", FINDING_NOTE, finding_lost_events},
};

const unsigned finding_rule_count = sizeof(rules) / sizeof(rules[0]);

const char *finding_rule_name(unsigned rule)
{
    return rules[rule].name;
}

bool findings_of(const struct report_model *model, struct findings *findings)
{
    *findings = (struct findings){.list = calloc(finding_rule_count, sizeof(struct finding))};
    if (!findings->list)
        return false;
    for (unsigned i = 0; i < finding_rule_count; i++) {
        struct finding *f = &findings->list[findings->count];
        *f = (struct finding){
            .rule = rules[i].name, .setting = rules[i].setting, .weight = rules[i].weight};
        findings->count += rules[i].find(model, f);
    }
    /* Stable, so that rules of one weight keep the order of the table. */
    for (size_t i = 1; i < findings->count; i++)
        for (size_t k = i; k > 0 && findings->list[k - 1].weight < findings->list[k].weight; k--) {
            struct finding swap = findings->list[k];
            findings->list[k] = findings->list[k - 1];
            findings->list[k - 1] = swap;
        }
    return true;
}

void findings_free(struct findings *findings)
{
    free(findings->list);
    *findings = (struct findings){0};
}
