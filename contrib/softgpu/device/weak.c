/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Weak ordering of an HCA's writes (the option weak-order). What is exported is a copy of the
 * memory, in a memfd of its own: HCAs write to it, and the device sees what they wrote after a
 * flush only, or after an HCA has read such memory of this process, which on PCIe pushes the writes
 * before it. A flush compares the copy with its state at the last flush and stores the bytes that
 * differ in the memory. The device's own writes go to both. Owns the copies. */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/dmabuf_standin.h"
#include "contrib/softgpu/device/device.h"

static struct sgpu_storage *shadowed;
static uint64_t reads_seen; /* by HCAs, as of the last flush that followed a read */
/* Protects device-side reads and writes, which run without sgpu_lock. Lock order: sgpu_lock
 * first. */
static pthread_mutex_t weak_lock = PTHREAD_MUTEX_INITIALIZER;

bool sgpu_weak_export(struct sgpu_storage *s)
{
    int fd;

    if (s->shadow)
        return true;
    fd = memfd_create(TK_DMABUF_NAME, MFD_CLOEXEC);
    if (fd < 0)
        return false;
    if (ftruncate(fd, (off_t)s->length) == 0)
        s->shadow = mmap(NULL, s->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    s->flushed = s->shadow && s->shadow != MAP_FAILED ? malloc(s->length) : NULL;
    if (!s->flushed) {
        if (s->shadow && s->shadow != MAP_FAILED)
            munmap(s->shadow, s->length);
        s->shadow = NULL;
        close(fd);
        return false;
    }
    pthread_mutex_lock(&weak_lock);
    s->shadow_fd = fd;
    memcpy(s->shadow, s->view, s->length);
    memcpy(s->flushed, s->view, s->length);
    s->next_shadowed = shadowed;
    shadowed = s;
    pthread_mutex_unlock(&weak_lock);
    return true;
}

void sgpu_weak_written(struct sgpu_storage *s, uint64_t offset, uint64_t length)
{
    if (!sgpu_config.weak_order)
        return;
    pthread_mutex_lock(&weak_lock);
    if (s->shadow) {
        memcpy(s->shadow + offset, s->view + offset, length);
        memcpy(s->flushed + offset, s->view + offset, length);
    }
    pthread_mutex_unlock(&weak_lock);
}

static void flush_bytes(struct sgpu_storage *s, uint64_t at, uint64_t end)
{
    for (; at < end; at++)
        if (s->shadow[at] != s->flushed[at])
            s->view[at] = s->flushed[at] = s->shadow[at];
}

static void flush_storage(struct sgpu_storage *s)
{
    const uint64_t piece = 4096;

    for (uint64_t at = 0; at < s->length; at += piece)
        if (memcmp(s->shadow + at, s->flushed + at, piece) != 0)
            flush_bytes(s, at, at + piece);
}

static void flush_device(int device)
{
    for (struct sgpu_storage *s = shadowed; s; s = s->next_shadowed)
        if (device < 0 || s->device == device)
            flush_storage(s);
}

void sgpu_weak_flush(int device)
{
    pthread_mutex_lock(&weak_lock);
    flush_device(device);
    pthread_mutex_unlock(&weak_lock);
}

/* softhca is linked, preloaded, or stands in for libibverbs.so.1, which a program may have opened
 * with RTLD_LOCAL. NULL: no HCA that counts reads. */
static tk_device_reads find_counter(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, TK_DEVICE_READS_FUNCTION), *library;
    tk_device_reads f = NULL;

    if (!symbol && (library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD))) {
        symbol = dlsym(library, TK_DEVICE_READS_FUNCTION);
        dlclose(library);
    }
    memcpy(&f, &symbol, sizeof f);
    return f;
}

void sgpu_weak_reading(void)
{
    tk_device_reads counter = sgpu_config.weak_order ? find_counter() : NULL;
    uint64_t reads = counter ? counter() : 0;

    if (!counter)
        return;
    pthread_mutex_lock(&weak_lock);
    if (reads != reads_seen) {
        reads_seen = reads;
        flush_device(-1);
    }
    pthread_mutex_unlock(&weak_lock);
}

void sgpu_weak_forget(struct sgpu_storage *s)
{
    struct sgpu_storage **at = &shadowed;

    if (!s->shadow)
        return;
    pthread_mutex_lock(&weak_lock);
    while (*at != s)
        at = &(*at)->next_shadowed;
    *at = s->next_shadowed;
    munmap(s->shadow, s->length);
    free(s->flushed);
    close(s->shadow_fd);
    pthread_mutex_unlock(&weak_lock);
}
