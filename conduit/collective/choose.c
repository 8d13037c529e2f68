/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses the algorithm of a collective: one table by size and number of members, and a setting
 * that forces rows of it. Written at start-up, read-only afterwards. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "collective/coll_private.h"
#include "collective/mcast.h"
#include "settings/settings.h"

/* The value of `least` of algorithms that are never chosen by size. */
#define only_forced SIZE_MAX

static const struct row {
    enum tk_coll_kind kind;
    const char *kind_name, *name;
    tk_coll_algorithm *next;
    size_t least;       /* bytes */
    uint32_t ranks_min; /* members */
} rows[] = {
#define TK_ONLY_FORCED only_forced
#define TK_ALGORITHM(kind, kind_name, name, next, least, ranks_min)                                \
    {kind, kind_name, name, next, least, ranks_min},
#include "settings/coll_algorithms.def"
#undef TK_ALGORITHM
#undef TK_ONLY_FORCED
};
enum { row_count = sizeof(rows) / sizeof(rows[0]) };

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

/* An algorithm that only some teams have: a broadcast uses it unless another one is forced, a
 * reduction only if it is forced, since recursive doubling takes no more steps. */
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
        if (is_word(word, kind_size, rows[i].kind_name) &&
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

/* The words are valid: settings are checked at start-up. */
void tk_coll_choose_open(void)
{
    const char *at = tk_settings.coll_algorithm;
    memset(forced, 0, sizeof(forced));
    is_flat = false;
    while (*at) {
        size_t size = strcspn(at, ",");
        force(at, size);
        at += size + (at[size] == ',');
    }
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
    const struct row *first = rows;
    while (first->kind != kind)
        first++;
    size_t at = (size_t)snprintf(text, size, "%s:", first->kind_name);
    for (int i = 0; i < row_count && at < size; i++)
        if (rows[i].kind == kind &&
            (forced[kind] ? forced[kind] == &rows[i] : rows[i].least != only_forced))
            at += describe_row(&rows[i], text + at, size - at);
    if (at < size && tk_coll_by_levels(kind))
        snprintf(text + at, size - at, "; neighbourhoods first, then their leaders");
    return true;
}
