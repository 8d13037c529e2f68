/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of the registry; see names.h. Owns nothing. */
#include "config.h"

#include "names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static uint64_t fnv(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    while (*text)
        h = (h ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
    return h;
}

/* The name becomes part of socket names and lines of /proc/net/unix: keep its harmless characters
 * for people and add a hash, so that two different names never meet. */
void shca_name_fabric(const char *text, unsigned uid, char out[SHCA_NAME])
{
    char readable[24];
    size_t n = 0;

    if (!text || !*text)
        text = "default";
    for (const char *c = text; *c && n < sizeof readable - 1; c++)
        if (isalnum((unsigned char)*c) || *c == '-' || *c == '_')
            readable[n++] = *c;
    readable[n] = 0;
    snprintf(out, SHCA_NAME, "%u.%s~%016llx", uid, readable, (unsigned long long)fnv(text));
}

void shca_name_claim(char *out, size_t room, const char *fabric, unsigned slot)
{
    snprintf(out, room, "softhca.%s.%u", fabric, slot);
}

void shca_name_segment(char *out, size_t room, const struct shca_name *n)
{
    snprintf(out, room, "softhca.%s.%u.%u.%d", n->fabric, n->slot, n->pid, n->fd);
}

bool shca_name_parse(const char *line, struct shca_name *out)
{
    static const char mark[] = " @softhca.";
    const char *at = strstr(line, mark), *end;
    size_t n;

    if (!at)
        return false;
    at += sizeof mark - 1;
    /* The fabric is uid.readable~hash, and only one "~" and no further "." is in it. */
    end = strchr(at, '~');
    end = end ? strchr(end, '.') : NULL;
    n = end ? (size_t)(end - at) : 0;
    if (n == 0 || n >= sizeof out->fabric || sscanf(at, "%9u.", &out->uid) != 1 ||
        sscanf(end, ".%4u.%9u.%9d", &out->slot, &out->pid, &out->fd) != 3)
        return false;
    memcpy(out->fabric, at, n);
    out->fabric[n] = 0;
    return out->slot < SHCA_MEMBERS && out->pid != 0 && out->fd >= 0;
}
