/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The names of the registry; see registry_name.h. Owns nothing. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "registry_name.h"

#define MARK "softhca"
enum { SHCA_SPREAD = 6 };

static uint64_t fnv(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    while (*text)
        h = (h ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
    return h;
}

/* The name becomes part of socket names and lines of /proc/net/unix: keep its harmless characters,
 * so that it is readable, and add a hash, so that different names never collide. */
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
    snprintf(out, room, MARK "%u.%s.%u", SHCA_LAYOUT, fabric, slot);
}

void shca_name_word(char *out, size_t room, const char *fabric, const char *word)
{
    snprintf(out, room, MARK "%u.%s.%s", SHCA_LAYOUT, fabric, word);
}

/* The kernel lists names by a checksum, which hardly differs among numbers that do. A process that
 * joins reads up to the first name of a segment: these letters spread them evenly over the list, so
 * that it is near the front however many other names there are. */
static void add_spread(char *out, size_t room)
{
    size_t n = strlen(out);
    uint64_t h = fnv(out);
    char letters[SHCA_SPREAD + 1];

    for (unsigned i = 0; i < SHCA_SPREAD; i++, h /= 52) {
        unsigned letter = (unsigned)(h % 52);
        letters[i] = (char)(letter < 26 ? 'a' + letter : 'A' + letter - 26);
    }
    letters[SHCA_SPREAD] = 0;
    snprintf(out + n, room - n, "-%s", letters);
}

/* The inode, with as many digits as number() reads. */
unsigned shca_name_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned)(st.st_ino % 1000000000) : 0;
}

void shca_name_segment(char *out, size_t room, const struct shca_name *n)
{
    snprintf(out, room, MARK "%u.%s.%u.%u.%d-%u", SHCA_LAYOUT, n->fabric, n->slot, n->pid, n->fd,
             n->space);
    add_spread(out, room);
}

/* A decimal as printf writes it, below 10^9: no sign, no blank, no leading zero. */
static bool number(const char **at, unsigned *value)
{
    const char *start = *at;

    for (*value = 0; isdigit((unsigned char)**at) && *at - start < 9; (*at)++)
        *value = *value * 10 + (unsigned)(**at - '0');
    return *at > start && !isdigit((unsigned char)**at) && (*start != '0' || *at == start + 1);
}

static bool dot(const char **at)
{
    return *(*at)++ == '.';
}

/* The fabric is uid.readable~hash, with exactly one "~" and no further ".". */
static bool fabric(const char **at, struct shca_name *out)
{
    const char *start = *at, *end = strchr(start, '~');
    size_t n;

    end = end ? strchr(end, '.') : NULL;
    n = end ? (size_t)(end - start) : 0;
    if (n == 0 || n >= sizeof out->fabric || !number(at, &out->uid) || **at != '.')
        return false;
    memcpy(out->fabric, start, n);
    out->fabric[n] = 0;
    *at = end;
    return true;
}

/* A name of layout 14 has none. */
static bool space(const char **at, unsigned *value)
{
    *value = 0;
    if (**at != '-' || !isdigit((unsigned char)(*at)[1]))
        return true;
    (*at)++;
    return number(at, value);
}

/* Other layouts end differently behind the numbers. */
static bool names_parse(const char *line, struct shca_name *out, unsigned *layout)
{
    static const char mark[] = " @" MARK;
    const char *at = strstr(line, mark);
    unsigned fd;

    if (!at)
        return false;
    at += sizeof mark - 1;
    if (!number(&at, layout) || !dot(&at) || !fabric(&at, out) || !dot(&at) ||
        !number(&at, &out->slot) || !dot(&at) || !number(&at, &out->pid) || !dot(&at) ||
        !number(&at, &fd) || !space(&at, &out->space) || (*at && *at != '\n' && *at != '-'))
        return false;
    out->fd = (int)fd;
    return out->slot < SHCA_MEMBERS && out->pid != 0;
}

bool shca_name_parse(const char *line, struct shca_name *out)
{
    unsigned layout;
    char name[108];
    size_t n;

    if (!names_parse(line, out, &layout) || layout != SHCA_LAYOUT)
        return false;
    shca_name_segment(name, sizeof name, out);
    n = strlen(name);
    line = strstr(line, " @" MARK) + 2;
    return strncmp(line, name, n) == 0 && (!line[n] || line[n] == '\n');
}

bool shca_name_parse_foreign(const char *line, struct shca_name *out, unsigned *layout)
{
    return names_parse(line, out, layout) && *layout != SHCA_LAYOUT;
}
