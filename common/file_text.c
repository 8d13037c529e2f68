/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a file of text; see file_text.h. */
#include "config.h"

#include "common/file_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PART = 64 << 10 };

struct file_text {
    char *bytes;
    size_t used, size;
};

/* Space for one byte more than the limit shows that a file is longer; another one is for the end.
 */
static bool make_room(struct file_text *t, size_t limit)
{
    if (t->used + 1 < t->size)
        return true;
    size_t size = t->size ? 2 * t->size : FIRST_PART;
    if (size > limit + 2)
        size = limit + 2;
    char *bytes = realloc(t->bytes, size);
    if (!bytes)
        return false;
    t->bytes = bytes;
    t->size = size;
    return true;
}

/* NULL, or why the file is not a text of a legal length. */
static const char *file_text_read(struct file_text *t, int fd, size_t limit)
{
    for (;;) {
        if (!make_room(t, limit))
            return "out of memory";
        ssize_t n = read(fd, t->bytes + t->used, t->size - 1 - t->used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return strerror(errno);
        if (n == 0)
            return NULL;
        if (memchr(t->bytes + t->used, 0, (size_t)n))
            return "it is not text: a zero byte is in it";
        t->used += (size_t)n;
        if (t->used > limit)
            return "";
    }
}

char *tk_file_text(const char *path, size_t limit, size_t *size, char *why, size_t why_size)
{
    struct file_text t = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const char *flaw = fd < 0 ? strerror(errno) : file_text_read(&t, fd, limit);

    if (fd >= 0)
        close(fd);
    if (!flaw) {
        t.bytes[t.used] = 0;
        *size = t.used;
        return t.bytes;
    }
    free(t.bytes);
    if (*flaw)
        snprintf(why, why_size, "%s", flaw);
    else
        snprintf(why, why_size, "it has more than %zu bytes, the limit for such a file", limit);
    return NULL;
}
