/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of hosts; see host_list.h. Owns nothing but the list that it is given; no lock. */
#include "config.h"

#include "host_list.h"
#include "common/file_text.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n\v\f";
static const char legal[] = "host, host:slots, [IPv6 address]:slots or =virtual host:slots, with 1 "
                            "to 65535 slots";

/* One word of a list, taken apart. */
struct host_entry {
    const char *name;
    size_t length;
    uint32_t slots;
    bool is_virtual;
};

static bool host_list_fail(char *why, size_t size, const char *text)
{
    snprintf(why, size, "%s", text);
    return false;
}

/* A name must not look like an option of the program to which it is passed. */
static bool is_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@", name[i]))
            return false;
    return length > 0 && length <= HOST_NAME_LONGEST && *name != '-' && *name != '.';
}

/* With the name of an interface behind "%", as link-local addresses have it. */
static bool is_address(const char *name, size_t length)
{
    size_t digits = strspn(name, "0123456789abcdefABCDEF:.");
    if (digits < length && name[digits] == '%')
        return is_address(name, digits) && is_name(name + digits + 1, length - digits - 1);
    return digits >= length && length >= 2 && length <= HOST_NAME_LONGEST &&
           memchr(name, ':', length);
}

/* Compares two entries of the search tree: the launcher looks up each of the tens of thousands of
 * hosts of a batch system. */
struct place {
    const char *name;
    size_t length;
    bool is_virtual;
    uint32_t at;
};

static int place_compare(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->is_virtual != b->is_virtual)
        return a->is_virtual ? 1 : -1;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return memcmp(a->name, b->name, a->length);
}

static struct host *host_list_find(const struct host_list *list, const char *name, size_t length,
                                   bool is_virtual)
{
    const struct place wanted = {.name = name, .length = length, .is_virtual = is_virtual};
    struct place *const *found = tfind(&wanted, &list->by_name, place_compare);
    return found ? &list->hosts[(*found)->at] : NULL;
}

static bool host_list_has_room(struct host_list *list)
{
    if (list->count < list->capacity)
        return true;
    uint32_t capacity = list->capacity ? 2 * list->capacity : 16;
    struct host *larger = realloc(list->hosts, capacity * sizeof(*larger));
    if (!larger)
        return false;
    list->hosts = larger;
    list->capacity = capacity;
    return true;
}

static struct host *host_list_append(struct host_list *list, const char *name, size_t length,
                                     bool is_virtual)
{
    char *copy = strndup(name, length);
    struct place *place = malloc(sizeof(*place));
    if (copy && place && host_list_has_room(list)) {
        *place = (struct place){copy, length, is_virtual, list->count};
        if (tsearch(place, &list->by_name, place_compare)) {
            struct host *h = &list->hosts[list->count++];
            *h = (struct host){.name = copy, .is_virtual = is_virtual};
            return h;
        }
    }
    free(copy);
    free(place);
    return NULL;
}

bool host_list_add(struct host_list *list, const char *name, size_t length, uint32_t slots,
                   bool is_virtual, char *why, size_t size)
{
    struct host *h = host_list_find(list, name, length, is_virtual);
    if (!is_name(name, length) && !is_address(name, length)) {
        snprintf(why, size, "'%.*s' is not the name of a host", (int)(length < 300 ? length : 300),
                 name);
        return false;
    }
    if (!h && list->count == HOST_COUNT_MAX)
        return host_list_fail(why, size, "more than 65536 hosts are named");
    if (!h && !(h = host_list_append(list, name, length, is_virtual)))
        return host_list_fail(why, size, "out of memory for the list of hosts");
    h->mentions++;
    h->bare += slots == 0;
    h->slots = h->slots + slots > HOST_SLOTS_MAX ? HOST_SLOTS_MAX : h->slots + slots;
    list->has_slots |= slots != 0;
    return true;
}

uint32_t host_list_slots(const struct host_list *list, uint32_t host)
{
    const struct host *h = &list->hosts[host];
    return list->has_slots ? h->slots + h->bare : UINT32_MAX;
}

void host_list_free(struct host_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->hosts[i].name);
    free(list->hosts);
    tdestroy(list->by_name, free);
    *list = (struct host_list){0};
}

uint32_t host_number(const char *text, uint32_t most, const char **end)
{
    char *after;
    errno = 0;
    unsigned long n = strtoul(text, &after, 10);
    *end = after;
    return text[0] < '0' || text[0] > '9' || errno || n > most ? 0 : (uint32_t)n;
}

