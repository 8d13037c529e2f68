/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text to values: one parser per type, each refusing what is not entirely a value in range. One
 * rule for all settings, here and in the launcher: blanks around a value are ignored, and an empty
 * value counts as unset. No state but the "C" locale, made on first use: start-up is
 * single-threaded. */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings/settings.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

const char *tk_setting_trim(const char *value, size_t *length)
{
    while (is_blank(*value))
        value++;
    *length = strlen(value);
    while (*length > 0 && is_blank(value[*length - 1]))
        --*length;
    return value;
}

/* "K", "KB", "KiB", "k" ... -> 1024; "" and "B" -> 1; anything else -> 0 */
static double suffix_factor(const char *suffix)
{
    static const char letters[] = "KMGT";
    double factor = 1024;
    if (!*suffix || !strcasecmp(suffix, "B"))
        return 1;
    for (const char *letter = letters; *letter; letter++, factor *= 1024) {
        if ((suffix[0] & ~0x20) != *letter)
            continue;
        const char *rest = suffix + 1;
        return !*rest || !strcasecmp(rest, "B") || !strcasecmp(rest, "iB") ? factor : 0;
    }
    return 0;
}

/* The client's locale may use a decimal comma; "0.85/H" must be a fraction there too. */
static double setting_decimal(const char *text, char **end)
{
    static locale_t c_locale;
    if (!c_locale)
        c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return strtod_l(text, end, c_locale);
}

static bool number(const char *text, double *value, char **end)
{
    errno = 0;
    *value = setting_decimal(text, end);
    return *end != text && errno == 0 && isfinite(*value);
}

enum tk_status tk_parse_size(const char *text, const char *unit, double *bytes)
{
    char *end;
    if (!number(text, bytes, &end))
        return TK_FAIL;
    while (*end == ' ')
        end++;
    double factor = suffix_factor(*end ? end : unit);
    if (factor == 0)
        return TK_FAIL;
    *bytes *= factor;
    return TK_OK;
}

static enum tk_status parse_bool(const char *text, bool *value)
{
    static const char *const words[][2] = {
        {"0", "1"}, {"no", "yes"}, {"n", "y"}, {"false", "true"}, {"off", "on"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (int truth = 0; truth < 2; truth++)
            if (!strcasecmp(text, words[i][truth])) {
                *value = truth;
                return TK_OK;
            }
    return TK_FAIL;
}

static bool parse_is_word(const char *words, const char *value, bool in_any_case)
{
    size_t length = strlen(value);
    for (const char *word = words; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL)
        if (length == strcspn(word, "|") && (in_any_case ? !strncasecmp(word, value, length)
                                                         : !strncmp(word, value, length)))
            return true;
    return false;
}

static enum tk_status parse_number(const struct tk_setting *s, const char *value, double *result)
{
    char *end;
    if (s->type == TK_SETTING_SIZE)
        return tk_parse_size(value, s->unit, result);
    return number(value, result, &end) && !*end ? TK_OK : TK_FAIL;
}

static bool is_listed(const struct tk_setting *s, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.15g", value);
    return !s->words || parse_is_word(s->words, text, false);
}

/* In range first: what no int64_t can hold must not be converted to one. */
static bool setting_fits(const struct tk_setting *s, double value)
{
    if (value < s->min || value > s->max)
        return false;
    return s->type != TK_SETTING_INT || (value == (double)(int64_t)value && is_listed(s, value));
}

static enum tk_status setting_refuse(const struct tk_setting *s, const char *value, char *why,
                                     size_t size)
{
    if (s->type == TK_SETTING_BOOL || s->type == TK_SETTING_SWITCH)
        snprintf(why, size, "%s='%s' is not one of 0, 1, no, yes, n, y, false, true, off, on",
                 s->name, value);
    else if (s->words)
        snprintf(why, size, "%s='%s' is not one of %s", s->name, value, s->words);
    else
        snprintf(why, size, "%s='%s' is not a %s from %.15g to %.15g (%s)", s->name, value,
                 s->type == TK_SETTING_INT ? "whole number" : "number", s->min, s->max,
                 s->type == TK_SETTING_SIZE ? "B" : s->unit);
    return TK_FAIL;
}

void tk_setting_reset(const struct tk_setting *s, struct tk_settings *out)
{
    void *field = (char *)out + s->offset;
    switch (s->type) {
    case TK_SETTING_INT:
        *(int64_t *)field = (int64_t)s->def;
        break;
    case TK_SETTING_REAL:
        *(double *)field = s->def;
        break;
    case TK_SETTING_SIZE:
        *(uint64_t *)field = (uint64_t)s->def;
        break;
    case TK_SETTING_BOOL:
        *(bool *)field = s->def != 0;
        break;
    case TK_SETTING_TEXT:
    case TK_SETTING_CHOICE:
        *(const char **)field = s->text_def;
        break;
    case TK_SETTING_IGNORED:
    case TK_SETTING_RETIRED:
    case TK_SETTING_TOOLS:
    case TK_SETTING_SWITCH:
        break;
    }
}

static enum tk_status parse_truth(const struct tk_setting *s, const char *value, void *field)
{
    bool truth = false;
    enum tk_status status = parse_bool(value, &truth);
    if (status == TK_OK && s->type == TK_SETTING_BOOL)
        *(bool *)field = truth;
    return status;
}

static enum tk_status parse_quantity(const struct tk_setting *s, const char *value, void *field)
{
    double result;
    if (parse_number(s, value, &result) != TK_OK || !setting_fits(s, result))
        return TK_FAIL;
    if (s->type == TK_SETTING_INT)
        *(int64_t *)field = (int64_t)result;
    else if (s->type == TK_SETTING_SIZE)
        *(uint64_t *)field = (uint64_t)result;
    else
        *(double *)field = result;
    return TK_OK;
}

/* `value` is trimmed and not empty; *is_kept: the field points to it now. */
static enum tk_status parse_trimmed(const struct tk_setting *s, const char *value, void *field,
                                    bool *is_kept)
{
    switch (s->type) {
    case TK_SETTING_IGNORED:
    case TK_SETTING_RETIRED:
    case TK_SETTING_TOOLS:
        return TK_OK;
    case TK_SETTING_SWITCH:
    case TK_SETTING_BOOL:
        return parse_truth(s, value, field);
    case TK_SETTING_CHOICE:
        /* The manual has the values of these alone in any case of letters. */
        if (!parse_is_word(s->words, value, strstr(s->name, "_POLL_MODE") != NULL))
            return TK_FAIL;
        break;
    case TK_SETTING_TEXT:
        break;
    default:
        return parse_quantity(s, value, field);
    }
    *(const char **)field = value;
    *is_kept = true;
    return TK_OK;
}

enum tk_status tk_setting_parse(const struct tk_setting *s, const char *value,
                                struct tk_settings *out, char *why, size_t why_size)
{
    size_t length;
    bool is_kept = false;
    const char *start = tk_setting_trim(value, &length);
    if (length == 0)
        return TK_OK;
    char *text = strndup(start, length);
    if (!text) {
        snprintf(why, why_size, "out of memory for the value of %s", s->name);
        return TK_FAIL;
    }
    enum tk_status status = parse_trimmed(s, text, (char *)out + s->offset, &is_kept);
    if (!is_kept)
        free(text);
    return status == TK_OK ? TK_OK : setting_refuse(s, value, why, why_size);
}
