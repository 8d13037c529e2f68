/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See connect_file.h. Owns nothing, no lock; must not read or write files. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer/connect_file.h"

enum {
    line_width = 76, /* of lines written; lines read have no limit */
    digits_max = 33, /* of a rank in base 2, and a zero */
    shown_max = 40   /* of a word that is quoted */
};

/* ---- reading ---- */

struct connect_parser {
    const char *at, *end; /* of the line */
    unsigned long line;
    unsigned base;
    uint32_t me, size;
    bool has_size; /* a line of the text matches the job's size */
    bool *wanted;
    char *why;
    size_t why_size;
};

static int shown(size_t length)
{
    return (int)(length < shown_max ? length : shown_max);
}

static enum tk_connect_verdict malformed(const struct connect_parser *p, const char *word,
                                         size_t length, const char *expected)
{
    snprintf(p->why, p->why_size, "line %lu: '%.*s' is not %s", p->line, shown(length), word,
             expected);
    return TK_CONNECT_MALFORMED;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : tk_connect_base_max;
}

/* False: not a number. Numbers that do not fit become the largest. */
static bool connect_number(const char *word, size_t length, unsigned base, uint32_t *number)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)digit_of(word[i]);
        if (digit >= base)
            return false;
        value = value * base + digit;
        if (value > UINT32_MAX)
            value = UINT32_MAX;
    }
    *number = (uint32_t)value;
    return length > 0;
}

static enum tk_connect_verdict rank_of(const struct connect_parser *p, const char *word,
                                       size_t length, uint32_t *rank)
{
    char expected[80];
    if (!connect_number(word, length, p->base, rank)) {
        snprintf(expected, sizeof(expected), "a rank, or range of ranks, in base %u", p->base);
        return malformed(p, word, length, expected);
    }
    if (*rank < p->size)
        return TK_CONNECT_FITS;
    snprintf(p->why, p->why_size, "line %lu names rank %.*s (base %u), but this job has %u ranks",
             p->line, shown(length), word, p->base, p->size);
    return p->has_size ? TK_CONNECT_MALFORMED : TK_CONNECT_OTHER_JOB;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* False: the line has no further word. */
static bool connect_word(struct connect_parser *p, const char **word, size_t *length)
{
    while (p->at < p->end && is_blank(*p->at))
        p->at++;
    *word = p->at;
    while (p->at < p->end && !is_blank(*p->at))
        p->at++;
    *length = (size_t)(p->at - *word);
    return *length > 0;
}

static void want(const struct connect_parser *p, uint32_t rank, uint32_t first, uint32_t last)
{
    if (rank == p->me)
        memset(p->wanted + first, true, last - first + 1);
    else if (p->me >= first && p->me <= last)
        p->wanted[rank] = true;
}

static enum tk_connect_verdict parse_peers(struct connect_parser *p, uint32_t rank)
{
    const char *word;
    size_t length;
    while (connect_word(p, &word, &length)) {
        const char *dash = memchr(word, '-', length);
        size_t head = dash ? (size_t)(dash - word) : length;
        uint32_t first, last;
        enum tk_connect_verdict verdict = rank_of(p, word, head, &first);
        last = first;
        if (verdict == TK_CONNECT_FITS && dash)
            verdict = rank_of(p, dash + 1, length - head - 1, &last);
        if (verdict != TK_CONNECT_FITS)
            return verdict;
        if (last < first)
            return malformed(p, word, length, "a range: its end is below its begin");
        want(p, rank, first, last);
    }
    return TK_CONNECT_FITS;
}

static enum tk_connect_verdict parse_size(struct connect_parser *p)
{
    const char *word, *more;
    size_t length, none;
    uint32_t size = 0;
    if (!connect_word(p, &word, &length) || !connect_number(word, length, 10, &size) ||
        connect_word(p, &more, &none))
        return malformed(p, word, (size_t)(p->end - word), "one decimal number of ranks");
    p->has_size = size == p->size;
    if (p->has_size)
        return TK_CONNECT_FITS;
    snprintf(p->why, p->why_size, "line %lu: it is of a job of %u ranks, but this one has %u",
             p->line, size, p->size);
    return TK_CONNECT_OTHER_JOB;
}

static enum tk_connect_verdict parse_base(struct connect_parser *p)
{
    const char *word, *more;
    size_t length, none;
    uint32_t base = 0;
    if (!connect_word(p, &word, &length) || !connect_number(word, length, 10, &base) ||
        connect_word(p, &more, &none) || base < tk_connect_base_min || base > tk_connect_base_max)
        return malformed(p, word, (size_t)(p->end - word), "a decimal number from 2 to 36");
    p->base = base;
    return TK_CONNECT_FITS;
}

static enum tk_connect_verdict parse_line(struct connect_parser *p)
{
    const char *word = p->at, *colon = memchr(word, ':', (size_t)(p->end - word));
    uint32_t rank;
    while (p->at < p->end && is_blank(*p->at))
        p->at++;
    if (p->at == p->end)
        return TK_CONNECT_FITS;
    if (!colon)
        return malformed(p, word, (size_t)(p->end - word),
                         "of the form 'rank: peers', 'size: N' or 'base: N'");
    size_t length = (size_t)(colon - word);
    p->at = colon + 1;
    if (length == 4 && !memcmp(word, "size", 4))
        return parse_size(p);
    if (length == 4 && !memcmp(word, "base", 4))
        return parse_base(p);
    enum tk_connect_verdict verdict = rank_of(p, word, length, &rank);
    return verdict == TK_CONNECT_FITS ? parse_peers(p, rank) : verdict;
}

enum tk_connect_verdict tk_connect_parse(const char *text, size_t length, uint32_t me,
                                         uint32_t size, bool *wanted, char *why, size_t why_size)
{
    struct connect_parser p = {
        .base = 10, .me = me, .size = size, .wanted = wanted, .why = why, .why_size = why_size};
    const char *at = text, *end = text + length;
    memset(wanted, false, size * sizeof(*wanted));
    for (; at < end; at = p.end + 1) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        p.at = at;
        p.end = newline ? newline : end;
        p.line++;
        enum tk_connect_verdict verdict = parse_line(&p);
        if (verdict != TK_CONNECT_FITS)
            return verdict;
    }
    wanted[me] = false;
    return TK_CONNECT_FITS;
}

