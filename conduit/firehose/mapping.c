/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mappings of this process as the kernel reports them at the time of the call: rows of adjacent
 * mappings with equal rights, which the kernel merges where it can. No state. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "firehose/firehose_private.h"

enum { at_once = 32 << 10 /* bytes of text: the kernel takes its locks anew for each read */ };

struct mapping {
    uint64_t from, to, inode;
    char rights[5];
};

/* "00400000-0040b000 r-xp 00000000 08:01 1234 ..."; what follows is skipped, however long. */
static bool next_mapping(FILE *file, struct mapping *m)
{
    int c;
    if (fscanf(file, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64, &m->from, &m->to,
               m->rights, &m->inode) != 4)
        return false;
    do
        c = getc_unlocked(file);
    while (c != '\n' && c != EOF);
    return true;
}

static bool continues(const struct mapping *before, const struct mapping *next)
{
    return before->to == next->from && before->inode == 0 && next->inode == 0 &&
           strcmp(before->rights, next->rights) == 0;
}

/* Adjacent mappings that are alike form a row; the row sought begins at or before the range and
 * ends at or behind it. */
static bool find_row(FILE *file, uintptr_t *from, uintptr_t *to)
{
    struct mapping last = {.to = 0}, next;
    uint64_t row = 0, gap = 0; /* begin of the row, and of the gap before it */
    uintptr_t at = *from, end = *to;
    bool is_more;
    while ((is_more = next_mapping(file, &next))) {
        if (!continues(&last, &next)) {
            if (last.to >= end)
                break;
            gap = last.to;
            row = next.from;
        }
        if (row > at)
            return false;
        last = next;
    }
    *from = (uintptr_t)gap;
    *to = (uintptr_t)(is_more ? next.from : last.to);
    return last.to >= end;
}

/* ---- the same by querying single mappings, on kernels that can: in a hundredth of the time, so
 * that less changes meanwhile ---- */

/* Argument of PROCMAP_QUERY, which headers before Linux 6.11 lack. */
struct query {
    uint64_t size, flags, address;
    uint64_t from, to, rights, page_size, offset, inode;
    uint32_t device[2], name_size, build_id_size;
    uint64_t name, build_id;
};

enum {
    or_next = 0x10, /* the next mapping, if the address is not mapped */
    what_rights = 0xf
};

static bool mapping_query(int fd, uint64_t address, unsigned flags, struct query *answer)
{
    *answer = (struct query){.size = sizeof(*answer), .flags = flags, .address = address};
    return ioctl(fd, _IOWR('f', 17, struct query), answer) == 0;
}

static bool are_alike(const struct query *a, const struct query *b)
{
    return a->inode == 0 && b->inode == 0 && (a->rights & what_rights) == (b->rights & what_rights);
}

static uint64_t begin_of_row(int fd, struct query m)
{
    struct query before;
    while (mapping_query(fd, m.from - 1, 0, &before) && are_alike(&before, &m))
        m = before;
    return m.from;
}

/* 0: the row is shorter than `least`. */
static uint64_t end_of_gap(int fd, struct query m, uint64_t least)
{
    struct query next;
    bool is_more;
    while ((is_more = mapping_query(fd, m.to, or_next, &next)) && next.from == m.to &&
           are_alike(&m, &next))
        m = next;
    if (m.to < least)
        return 0;
    return is_more ? next.from : m.to;
}

/* The gap before the row is not determined: PROCMAP_QUERY can't look backwards. */
static bool query_row(int fd, uintptr_t *from, uintptr_t *to)
{
    struct query first;
    if (!mapping_query(fd, *from, 0, &first))
        return false;
    *from = (uintptr_t)begin_of_row(fd, first);
    uint64_t end = end_of_gap(fd, first, *to);
    *to = end ? (uintptr_t)end : *to;
    return end != 0;
}

bool tk_mappings_around(uintptr_t *from, uintptr_t *to)
{
    char buffer[at_once];
    FILE *file = fopen("/proc/self/maps", "re");
    if (!file)
        return false;
    errno = 0;
    bool is_found = query_row(fileno(file), from, to);
    if (!is_found && errno == ENOTTY) {
        setvbuf(file, buffer, _IOFBF, sizeof(buffer));
        is_found = find_row(file, from, to);
    }
    fclose(file);
    return is_found;
}

/* ---- rights ---- */

enum { may_write = 0x2 /* in the answer to a query */ };

static bool query_writable(int fd, uint64_t at, uint64_t end)
{
    struct query m;
    while (at < end && mapping_query(fd, at, 0, &m) && (m.rights & may_write))
        at = m.to;
    return at >= end;
}

static bool read_writable(FILE *file, uint64_t at, uint64_t end)
{
    struct mapping m;
    while (at < end && next_mapping(file, &m) && m.from <= at)
        if (m.to > at) {
            if (m.rights[1] != 'w')
                return false;
            at = m.to;
        }
    return at >= end;
}

bool tk_mapping_is_writable(const void *address, size_t nbytes)
{
    char buffer[at_once];
    uint64_t at = (uintptr_t)address, end = at + nbytes;
    FILE *file = fopen("/proc/self/maps", "re");
    if (!file)
        return false;
    errno = 0;
    bool can = query_writable(fileno(file), at, end);
    if (!can && errno == ENOTTY) {
        setvbuf(file, buffer, _IOFBF, sizeof(buffer));
        can = read_writable(file, at, end);
    }
    fclose(file);
    return can;
}
