/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text to numbers: whole numbers exactly. Independent of the locale: a comma is never a decimal
 * sign. No state. */
#include "config.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/number.h"

static const char letters[] = "BKMGT";

struct scan {
    const char *at;
    uint64_t whole;
    double fraction; /* of one, 0 <= fraction < 1 */
    bool any, too_large;
};

static int digit_of(char c, unsigned radix)
{
    int digit = isdigit((unsigned char)c)    ? c - '0'
                : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                             : 99;
    return digit < (int)radix ? digit : -1;
}

static void scan_whole(struct scan *s, unsigned radix)
{
    int digit;
    for (; (digit = digit_of(*s->at, radix)) >= 0; s->at++) {
        uint64_t next;
        s->any = true;
        s->too_large |= __builtin_mul_overflow(s->whole, (uint64_t)radix, &next) ||
                        __builtin_add_overflow(next, (uint64_t)digit, &next);
        s->whole = next;
    }
}

static void scan_fraction(struct scan *s)
{
    double place = 0.1;
    int digit;
    if (*s->at != '.' || (!s->any && digit_of(s->at[1], 10) < 0))
        return;
    for (s->at++; (digit = digit_of(*s->at, 10)) >= 0; s->at++, place /= 10) {
        s->any = true;
        s->fraction += digit * place;
    }
}

/* Parses " KB", "k", "KiB" ...; 0: no unit follows, and *at is unchanged. */
static uint64_t scan_unit(const char **at)
{
    const char *here = *at + strspn(*at, " \t");
    const char *letter = *here ? strchr(letters, toupper((unsigned char)*here)) : NULL;
    if (!letter)
        return 0;
    here++;
    if (letter != letters && !strncasecmp(here, "iB", 2))
        here += 2;
    else if (letter != letters && toupper((unsigned char)*here) == 'B')
        here++;
    *at = here;
    return (uint64_t)1 << 10 * (letter - letters);
}

/* Hexadecimal is for bit patterns: all 64 are legal. */
static bool apply(const struct scan *s, uint64_t unit, bool negative, bool is_pattern,
                  int64_t *value)
{
    uint64_t most = (uint64_t)INT64_MAX + negative, result;
    bool too_large =
        s->too_large || __builtin_mul_overflow(s->whole, unit, &result) ||
        __builtin_add_overflow(result, (uint64_t)(s->fraction * (double)unit), &result);
    if (is_pattern && unit == 1)
        most = UINT64_MAX;
    too_large = too_large || result > most;
    if (too_large)
        *value = negative ? INT64_MIN : INT64_MAX;
    else
        *value = (int64_t)(negative ? -result : result);
    return !too_large;
}

bool tk_number_scan(const char **at, bool is_size, uint64_t default_unit, int64_t *value)
{
    struct scan s = {.at = *at + strspn(*at, " \t")};
    bool negative = *s.at == '-';
    *value = 0;
    if (*s.at == '-' || *s.at == '+')
        s.at++;
    bool hex = s.at[0] == '0' && (s.at[1] == 'x' || s.at[1] == 'X') && digit_of(s.at[2], 16) >= 0;
    if (hex)
        s.at += 2;
    scan_whole(&s, hex ? 16 : 10);
    if (!hex && is_size)
        scan_fraction(&s);
    if (!s.any)
        return false;
    uint64_t unit = is_size ? scan_unit(&s.at) : 0;
    *at = s.at;
    return apply(&s, unit ? unit : default_unit ? default_unit : 1, negative, hex, value);
}

bool tk_number_whole(const char *text, uint64_t unit, int64_t *value)
{
    const char *at = text;
    if (!tk_number_scan(&at, unit != 0, unit, value))
        return false;
    return at[strspn(at, " \t")] == 0;
}

bool tk_number_digits(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    struct scan s = {.at = text};
    scan_whole(&s, 10);
    if (!s.any || s.too_large || *s.at || s.whole < low || s.whole > high)
        return false;
    *value = s.whole;
    return true;
}

/* Without pow(): users of the archive would have to link the mathematics library. */
static double power_of_ten(int exponent)
{
    double power = 1;
    for (int i = 0; i < abs(exponent); i++)
        power *= 10;
    return exponent < 0 ? 1 / power : power;
}

/* Without strtod(), which depends on the locale. */
static bool number_decimal(const char **at, double *value)
{
    struct scan s = {.at = *at + strspn(*at, " \t")};
    bool negative = *s.at == '-';
    int exponent = 0;
    if (*s.at == '-' || *s.at == '+')
        s.at++;
    scan_whole(&s, 10);
    scan_fraction(&s);
    if (!s.any || s.too_large)
        return false;
    if (*s.at == 'e' || *s.at == 'E') {
        struct scan e = {.at = s.at + 1};
        bool down = *e.at == '-';
        e.at += *e.at == '-' || *e.at == '+';
        scan_whole(&e, 10);
        if (!e.any || e.whole > 308)
            return false;
        exponent = down ? -(int)e.whole : (int)e.whole;
        s.at = e.at;
    }
    *at = s.at + strspn(s.at, " \t");
    *value = ((double)s.whole + s.fraction) * power_of_ten(exponent);
    if (negative)
        *value = -*value;
    return true;
}

bool tk_number_real(const char *text, double *value)
{
    double below = 1;
    if (!number_decimal(&text, value))
        return false;
    if (*text == '/') {
        text++;
        if (!number_decimal(&text, &below) || below == 0)
            return false;
    }
    *value /= below;
    return *text == 0 && isfinite(*value);
}

static bool is_all(const char *ranges)
{
    return !*ranges || (ranges[0] == '*' && !ranges[1]);
}

bool tk_number_in_ranges(const char *ranges, int64_t number)
{
    if (is_all(ranges))
        return true;
    while (*ranges) {
        struct scan from = {.at = ranges}, to = {.at = ranges};
        scan_whole(&from, 10);
        to = from;
        if (from.any && *from.at == '-') {
            to = (struct scan){.at = from.at + 1};
            scan_whole(&to, 10);
        }
        if (from.any && to.any && (uint64_t)number >= from.whole && (uint64_t)number <= to.whole)
            return true;
        ranges = to.at + strcspn(to.at, ", ");
        ranges += strspn(ranges, ", ");
    }
    return false;
}

bool tk_number_is_ranges(const char *text)
{
    if (is_all(text))
        return true;
    while (*text) {
        struct scan from = {.at = text}, to;
        scan_whole(&from, 10);
        to = from;
        if (*from.at == '-') {
            to = (struct scan){.at = from.at + 1};
            scan_whole(&to, 10);
        }
        size_t between = strspn(to.at, ", ");
        if (!from.any || !to.any || to.whole < from.whole || (*to.at && between == 0))
            return false;
        text = to.at + between;
    }
    return true;
}
