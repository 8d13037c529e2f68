/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which algorithm serves a collective: one table by size and number of members, and a setting that
 * forces rows of it. Written at start-up, read-only afterwards. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "collective/coll_private.h"
#include "collective/mcast.h"
#include "settings/settings.h"

/* `least` of those that no size chooses. */
#define only_forced SIZE_MAX

/* The first row that fits serves. Thresholds are where two algorithms move as many bytes in as many
 * steps: with n members a ring takes 2(n - 1) steps for 2 payloads sent, a tree or doubling log2 n
 * steps for log2 n payloads. */
static const struct row {
    enum tk_coll_kind kind;
    const char *name;
    tk_coll_algorithm *next;
    size_t least;       /* bytes */
    uint32_t ranks_min; /* members */
} rows[] = {
    {TK_COLL_BARRIER, "dissemination", tk_coll_dissemination, 0, 0},
    {TK_COLL_BROADCAST, "scatter_allgather", tk_coll_broadcast_scatter, 256 << 10, 4},
    {TK_COLL_BROADCAST, "binomial", tk_coll_broadcast_binomial, 0, 0},
    {TK_COLL_BROADCAST, "flat", tk_coll_broadcast_flat, only_forced, 0},
    {TK_COLL_BROADCAST, "chain", tk_coll_broadcast_chain, only_forced, 0},
    {TK_COLL_BROADCAST, "switch", tk_coll_broadcast_switch, only_forced, 0},
    {TK_COLL_REDUCE_ALL, "switch", tk_coll_broadcast_switch, only_forced, 0},
    {TK_COLL_REDUCE, "ring", tk_coll_reduce_ring, 256 << 10, 4},
    {TK_COLL_REDUCE, "binomial", tk_coll_reduce_binomial, 0, 0},
    {TK_COLL_REDUCE_ALL, "ring", tk_coll_reduce_all_ring, 64 << 10, 3},
    {TK_COLL_REDUCE_ALL, "recursive_doubling", tk_coll_reduce_all_doubling, 0, 0},
    {TK_COLL_SCATTER, "linear", tk_coll_scatter_linear, 0, 0},
    {TK_COLL_GATHER, "linear", tk_coll_gather_linear, 0, 0},
    {TK_COLL_GATHER_ALL, "ring", tk_coll_gather_all_ring, 0, 0},
    {TK_COLL_EXCHANGE, "window", tk_coll_exchange_window, 0, 0},
};
enum { row_count = sizeof(rows) / sizeof(rows[0]) };

static const char *const kind_names[tk_coll_kinds] = {
    [TK_COLL_BARRIER] = "barrier",       [TK_COLL_BROADCAST] = "broadcast",
    [TK_COLL_REDUCE] = "reduce",         [TK_COLL_REDUCE_ALL] = "reduce_all",
    [TK_COLL_SCATTER] = "scatter",       [TK_COLL_GATHER] = "gather",
    [TK_COLL_GATHER_ALL] = "gather_all", [TK_COLL_EXCHANGE] = "exchange",
};

static const struct row *forced[tk_coll_kinds];
static bool is_flat;

/* ---- choice */

static const struct row *row_for(enum tk_coll_kind kind, size_t nbytes, uint32_t ranks)
{
    const struct row *row = forced[kind];
    if (row && row->next != tk_coll_broadcast_switch)
        return row;
    row = rows;
    while (row->kind != kind || nbytes < row->least || ranks < row->ranks_min)
        row++;
    return row;
}

/* A way that only some teams have: a broadcast takes it unless another one is forced, a reduction
 * only if it is forced, since recursive doubling takes no more steps. */
bool tk_coll_is_switched(enum tk_coll_kind kind, const struct tk_coll_team *team, size_t nbytes)
{
    if (!team->is_switched || nbytes == 0 || nbytes > tk_mcast_large ||
        (nbytes > tk_mcast_eager && kind != TK_COLL_BROADCAST))
        return false;
    bool is_forced = forced[kind] && forced[kind]->next == tk_coll_broadcast_switch;
    return kind == TK_COLL_BROADCAST ? is_forced || !forced[kind]
                                     : kind == TK_COLL_REDUCE_ALL && is_forced;
}

tk_coll_algorithm *tk_coll_choose(enum tk_coll_kind kind, size_t nbytes, uint32_t ranks)
{
    return row_for(kind, nbytes, ranks)->next;
}

bool tk_coll_by_levels(enum tk_coll_kind kind)
{
    bool reduces = kind == TK_COLL_REDUCE || kind == TK_COLL_REDUCE_ALL;
    return !is_flat && kind <= TK_COLL_REDUCE_ALL && !(reduces && tk_settings.coll_reproducible);
}

/* ---- GASNET_COLL_ALGORITHM: KIND=NAME, comma-separated; levels=no */

static bool is_word(const char *word, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(word, name, size) == 0;
}

static bool force(const char *word, size_t size)
{
    const char *equals = memchr(word, '=', size);
    if (is_word(word, size, "levels=no"))
        return is_flat = true;
    if (!equals)
        return false;
    size_t kind_size = (size_t)(equals - word), name_size = size - kind_size - 1;
    for (int i = 0; i < row_count; i++)
        if (is_word(word, kind_size, kind_names[rows[i].kind]) &&
            is_word(equals + 1, name_size, rows[i].name)) {
            forced[rows[i].kind] = &rows[i];
            return true;
        }
    return false;
}

bool tk_coll_choose_force(const char *word)
{
    return force(word, strlen(word));
}

static void list_all(char *text, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < row_count && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s=%s, ", kind_names[rows[i].kind],
                               rows[i].name);
}

enum tk_status tk_coll_choose_open(void)
{
    const char *at = tk_settings.coll_algorithm;
    memset(forced, 0, sizeof(forced));
    is_flat = false;
    while (*at) {
        size_t size = strcspn(at, ",");
        if (size && !force(at, size)) {
            char all[512];
            list_all(all, sizeof(all));
            tk_log_error("GASNET_COLL_ALGORITHM=%s: '%.*s' is none of %slevels=no",
                         tk_settings.coll_algorithm, (int)size, at, all);
            return TK_FAIL;
        }
        at += size + (at[size] == ',');
    }
    return TK_OK;
}

/* ---- description */

static size_t describe_row(const struct row *row, char *text, size_t size)
{
    if (row->least == 0 || forced[row->kind])
        return (size_t)snprintf(text, size, " %s", row->name);
    return (size_t)snprintf(text, size, " %s from %zu bytes and %u members on, else", row->name,
                            row->least, row->ranks_min);
}

bool tk_coll_describe(unsigned line, char *text, size_t size)
{
    if (line >= tk_coll_kinds)
        return false;
    enum tk_coll_kind kind = (enum tk_coll_kind)line;
    size_t at = (size_t)snprintf(text, size, "%s:", kind_names[kind]);
    for (int i = 0; i < row_count && at < size; i++)
        if (rows[i].kind == kind &&
            (forced[kind] ? forced[kind] == &rows[i] : rows[i].least != only_forced))
            at += describe_row(&rows[i], text + at, size - at);
    if (at < size && tk_coll_by_levels(kind))
        snprintf(text + at, size - at, "; neighbourhoods first, then their leaders");
    return true;
}
