/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of hosts, one copy of each: a job has many ranks on few hosts. Owns the copies, which are
 * kept until the process ends because errors print them, and until tk_host_names_complete() a table
 * that finds them. No lock: start-up is single-threaded. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "peer/peer.h"

static struct {
    char **at; /* by hash; NULL: free */
    size_t size, used;
    const char *last; /* consecutive ranks mostly share one */
} names;

/* FNV-1a, 64 bits */
static size_t hash_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32);
}

/* The entry of the name, or the free entry for it. */
static char **place_of(const char *name)
{
    size_t i = hash_of(name);
    while (names.at[i & (names.size - 1)] && strcmp(names.at[i & (names.size - 1)], name))
        i++;
    return &names.at[i & (names.size - 1)];
}

/* At most half of the table is in use, so that searches are short. */
static bool grow(void)
{
    enum { first_size = 64 };
    char **old = names.at;
    size_t old_size = names.size;
    names.size = old_size ? 2 * old_size : first_size;
    names.at = calloc(names.size, sizeof(*names.at));
    for (size_t i = 0; names.at && i < old_size; i++)
        if (old[i])
            *place_of(old[i]) = old[i];
    free(old);
    return names.at != NULL;
}

const char *tk_host_name_keep(const char *name)
{
    if (names.last && !strcmp(names.last, name))
        return names.last;
    if (2 * names.used >= names.size && !grow())
        return NULL;
    char **place = place_of(name);
    if (*place)
        return names.last = *place;
    names.used++;
    return names.last = *place = strdup(name);
}

void tk_host_names_complete(void)
{
    free(names.at);
    names.at = NULL;
    names.last = NULL;
    names.size = names.used = 0;
}

size_t tk_host_names_bytes(size_t count, size_t length)
{
    return count * (length + 1);
}
