/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See pinning.h. Owns `pinning`; a region's pipe belongs to the holder of the region. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.h"
#include "memory/memory.h"
#include "pinning.h"
#include "unit.h"

enum { whole_region = 128 << 10 };

struct pinned_pages {
    int pages[2]; /* holds them */
    int copy[2];  /* to read them without taking them out */
    int pipe_size;
};

struct pinning pinning;

static void splice_all(int fd, char *base, size_t size)
{
    while (size > 0) {
        struct iovec part = {base, size};
        ssize_t n = vmsplice(fd, &part, 1, 0);
        assert_true(n > 0);
        base += n;
        size -= (size_t)n;
    }
}

static void *pin(void *base, size_t size, bool is_source, uint32_t *key)
{
    struct pinned_pages *p = malloc(sizeof(*p));
    pinning.sources += is_source;
    int present = atomic_load(&pinning.pins) - atomic_load(&pinning.unpins);
    if (pinning.fails_from && present >= pinning.fails_from) {
        free(p);
        errno = pinning.fails_with;
        return NULL;
    }
    assert_true(p && pipe2(p->pages, O_CLOEXEC) == 0 && pipe2(p->copy, O_CLOEXEC) == 0);
    p->pipe_size = fcntl(p->pages[1], F_SETPIPE_SZ, (int)size);
    assert_true(p->pipe_size >= (int)size);
    assert_true(fcntl(p->copy[1], F_SETPIPE_SZ, (int)size) >= (int)size);
    splice_all(p->pages[1], base, size);
    atomic_fetch_add(&pinning.pins, 1);
    *key = 7;
    return p;
}

static void unpin(void *handle)
{
    struct pinned_pages *p = handle;
    for (int i = 0; i < 2; i++) {
        close(p->pages[i]);
        close(p->copy[i]);
    }
    free(p);
    atomic_fetch_add(&pinning.unpins, 1);
}

static void explain(size_t size, int error)
{
    pinning.explained++;
    pinning.explained_size = size;
    pinning.explained_error = error;
}

void pinning_read(const struct tk_pinned *region, const void *address, void *to, size_t nbytes)
{
    static _Thread_local char bytes[whole_region];
    struct pinned_pages *p = region->handle;
    size_t offset = (uintptr_t)address - (region->end - region->size);
    assert_true(region->size <= sizeof(bytes) && offset + nbytes <= region->size);
    assert_int_equal(tee(p->pages[0], p->copy[1], region->size, 0), region->size);
    for (size_t at = 0; at < region->size;) {
        ssize_t n = read(p->copy[0], bytes + at, region->size - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    memcpy(to, bytes + offset, nbytes);
}

static enum tk_status open_with(bool is_paged)
{
    struct tk_firehose_device device = {.pin = pin,
                                        .unpin = unpin,
                                        .explain = explain,
                                        .regions_max = 4096,
                                        .sharers = 1,
                                        .is_paged = is_paged};
    pinning = (struct pinning){.fails_with = ENOMEM};
    return tk_firehose_open(&device);
}

enum tk_status pinning_open(void)
{
    return open_with(false);
}

enum tk_status pinning_open_paged(void)
{
    return open_with(true);
}
