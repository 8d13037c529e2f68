/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See text.h. No state. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "stats/text.h"

enum { digits_max = 20 };

void tk_text_flush(struct tk_text *text)
{
    size_t done = 0;
    while (done < text->length && !text->error) {
        ssize_t n = write(text->fd, text->bytes + done, text->length - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            text->error = n < 0 ? errno : EIO;
    }
    text->length = 0;
}

void tk_text_bytes(struct tk_text *text, const char *bytes, size_t length)
{
    while (length > 0) {
        if (text->length == tk_text_max && text->fd == 0)
            return;
        if (text->length == tk_text_max)
            tk_text_flush(text);
        size_t part = tk_min(length, tk_text_max - text->length);
        memcpy(text->bytes + text->length, bytes, part);
        text->length += part;
        bytes += part;
        length -= part;
    }
}

void tk_text_char(struct tk_text *text, char c)
{
    tk_text_bytes(text, &c, 1);
}

void tk_text_add(struct tk_text *text, const char *more)
{
    tk_text_bytes(text, more, strlen(more));
}

/* Padded with `fill` on the left to that many columns. */
static void add_number(struct tk_text *text, uint64_t number, unsigned columns, char fill)
{
    char digits[digits_max];
    unsigned at = digits_max;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    for (unsigned i = digits_max - at; i < columns; i++)
        tk_text_char(text, fill);
    tk_text_bytes(text, digits + at, digits_max - at);
}

void tk_text_number_in(struct tk_text *text, uint64_t number, unsigned columns)
{
    add_number(text, number, columns, ' ');
}

void tk_text_number(struct tk_text *text, uint64_t number)
{
    add_number(text, number, 0, ' ');
}

void tk_text_add_in(struct tk_text *text, const char *more, unsigned columns)
{
    tk_text_add(text, more);
    for (size_t i = strlen(more); i < columns; i++)
        tk_text_char(text, ' ');
}

void tk_text_fraction(struct tk_text *text, uint64_t number, unsigned digits)
{
    uint64_t unit = 1;
    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    tk_text_number(text, number / unit);
    tk_text_char(text, '.');
    add_number(text, number % unit, digits, '0');
}

void tk_text_line(struct tk_text *text, const char *more)
{
    for (; *more; more++)
        tk_text_char(text, (unsigned char)*more < 0x20 ? ' ' : *more);
}

void tk_text_escaped(struct tk_text *text, const char *more)
{
    static const char hex[] = "0123456789abcdef";
    for (; *more; more++) {
        unsigned char c = (unsigned char)*more;
        const char code[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], '\0'};
        if (c < 0x20 || c >= 0x7f) { /* a program's text need not be UTF-8 */
            tk_text_add(text, code);
            continue;
        }
        if (c == '"' || c == '\\')
            tk_text_char(text, '\\');
        tk_text_char(text, *more);
    }
}

void tk_text_quoted(struct tk_text *text, const char *more)
{
    tk_text_char(text, '"');
    tk_text_escaped(text, more);
    tk_text_char(text, '"');
}
