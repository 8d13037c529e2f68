/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decimal numbers and sizes of the library's settings, whatever the client's locale. No state but
 * the "C" locale, made on first use: start-up is single-threaded. */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings/settings.h"

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

bool tk_parse_decimal(const char *text, double *value, char **end)
{
    errno = 0;
    *value = setting_decimal(text, end);
    return *end != text && errno == 0 && isfinite(*value);
}

enum tk_status tk_parse_size(const char *text, const char *unit, double *bytes)
{
    char *end;
    if (!tk_parse_decimal(text, bytes, &end))
        return TK_FAIL;
    while (*end == ' ')
        end++;
    double factor = suffix_factor(*end ? end : unit);
    if (factor == 0)
        return TK_FAIL;
    *bytes *= factor;
    return TK_OK;
}
