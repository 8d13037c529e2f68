/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of hosts as users write it: reading, and counting of hosts that are named several times.
 * Owns the names in a list; no lock. Must not ask the network for names: that may take minutes. */
#ifndef TRUNKLINE_SPAWNER_HOST_LIST_H
#define TRUNKLINE_SPAWNER_HOST_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gethostname(2) and PMIx take no longer names; PMIx cannot count more ranks of a host. */
enum { HOST_NAME_LONGEST = 255, HOST_SLOTS_MAX = 65535, HOST_COUNT_MAX = 65536 };

struct host {
    char *name;        /* IPv6 addresses without brackets, virtual hosts without "=" */
    uint32_t slots;    /* sum of the numbers that came with it */
    uint32_t mentions; /* how often it is in the list */
    uint32_t bare;     /* of these, how often without a number */
    bool is_virtual;   /* a part of this host */
};

struct host_list {
    struct host *hosts; /* each name once, in the order of first mention */
    uint32_t count;
    uint32_t capacity;
    void *by_name;        /* a tree of search.h: where each stands in `hosts` */
    bool has_slots;       /* at least one number was given */
    bool keep_duplicates; /* each mention is one more share of the ranks */
    bool is_allocation;   /* from a batch system, not named by the user */
    char origin[4200];    /* what named these hosts; empty when nothing did */
};

/* Adds one mention; `slots` is 0 when no number was given. Without memory or with too many hosts
 * returns false with a sentence in `why`. */
bool host_list_add(struct host_list *list, const char *name, size_t length, uint32_t slots,
                   bool is_virtual, char *why, size_t size);

/* Adds what a text names, separated by commas or blanks: host, host:slots, [IPv6]:slots,
 * =virtual:slots. `origin` is for the sentence in `why`. */
bool host_list_read_text(struct host_list *list, const char *text, const char *origin, char *why,
                         size_t size);

/* Adds what a file names, one host a line, in the same forms or as "host slots=N"; # begins a
 * comment. */
bool host_list_read_file(struct host_list *list, const char *path, const char *origin, char *why,
                         size_t size);

/* Reads the lines of a file one after the other. `take` gets each without its comment, blanks
 * around it and newline, and its number; it returns false to end the reading. False: the file
 * cannot be read, or take() returned false; the sentence is in `why`. */
typedef bool (*host_line_taker)(struct host_list *list, const char *line, const char *place,
                                char *why, size_t size);
bool host_list_each_line(struct host_list *list, const char *path, const char *origin,
                         host_line_taker take, char *why, size_t size);

/* A decimal number from 1 to `most` at the beginning of `text`; 0 if `text` does not begin with
 * one. `end` gets what follows. */
uint32_t host_number(const char *text, uint32_t most, const char **end);

/* Ranks that may run on a host; UINT32_MAX in a list without numbers. A mention without a number in
 * a list with numbers is one slot. */
uint32_t host_list_slots(const struct host_list *list, uint32_t host);

void host_list_free(struct host_list *list);

#endif