/* ---- writing ---- */

static const char *digits(uint32_t number, unsigned base, char text[digits_max])
{
    char *at = text + digits_max - 1;
    *at = 0;
    do {
        *--at = "0123456789abcdefghijklmnopqrstuvwxyz"[number % base];
        number /= base;
    } while (number > 0);
    return at;
}

/* The last of the consecutive peers from `first` on; the rank itself, which is not a peer, does not
 * interrupt them. */
static uint32_t last_of_row(const bool *connected, uint32_t size, uint32_t first, uint32_t me)
{
    uint32_t last = first;
    for (uint32_t r = first + 1; r < size && (connected[r] || r == me); r++)
        if (r != me)
            last = r;
    return last;
}

static void write_word(FILE *out, const char *rank, const char *word, size_t *column)
{
    if (*column == 0 || *column + 1 + strlen(word) > line_width) {
        fprintf(out, "%s%s:", *column ? "\n" : "", rank);
        *column = strlen(rank) + 1;
    }
    *column += (size_t)fprintf(out, " %s", word);
}

static void write_peers(FILE *out, uint32_t me, uint32_t size, unsigned base, const bool *connected)
{
    char rank[digits_max], from[digits_max], to[digits_max], word[2 * digits_max];
    const char *mine = digits(me, base, rank);
    size_t column = 0;
    for (uint32_t r = 0; r < size; r++) {
        if (r == me || !connected[r])
            continue;
        uint32_t last = last_of_row(connected, size, r, me);
        const char *first = digits(r, base, from);
        if (last > r)
            snprintf(word, sizeof(word), "%s-%s", first, digits(last, base, to));
        write_word(out, mine, last > r ? word : first, &column);
        r = last;
    }
    fprintf(out, "%s%s\n", column ? "" : mine, column ? "" : ":");
}

char *tk_connect_format(uint32_t me, uint32_t size, unsigned base, bool with_head,
                        const bool *connected)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    if (with_head)
        fprintf(out, "size: %u\nbase: %u\n", size, base);
    write_peers(out, me, size, base, connected);
    bool failed = ferror(out);
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

static bool is_head(const char *line, size_t length)
{
    return length == 4 && (!memcmp(line, "size", 4) || !memcmp(line, "base", 4));
}

uint32_t tk_connect_count(const char *text, size_t length)
{
    const char *last = NULL, *end = text + length, *newline;
    size_t last_length = 0;
    uint32_t count = 0;
    for (const char *at = text; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
         at = newline + 1) {
        const char *colon = memchr(at, ':', (size_t)(newline - at));
        size_t word = colon ? (size_t)(colon - at) : 0;
        if (is_head(at, word) || (last && word == last_length && !memcmp(at, last, word)))
            continue;
        last = at;
        last_length = word;
        count++;
    }
    return count;
}

char *tk_connect_name(const char *name, uint32_t me)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return NULL;
    for (; *name; name++)
        if (*name == '%')
            fprintf(out, "%u", me);
        else
            putc(*name, out);
    bool failed = ferror(out);
    if (fclose(out) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}
