/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers to text, and texts of the tools' variables. No state. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/number.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

static const char letters[] = "BKMGT";

enum { keep_units = 10 /* rounding down to fewer would lose more than a tenth */ };

char *gasnett_format_number(int64_t val, char *buf, size_t bufsz, int is_mem_size)
{
    uint64_t size = val < 0 ? -(uint64_t)val : (uint64_t)val;
    const char *sign = val < 0 ? "-" : "";
    if (!is_mem_size && val >= (int64_t)1 << 50)
        snprintf(buf, bufsz, "0x%" PRIx64, size);
    else if (!is_mem_size)
        snprintf(buf, bufsz, "%" PRId64, val);
    if (!is_mem_size)
        return buf;
    int unit = size ? 4 : 0;
    while (size % ((uint64_t)1 << 10 * unit) && size >> 10 * unit < keep_units)
        unit--;
    snprintf(buf, bufsz, "%s%" PRIu64 " %c%s", sign, size >> 10 * unit, letters[unit],
             unit ? "B" : "");
    return buf;
}

int64_t gasnett_parse_int(const char *str, uint64_t mem_size_multiplier)
{
    int64_t value = 0;
    if (str)
        tk_number_scan(&str, true, mem_size_multiplier, &value);
    return value;
}

bool tk_tools_truth(const char *text, bool *value)
{
    *value = !strcasecmp(text, "1") || !strcasecmp(text, "y") || !strcasecmp(text, "yes");
    return *value || !strcasecmp(text, "0") || !strcasecmp(text, "n") || !strcasecmp(text, "no");
}

bool tk_tools_list_has(const char *list, const char *item)
{
    size_t length = strlen(item);
    while (*list) {
        size_t part = strcspn(list, ", ");
        if (part == length && !strncasecmp(list, item, length))
            return true;
        list += part + (list[part] != 0);
    }
    return false;
}
