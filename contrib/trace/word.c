/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See word.h. */
#include "config.h"

#include <string.h>

#include "contrib/trace/word.h"

static const char *const names[tk_trace_ops] = {
#define TK_TRACE_OP(id, letter, name) name,
#include "trace/trace.def"
};

static const char letters[tk_trace_ops] = {
#define TK_TRACE_OP(id, letter, name) letter,
#include "trace/trace.def"
};

const char *trace_op_name(enum tk_trace_op op)
{
    return names[op];
}

char trace_op_letter(enum tk_trace_op op)
{
    return letters[op];
}

bool trace_word_is(struct trace_word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

bool trace_op_find(struct trace_word name, struct trace_word letter, enum tk_trace_op *op)
{
    if (letter.length != 1)
        return false;
    for (unsigned i = 0; i < tk_trace_ops; i++) {
        if (letters[i] == letter.at[0] && trace_word_is(name, names[i])) {
            *op = (enum tk_trace_op)i;
            return true;
        }
    }
    return false;
}

bool trace_number(struct trace_word word, uint64_t *number)
{
    uint64_t n = 0;
    for (size_t i = 0; i < word.length; i++) {
        unsigned digit = (unsigned)(unsigned char)word.at[i] - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *number = n;
    return word.length > 0;
}

bool trace_number32(struct trace_word word, uint32_t *number)
{
    uint64_t n;
    if (!trace_number(word, &n) || n > UINT32_MAX)
        return false;
    *number = (uint32_t)n;
    return true;
}

bool trace_fraction(struct trace_word word, unsigned digits, uint64_t *number)
{
    const char *point = word.length ? memchr(word.at, '.', word.length) : NULL;
    uint64_t whole, part, unit = 1;
    if (!point)
        return false;
    const struct trace_word left = {word.at, (size_t)(point - word.at)};
    const struct trace_word right = {point + 1, word.length - left.length - 1};
    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    if (right.length != digits || !trace_number(left, &whole) || !trace_number(right, &part) ||
        whole > UINT64_MAX / unit - 1)
        return false;
    *number = whole * unit + part;
    return true;
}
