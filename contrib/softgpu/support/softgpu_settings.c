/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses SOFTGPU: words and name=value pairs, separated by commas. A word that is not in the table
 * is an error, because a misspelt option would otherwise be ignored silently. Owns nothing, takes
 * no lock. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "common/number.h"
#include "contrib/softgpu/support/softgpu_settings.h"

#define SGPU_FORMS                                                                                 \
    "devices=0..16, memory=SIZE, bar=SIZE, delay=USEC, bandwidth=MB/s, seed=N, no-dmabuf, "        \
    "no-peermem, no-ipc, no-uva, weak-order, ordered-streams"

struct option {
    const char *name;
    size_t field;
    bool flag, size; /* takes no value; takes K, M, G */
    int64_t low, high;
};

#define NUMBER(name, field, low, high)                                                             \
    {                                                                                              \
        name, offsetof(struct sgpu_config, field), false, false, low, high                         \
    }
#define SIZE(name, field, high)                                                                    \
    {                                                                                              \
        name, offsetof(struct sgpu_config, field), false, true, 4096, high                         \
    }
#define FLAG(name, field)                                                                          \
    {                                                                                              \
        name, offsetof(struct sgpu_config, field), true, false, 0, 0                               \
    }

static const int64_t tebi = INT64_C(1) << 40;
static const struct option options[] = {
    NUMBER("devices", devices, 0, SGPU_DEVICES_MAX),
    SIZE("memory", memory, INT64_C(16) << 40),
    SIZE("bar", bar, INT64_C(16) << 40),
    NUMBER("delay", delay, 0, 10000000),
    NUMBER("bandwidth", bandwidth, 1, 1000000),
    NUMBER("seed", seed, 0, INT64_MAX),
    FLAG("no-dmabuf", no_dmabuf),
    FLAG("no-peermem", no_peermem),
    FLAG("no-ipc", no_ipc),
    FLAG("no-uva", no_uva),
    FLAG("weak-order", weak_order),
    FLAG("ordered-streams", ordered_streams),
};

static const struct option *option_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static void print_range(const struct option *o, char *out, size_t n)
{
    if (o->size)
        snprintf(out, n, "a size from 4K to %lldT", (long long)(o->high / tebi));
    else
        snprintf(out, n, "a number from %lld to %lld", (long long)o->low, (long long)o->high);
}

/* `word` is one option, terminated by a zero byte. */
static bool take_option(const char *word, struct sgpu_config *c, char *why, size_t n)
{
    const char *equals = strchr(word, '=');
    const struct option *o = option_find(word, equals ? (size_t)(equals - word) : strlen(word));
    int64_t value = 1;
    char range[64];

    if (!o || o->flag != !equals) {
        snprintf(why, n, "SOFTGPU: '%s' is no option; legal are " SGPU_FORMS, word);
        return false;
    }
    if (o->flag) {
        memcpy((char *)c + o->field, &(bool){true}, sizeof(bool));
        return true;
    }
    if (equals) {
        const char *at = equals + 1;

        if (!tk_number_scan(&at, o->size, 1, &value) || *at || value < o->low || value > o->high) {
            print_range(o, range, sizeof range);
            snprintf(why, n, "SOFTGPU: %s is not %s; legal are " SGPU_FORMS, word, range);
            return false;
        }
    }
    memcpy((char *)c + o->field, &(uint64_t){(uint64_t)value}, sizeof(uint64_t));
    return true;
}

bool sgpu_settings_parse(const char *text, struct sgpu_config *out, char *why, size_t n)
{
    char word[64];

    *out = (struct sgpu_config){.devices = 1, .memory = UINT64_C(4) << 30, .seed = 1};
    while (text && *text) {
        size_t length = strcspn(text, ",");

        if (length >= sizeof word) {
            snprintf(why, n, "SOFTGPU: '%.20s...' is no option; legal are " SGPU_FORMS, text);
            return false;
        }
        memcpy(word, text, length);
        word[length] = 0;
        if (!take_option(word, out, why, n))
            return false;
        text += length + (text[length] == ',');
    }
    return true;
}
