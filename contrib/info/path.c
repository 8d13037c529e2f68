/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How puts, gets and messages of each size travel between two hosts: computed by the functions that
 * decide it, in a job of two processes with queue pairs of their own, since some limits are known
 * only when a queue pair exists. No state. */
#include "config.h"

#include "base/bits.h"
#include "contrib/info/info.h"
#include "gasnetex.h"
#include "settings/settings.h"
#include "transport/transport.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { text_max = 160, message_args = 2, segment_bytes = 1 << 20 };

static const size_t largest = (size_t)1 << 30;
static size_t medium_max;

/* ---- The paths ---- */

static void describe_plan(const struct tk_rma *rma, bool is_registered, char *text, size_t size)
{
    struct tk_rma_plan plan;
    tk_rma_plan_make(&plan, rma, &tk_verbs.rma_limits, is_registered);
    bool seeks = plan.wants_register && tk_rma_plan_seeks_region(rma->nbytes);
    struct tk_rma_piece piece =
        seeks ? tk_rma_plan_region_piece(&plan, rma->nbytes, rma->nbytes, true)
              : tk_rma_plan_piece(&plan, rma->nbytes, is_registered);
    const char *way = piece.path == TK_RMA_INLINE   ? "inline, in the work request"
                      : piece.path == TK_RMA_BOUNCE ? "copied through registered buffers"
                      : seeks                       ? "in place, registered on the fly"
                                                    : "in place, by the device";
    size_t most = piece.path == TK_RMA_BOUNCE ? plan.bounce_max : plan.piece_max;
    int length = snprintf(text, size, "%s", way);
    if (rma->nbytes > most)
        length += snprintf(text + length, size - (size_t)length, ", in pieces of %zu", most);
    if (plan.is_striped)
        snprintf(text + length, size - (size_t)length, " over %u queue pairs",
                 tk_verbs.rma_limits.conns);
}

static void describe_put_in(size_t nbytes, char *text, size_t size)
{
    describe_plan(&(struct tk_rma){.nbytes = nbytes, .is_put = true}, true, text, size);
}

static void describe_put_out(size_t nbytes, char *text, size_t size)
{
    describe_plan(&(struct tk_rma){.nbytes = nbytes, .is_put = true}, false, text, size);
}

static void describe_get_in(size_t nbytes, char *text, size_t size)
{
    describe_plan(&(struct tk_rma){.nbytes = nbytes}, true, text, size);
}

static void describe_get_out(size_t nbytes, char *text, size_t size)
{
    describe_plan(&(struct tk_rma){.nbytes = nbytes}, false, text, size);
}

static void describe_message(size_t nbytes, size_t head, char *text, size_t size)
{
    bool is_inline = head + nbytes <= tk_verbs.inline_limit;
    bool is_gathered =
        tk_settings.am_gather_min >= 0 && nbytes > 0 && nbytes >= (size_t)tk_settings.am_gather_min;
    snprintf(text, size, "%s",
             is_inline     ? "inline, in the work request"
             : is_gathered ? "copied into a registered buffer; from where it lies, if that is the "
                             "segment and its event is waited for"
                           : "copied into a registered buffer");
}

static void describe_medium(size_t nbytes, char *text, size_t size)
{
    size_t head = sizeof(struct tk_message_head) + message_args * sizeof(int32_t);
    describe_message(nbytes, head, text, size);
}

static void describe_long(size_t nbytes, char *text, size_t size)
{
    size_t head = sizeof(struct tk_message_head) + sizeof(struct tk_long_head) +
                  message_args * sizeof(int32_t);
    if (nbytes > tk_settings.packedlong_limit)
        snprintf(text, size, "a put, and behind it a message");
    else if (nbytes >= tk_settings.long_put_min)
        snprintf(
            text, size,
            "copied into a registered buffer; from the segment a put, and behind it a message");
    else
        describe_message(nbytes, head, text, size);
}

static const struct row {
    const char *name;
    void (*describe)(size_t nbytes, char *text, size_t size);
    bool is_medium;
} rows[] = {{"put from the segment", describe_put_in, false},
            {"put from other memory", describe_put_out, false},
            {"get into the segment", describe_get_in, false},
            {"get into other memory", describe_get_out, false},
            {"Medium of 2 arguments", describe_medium, true},
            {"Long of 2 arguments", describe_long, false}};

/* ---- The table ---- */

static bool is_same(const struct row *row, size_t a, size_t b)
{
    char one[text_max], other[text_max];
    row->describe(a, one, sizeof(one));
    row->describe(b, other, sizeof(other));
    return !strcmp(one, other);
}

/* The last size with the same path as `from`; powers of two are tried first, because paths change
 * rarely. */
