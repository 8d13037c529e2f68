/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words for width and speed of a port, such as 4xedr. No state, no lock. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "support/softhca_settings.h"

struct code {
    const char *word;
    uint8_t value;
};

/* Codes of PortInfo (InfiniBand specification, 14.2.5.6); names are not part of it. */
static const struct code widths[] = {{"1x", 1}, {"2x", 16}, {"4x", 2}, {"8x", 4}, {"12x", 8}, {0}};
static const struct code speeds[] = {{"sdr", 1},   {"ddr", 2},   {"qdr", 4},
                                     {"fdr10", 8}, {"fdr", 16},  {"edr", 32},
                                     {"hdr", 64},  {"ndr", 128}, {0}};

bool shca_speed_codes(const char *text, uint8_t *width, uint8_t *speed)
{
    const struct code *w = widths, *s = speeds;

    while (w->word && strncmp(text, w->word, strlen(w->word)) != 0)
        w++;
    while (w->word && s->word && strcmp(text + strlen(w->word), s->word) != 0)
        s++;
    if (!w->word || !s->word)
        return false;
    *width = w->value;
    *speed = s->value;
    return true;
}

bool shca_speed_word(uint32_t width, uint32_t speed, char *out, size_t n)
{
    const struct code *w = widths, *s = speeds;

    while (w->word && w->value != width)
        w++;
    while (s->word && s->value != speed)
        s++;
    snprintf(out, n, "%s%s", w->word ? w->word : "", s->word ? s->word : "");
    return w->word && s->word;
}
