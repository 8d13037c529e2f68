/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text to values: one parser per type, each refuses text that is not entirely a value in range. One
 * rule for all settings, here and in the launcher: blanks around a value are ignored, and an empty
 * value counts as unset. No state. */
#include "config.h"

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
        if (length == strcspn(word, "|") &&
            (in_any_case ? !strncasecmp(word, value, length) : !strncmp(word, value, length)))
            return true;
    return false;
}

static enum tk_status parse_number(const struct tk_setting *s, const char *value, double *result)
{
    char *end;
    if (s->type == TK_SETTING_SIZE)
        return tk_parse_size(value, s->unit, result);
    return tk_parse_decimal(value, result, &end) && !*end ? TK_OK : TK_FAIL;
}

static bool is_listed(const struct tk_setting *s, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.15g", value);
    return !s->words || parse_is_word(s->words, text, false);
}

/* The range is checked first: a number that does not fit into an int64_t must not be converted. */
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
    else {
        const char *unit = s->type == TK_SETTING_SIZE ? "B" : s->unit;
        snprintf(why, size, "%s='%s' is not a %s from %.15g to %.15g%s%s%s", s->name, value,
                 s->type == TK_SETTING_INT ? "whole number" : "number", s->min, s->max,
                 *unit ? " (" : "", unit, *unit ? ")" : "");
    }
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

/* `value` is trimmed and not empty; *is_kept: the field now points to it. */
static enum tk_status parse_trimmed(const struct tk_setting *s, const char *value, void *field,
                                    bool *is_kept)
{
    switch (s->type) {
    case TK_SETTING_IGNORED:
    case TK_SETTING_RETIRED:
    case TK_SETTING_TOOLS: /* its form is all */
        return TK_OK;
    case TK_SETTING_SWITCH:
    case TK_SETTING_BOOL:
        return parse_truth(s, value, field);
    case TK_SETTING_CHOICE:
        /* The manual allows upper and lower case only in the values of these. */
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
    char complaint[tk_setting_why_max];
    bool has_form = tk_form_is(s->form, text, complaint, sizeof(complaint));
    if (!has_form)
        snprintf(why, why_size, "%s='%s'%s", s->name, text, complaint);
    else if (parse_trimmed(s, text, (char *)out + s->offset, &is_kept) != TK_OK)
        has_form = setting_refuse(s, value, why, why_size) == TK_OK;
    if (!is_kept)
        free(text);
    return has_form ? TK_OK : TK_FAIL;
}

/* GASNET_IBV_PORTS_0, _1 ...: one for each socket, or object of GASNET_IBV_PORTS_TYPE. */
bool tk_setting_is_numbered(const char *name)
{
    static const char stem[] = "GASNET_IBV_PORTS";
    const char *at = name + sizeof(stem) - 1;
    if (strncmp(name, stem, sizeof(stem) - 1) != 0 || *at != '_')
        return false;
    while (*at == '_') {
        size_t digits = strspn(at + 1, "0123456789");
        if (digits == 0)
            return false;
        at += 1 + digits;
    }
    return !*at || *at == '=';
}

static enum tk_status check_numbered(const char *entry, char *why, size_t why_size)
{
    char name[64];
    size_t length = strcspn(entry, "=");
    if (!tk_setting_is_numbered(entry) || !entry[length] || length >= sizeof(name))
        return TK_OK;
    memcpy(name, entry, length);
    name[length] = 0;
    struct tk_settings unused;
    const struct tk_setting ports = {
        .name = name, .type = TK_SETTING_TOOLS, .form = TK_FORM_PORTS, .unit = ""};
    return tk_setting_parse(&ports, entry + length + 1, &unused, why, why_size);
}

const struct tk_setting *tk_setting_in(const char *entry)
{
    static const char all[] = "GASNET_";
    const size_t begin = sizeof(all) - 1;
    if (strncmp(entry, all, begin) != 0)
        return NULL;
    for (size_t i = 0; i < tk_setting_count; i++)
        if (tk_value_in(entry + begin, tk_setting_table[i].name + begin))
            return &tk_setting_table[i];
    return NULL;
}

/* In the order of the table; of several entries with a name the first counts. NULL: no memory. */
static const char **find_values(char *const *env)
{
    const char **values = calloc(tk_setting_count, sizeof(*values));
    for (; values && env && *env; env++) {
        const struct tk_setting *s = tk_setting_in(*env);
        if (s && !values[s - tk_setting_table])
            values[s - tk_setting_table] = strchr(*env, '=') + 1;
    }
    return values;
}

enum tk_status tk_settings_parse(char *const *env, struct tk_settings *out,
                                 void (*refuse)(const char *line))
{
    char why[tk_setting_why_max];
    const char **values = find_values(env);
    enum tk_status status = values ? TK_OK : TK_FAIL;
    if (!values)
        refuse("out of memory for the settings");
    for (size_t i = 0; i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        tk_setting_reset(s, out);
        if (!values || !values[i] || tk_setting_parse(s, values[i], out, why, sizeof(why)) == TK_OK)
            continue;
        refuse(why);
        status = TK_FAIL;
    }
    free(values);
    for (; env && *env; env++)
        if (check_numbered(*env, why, sizeof(why)) != TK_OK) {
            refuse(why);
            status = TK_FAIL;
        }
    if (!out->pshm_enabled)
        out->supernode_maxsize = 1;
    return status;
}