/* The name of an entry; `rest` gets what follows it. */
static bool take_name(const char *word, struct host_entry *e, const char **rest)
{
    e->is_virtual = *word == '=';
    e->name = word + e->is_virtual;
    if (*e->name == '[' && !e->is_virtual) {
        const char *close = strchr(e->name++, ']');
        if (!close)
            return false;
        e->length = (size_t)(close - e->name);
        *rest = close + 1;
        return is_address(e->name, e->length);
    }
    e->length = strcspn(e->name, ":");
    *rest = e->name + e->length;
    return is_name(e->name, e->length);
}

static bool take_entry(const char *word, struct host_entry *e)
{
    const char *rest;
    if (!take_name(word, e, &rest))
        return false;
    e->slots = 0;
    if (!*rest)
        return true;
    e->slots = *rest == ':' ? host_number(rest + 1, HOST_SLOTS_MAX, &rest) : 0;
    return e->slots && !*rest;
}

static bool add_entry(struct host_list *list, const struct host_entry *e, char *why, size_t size)
{
    return host_list_add(list, e->name, e->length, e->slots, e->is_virtual, why, size);
}

bool host_list_read_text(struct host_list *list, const char *text, const char *origin, char *why,
                         size_t size)
{
    static const char separators[] = ", \t\r\n\v\f";
    struct host_entry e;
    bool is_right = true;
    char *copy = strdup(text), *state;

    if (!copy)
        return host_list_fail(why, size, "out of memory for the list of hosts");
    for (char *word = strtok_r(copy, separators, &state); word && is_right;
         word = strtok_r(NULL, separators, &state)) {
        is_right = take_entry(word, &e);
        if (is_right)
            is_right = add_entry(list, &e, why, size);
        else
            snprintf(why, size, "%s: '%.300s' is not %s", origin, word, legal);
    }
    free(copy);
    return is_right;
}

/* The longest text is a hundred thousand lines of long names. */
enum { HOST_FILE_MAX = 16 << 20 };

bool host_list_each_line(struct host_list *list, const char *path, const char *origin,
                         host_line_taker take, char *why, size_t size)
{
    char place[HOST_NAME_LONGEST + 4200], flaw[200], *next;
    size_t length;
    bool is_right = true;
    char *content = tk_file_text(path, HOST_FILE_MAX, &length, flaw, sizeof(flaw));

    if (!content) {
        snprintf(why, size, "the file of hosts %s (%s) cannot be read: %s", path, origin, flaw);
        return false;
    }
    next = content;
    for (unsigned long number = 1; next && is_right; number++) {
        char *line = strsep(&next, "\n"), *text = line + strspn(line, blanks);
        text[strcspn(text, "#")] = 0;
        for (size_t n = strlen(text); n && strchr(blanks, text[n - 1]); n--)
            text[n - 1] = 0;
        snprintf(place, sizeof(place), "%s:%lu", path, number);
        is_right = !*text || take(list, text, place, why, size);
    }
    free(content);
    return is_right;
}

/* "host slots=N": the number as the files of mpirun have it. */
static bool take_slots_word(char *text, struct host_entry *e)
{
    size_t length = strcspn(text, blanks);
    const char *word = text + length + strspn(text + length, blanks), *rest;
    text[length] = 0;
    if (strncmp(word, "slots=", 6) != 0 || !take_entry(text, e) || e->slots)
        return false;
    e->slots = host_number(word + 6, HOST_SLOTS_MAX, &rest);
    return e->slots && !*rest;
}

static bool take_host_line(struct host_list *list, const char *line, const char *place, char *why,
                           size_t size)
{
    struct host_entry e;
    char *copy = strdup(line);
    if (!copy)
        return host_list_fail(why, size, "out of memory for the list of hosts");
    bool is_right = strpbrk(line, blanks) ? take_slots_word(copy, &e) : take_entry(copy, &e);
    if (is_right)
        is_right = add_entry(list, &e, why, size);
    else
        snprintf(why, size, "%s: '%.300s' is not %s (or host slots=N)", place, line, legal);
    free(copy);
    return is_right;
}

bool host_list_read_file(struct host_list *list, const char *path, const char *origin, char *why,
                         size_t size)
{
    return host_list_each_line(list, path, origin, take_host_line, why, size);
}
