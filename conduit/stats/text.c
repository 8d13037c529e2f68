/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See text.h. No state. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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

void tk_text_char(struct tk_text *text, char c)
{
    if (text->length == tk_text_max)
        tk_text_flush(text);
    text->bytes[text->length++] = c;
}

void tk_text_add(struct tk_text *text, const char *more)
{
    for (; *more; more++)
        tk_text_char(text, *more);
}

static unsigned digits_of(uint64_t number, char *digits)
{
    unsigned count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    return count;
}

void tk_text_number_in(struct tk_text *text, uint64_t number, unsigned columns)
{
    char digits[digits_max];
    unsigned count = digits_of(number, digits);
    for (unsigned i = count; i < columns; i++)
        tk_text_char(text, ' ');
    while (count > 0)
        tk_text_char(text, digits[--count]);
}

void tk_text_number(struct tk_text *text, uint64_t number)
{
    tk_text_number_in(text, number, 0);
}

void tk_text_add_in(struct tk_text *text, const char *more, unsigned columns)
{
    tk_text_add(text, more);
    for (size_t i = strlen(more); i < columns; i++)
        tk_text_char(text, ' ');
}

void tk_text_seconds(struct tk_text *text, uint64_t ns)
{
    char digits[digits_max];
    uint64_t us = ns / 1000;
    unsigned count = digits_of(us % 1000000 + 1000000, digits) - 1; /* without the 1 in front */
    tk_text_number(text, us / 1000000);
    tk_text_char(text, '.');
    while (count > 0)
        tk_text_char(text, digits[--count]);
}

void tk_text_quoted(struct tk_text *text, const char *more)
{
    static const char hex[] = "0123456789abcdef";
    tk_text_char(text, '"');
    for (; *more; more++) {
        unsigned char c = (unsigned char)*more;
        if (c == '"' || c == '\\') {
            tk_text_char(text, '\\');
            tk_text_char(text, (char)c);
        } else if (c < 0x20 || c >= 0x7f) { /* a program's text need not be UTF-8 */
            tk_text_add(text, "\\u00");
            tk_text_char(text, hex[c >> 4]);
            tk_text_char(text, hex[c & 15]);
        } else {
            tk_text_char(text, (char)c);
        }
    }
    tk_text_char(text, '"');
}
