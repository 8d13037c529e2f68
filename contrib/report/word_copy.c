/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See word_copy.h. */
#include "config.h"

#include "contrib/report/word_copy.h"

void report_word_copy(char *to, size_t size, struct trace_word word)
{
    size_t length = word.length < size ? word.length : size - 1;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)word.at[i];
        to[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    to[length] = '\0';
}
