/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds out whether a range of memory is a shared mapping of a file (memfd or MAP_SHARED) that
 * peers could map too, and keeps a descriptor of that file open for as long as a region needs it.
 * Owns the list of such files; the caller holds shca.lock. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fabric/fabric.h"

struct area {
    uint64_t start, end, offset, ino;
    uint64_t dev;
    bool shared;
};

static struct shca_file *files;
static int free_fd; /* the lowest free descriptor, when a mapping was last asked for */

/* One read of 8 bytes recognises private memory (malloc, stack), so that registering it costs the
 * same in a process with thousands of mappings. Bit 61: a page of a file or of shared memory. */
static bool is_private(const void *addr)
{
    static int fd = -1;
    static uint32_t fd_pid;
    uint64_t entry;
    off_t at;

    if (fd < 0 || fd_pid != shca.pid) {
        fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        fd_pid = shca.pid;
    }
    at = (off_t)((uintptr_t)addr / (uintptr_t)sysconf(_SC_PAGESIZE) * sizeof entry);
    if (fd < 0 || pread(fd, &entry, sizeof entry, at) != sizeof entry)
        return false;
    return (entry >> 63 & 1) && !(entry >> 61 & 1);
}

static bool file_parse(const char *line, struct area *a)
{
    char perms[5];
    unsigned major_no, minor_no;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &a->start, &a->end,
               perms, &a->offset, &major_no, &minor_no, &a->ino) != 7)
        return false;
    a->dev = makedev(major_no, minor_no);
    a->shared = perms[3] == 's' && perms[0] == 'r' && perms[1] == 'w' && a->ino != 0;
    return true;
}

static bool continues(const struct area *a, const struct area *next)
{
    return next->shared && next->start == a->end && next->ino == a->ino && next->dev == a->dev &&
           next->offset == a->offset + (a->end - a->start);
}

/* linux/fs.h, PROCMAP_QUERY: since Linux 6.11. */
struct mapping_query {
    uint64_t size, query_flags, query_addr;
    uint64_t start, end, flags, page_size, offset, inode;
    uint32_t dev_major, dev_minor, name_size, build_id_size;
    uint64_t name_addr, build_id_addr;
};

enum mapping_flags { MAPPING_READABLE = 1, MAPPING_WRITABLE = 2, MAPPING_SHARED = 8 };

/* 0, ENOENT for an address without a mapping, or another errno if the kernel can't tell. */
static int area_at(int maps, uint64_t addr, struct area *a)
{
    const uint64_t all = MAPPING_READABLE | MAPPING_WRITABLE | MAPPING_SHARED;
    struct mapping_query q = {.size = sizeof q, .query_addr = addr};

    if (ioctl(maps, _IOWR('f', 17, struct mapping_query), &q) != 0)
        return errno;
    *a = (struct area){.start = q.start,
                       .end = q.end,
                       .offset = q.offset,
                       .ino = q.inode,
                       .dev = makedev(q.dev_major, q.dev_minor),
                       .shared = (q.flags & all) == all && q.inode != 0};
    return 0;
}

/* Asks for each mapping: a process of a large job has hundreds, and the text of all costs more than
 * the rest of a registration. False: it could not be found out in this way. */
static bool ask_for_area(uint64_t start, uint64_t end, struct area *found, bool *have)
{
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), e;
    struct area a = {0};

    if (maps < 0)
        return false;
    free_fd = maps;
    e = area_at(maps, start, found);
    *have = e == 0 && found->shared;
    while (*have && e == 0 && found->end < end) {
        e = area_at(maps, found->end, &a);
        *have = e == 0 && continues(found, &a);
        found->end = a.end;
    }
    close(maps);
    return e == 0 || e == ENOENT;
}