static size_t end_of_range(const struct row *row, size_t from, size_t most)
{
    size_t good = from, bad = from;
    while (bad < most && is_same(row, from, bad)) {
        good = bad;
        bad = tk_min(2 * bad, most);
    }
    if (is_same(row, from, bad))
        return bad;
    while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        if (is_same(row, from, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

static void print_row(const struct row *row)
{
    size_t most = row->is_medium ? medium_max : largest;
    for (size_t from = 1, to; from <= most; from = to + 1) {
        char text[text_max], range[64];
        to = end_of_range(row, from, most);
        row->describe(from, text, sizeof(text));
        if (to == largest)
            snprintf(range, sizeof(range), "%zu and more", from);
        else
            snprintf(range, sizeof(range), "%zu to %zu", from, to);
        info_fact(from == 1 ? row->name : "", "%-20s %s", range, text);
    }
}

static void print_size(const struct row *row, size_t size)
{
    char text[text_max];
    if (row->is_medium && size > medium_max)
        return;
    row->describe(size, text, sizeof(text));
    info_fact(row->name, "%s", text);
}

static void print_rails(void)
{
    char text[512];
    for (uint32_t i = 0; i < tk_verbs_rails(); i++) {
        tk_verbs_describe(i, text, sizeof(text));
        info_fact(i == 0 ? "network" : "", "%s", text);
    }
}

static void print_paths(const char *size)
{
    char title[96] = "Paths to a rank of another host, by size in bytes";
    double bytes = 0;
    if (size && tk_parse_size(size, "B", &bytes) == TK_OK)
        snprintf(title, sizeof(title), "Paths of %.0f bytes to a rank of another host", bytes);
    info_section(title);
    print_rails();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (size)
            print_size(&rows[i], (size_t)bytes);
        else
            print_row(&rows[i]);
    info_fact("to ranks of this host", "stores, loads and rings in shared memory");
}

/* ---- The job ---- */

/* The first put connects to the other process, if it is not connected yet. */
static void touch_other(gex_TM_t tm)
{
    gex_Rank_t other = gex_TM_QuerySize(tm) - 1;
    void *base = NULL;
    uint64_t value = 0;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, other, &base, NULL, NULL, 0));
    if (base)
        gex_RMA_PutBlocking(tm, other, base, &value, sizeof(value), 0);
}

int info_path_job(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t tm;
    gex_Segment_t segment;
    const char *size = argc > 2 ? argv[2] : NULL;
    if (gex_Client_Init(&client, &endpoint, &tm, "trunkline_info", &argc, &argv, 0) != GASNET_OK)
        return 1;
    gex_Segment_Attach(&segment, tm, segment_bytes); /* a build for segments EVERYTHING has none */
    medium_max =
        gex_AM_MaxRequestMedium(tm, gex_TM_QuerySize(tm) - 1, GEX_EVENT_NOW, 0, message_args);
    if (gex_TM_QueryRank(tm) == 0) {
        touch_other(tm);
        print_paths(size);
        fflush(stdout);
    }
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(0);
}

static bool own_path(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length > 0)
        path[length] = 0;
    return length > 0;
}

/* Next to this program in an installation; elsewhere in the build tree. */
static void launcher_path(const char *own, char *path, size_t size)
{
    static const char *const places[] = {"%s/gasnetrun_ibv", "%s/../../spawner/gasnetrun_ibv",
                                         "%s/../../../spawner/gasnetrun_ibv"};
    char copy[PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", own);
    const char *directory = dirname(copy);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, size, places[i], directory);
        if (access(path, X_OK) == 0)
            return;
    }
    snprintf(path, size, "gasnetrun_ibv");
}

bool info_programs(char *own, char *launcher, size_t size)
{
    if (!own_path(own, size))
        return false;
    launcher_path(own, launcher, size);
    return true;
}

int info_path(const char *size)
{
    char own[PATH_MAX], launcher[PATH_MAX];
    double bytes;
    if (size &&
        (tk_parse_size(size, "B", &bytes) != TK_OK || bytes < 1 || bytes > (double)largest)) {
        fprintf(stderr, "trunkline_info: --path=%s: not a size from 1 to 1G bytes\n", size);
        return 2;
    }
    if (!info_programs(own, launcher, sizeof(own)))
        return 1;
    setenv("GASNET_SUPERNODE_MAXSIZE", "1", 1);
    setenv("GASNET_QUIET", "1", 1);
    fflush(stdout);
    execlp(launcher, launcher, "-n", "2", own, "--path-job", size, (char *)NULL);
    fprintf(stderr, "trunkline_info: %s can't be started: %s\n", launcher, strerror(errno));
    return 1;
}