/* The mapping(s) of one file that cover [start, end). */
static bool find_area(uint64_t start, uint64_t end, struct area *found)
{
    FILE *f;
    char line[512];
    bool have = false;

    if (ask_for_area(start, end, found, &have))
        return have;
    have = false;
    f = fopen("/proc/self/maps", "re");
    if (!f)
        return false;
    while (fgets(line, sizeof line, f)) {
        struct area a;

        if (!file_parse(line, &a) || a.end <= start)
            continue;
        if (have ? !continues(found, &a) : !(a.shared && a.start <= start))
            break;
        if (have)
            found->end = a.end;
        else
            *found = a;
        have = true;
        if (found->end >= end)
            break;
    }
    fclose(f);
    return have && found->end >= end;
}

/* Shared memory that others cannot open by name: System V, or MAP_ANONYMOUS. */
static bool nameless(const char *line)
{
    return strstr(line, " /SYSV") || strstr(line, " /dev/zero (deleted)");
}

bool shca_file_reachable(const void *addr, size_t length)
{
    uint64_t start = (uintptr_t)addr, end = start + length;
    char line[512];
    bool found = false;
    FILE *f;

    /* Only the two ends of the range are checked, so that this stays cheap for ordinary memory. */
    if (is_private(addr) && is_private((const char *)addr + length - 1))
        return false;
    f = fopen("/proc/self/maps", "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        struct area a;

        found =
            file_parse(line, &a) && a.end > start && a.start < end && a.shared && !nameless(line);
    }
    if (f)
        fclose(f);
    return found;
}

/* Any descriptor of the process; another thread may close it meanwhile, which the thread sanitizer
 * would report as a race if this were fstat(). */
static bool is_file(int fd, uint64_t dev, uint64_t ino)
{
    struct stat st;

    return fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && st.st_dev == dev && st.st_ino == ino &&
           (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/* A duplicate of that descriptor, or -1 if it belongs to another file by now. */
static int duplicate(int fd, uint64_t dev, uint64_t ino)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy >= 0 && !is_file(copy, dev, ino)) {
        close(copy);
        return -1;
    }
    return copy;
}

/* Memory is mostly registered just after its file was made, so the descriptor before the lowest
 * free one is tried first, and then those below it, before those above. */
static int find_low_fd(uint64_t dev, uint64_t ino)
{
    enum { tried = 128 };
    int first = free_fd < tried ? free_fd : tried, found;

    for (int n = 0; n < tried; n++) {
        int fd = n < first ? first - 1 - n : n;
        if (is_file(fd, dev, ino) && (found = duplicate(fd, dev, ino)) >= 0)
            return found;
    }
    return -1;
}

/* The program's own descriptor of the file, if it kept it open. The low ones are tried first: to
 * list the directory the kernel makes an entry for each, which costs more than these calls. */
static int find_fd(uint64_t dev, uint64_t ino)
{
    struct dirent *e;
    int found = find_low_fd(dev, ino);
    DIR *d;

    if (found >= 0)
        return found;
    d = opendir("/proc/self/fd");
    if (!d)
        return -1;
    while (found < 0 && (e = readdir(d)))
        if (e->d_name[0] != '.' && is_file(atoi(e->d_name), dev, ino))
            found = duplicate(atoi(e->d_name), dev, ino);
    closedir(d);
    return found;
}

static struct shca_file *file_of(uint64_t dev, uint64_t ino)
{
    struct shca_file *f = files;

    while (f && (f->dev != dev || f->ino != ino))
        f = f->next;
    if (f) {
        f->users++;
        return f;
    }
    f = malloc(sizeof *f);
    if (!f)
        return NULL;
    *f = (struct shca_file){dev, ino, find_fd(dev, ino), 1, files};
    if (f->fd < 0) {
        free(f);
        return NULL;
    }
    files = f;
    return f;
}

struct shca_file *shca_file_find(const void *addr, size_t length, uint64_t *offset)
{
    uint64_t start = (uintptr_t)addr;
    struct area a;

    if (is_private(addr) || !find_area(start, start + length, &a))
        return NULL;
    *offset = a.offset + (start - a.start);
    return file_of(a.dev, a.ino);
}

void shca_file_put(struct shca_file *f)
{
    if (!f || --f->users > 0)
        return;
    for (struct shca_file **at = &files; *at; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            break;
        }
    close(f->fd);
    free(f);
}
