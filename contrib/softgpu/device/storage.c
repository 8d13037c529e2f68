/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Storage: the bytes of a device, in a memfd. Owns the memfds and the device's mappings of them.
 * Nothing of it has a name in the file system, so nothing is left when a process is killed. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dmabuf_standin.h"
#include "contrib/softgpu/device/device.h"

/* In the page behind the bytes. HCAs cannot write it: no exported range holds it. */
struct trailer {
    uint64_t nonce; /* tells this storage from later ones with the same descriptor */
    uint64_t length;
    int32_t device;
};

static struct sgpu_storage *storage_map(struct sgpu_storage *s)
{
    uint64_t total = s->length + sgpu_round(sizeof(struct trailer));

    s->refs = 1;
    s->shadow_fd = -1;
    s->view = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (s->view != MAP_FAILED)
        return s;
    close(s->fd);
    free(s);
    return NULL;
}

static uint64_t used[SGPU_DEVICES_MAX];

uint64_t sgpu_storage_used(int device)
{
    return used[device];
}

struct sgpu_storage *sgpu_storage_create(int device, uint64_t length)
{
    struct sgpu_storage *s =
        length <= sgpu_config.memory - used[device] ? calloc(1, sizeof *s) : NULL;
    uint64_t total = length + sgpu_round(sizeof(struct trailer));
    struct trailer trailer = {0, length, device};

    if (!s)
        return NULL;
    s->device = device;
    s->length = length;
    s->fd = memfd_create(TK_DMABUF_NAME, MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)total) != 0 ||
        getrandom(&trailer.nonce, sizeof trailer.nonce, 0) != sizeof trailer.nonce ||
        pwrite(s->fd, &trailer, sizeof trailer, (off_t)length) != sizeof trailer) {
        if (s->fd >= 0)
            close(s->fd);
        free(s);
        return NULL;
    }
    s->nonce = trailer.nonce;
    s = storage_map(s);
    if (s)
        used[device] += length;
    return s;
}

/* Is it a memfd of ours? The number may belong to another file by now, which must not even be read:
 * a read consumes a pipe's data, and may trigger a device. */
static bool is_storage(const char *path)
{
    char link[64];
    ssize_t n = readlink(path, link, sizeof link);

    return n >= (ssize_t)strlen(TK_DMABUF_LINK) &&
           strncmp(link, TK_DMABUF_LINK, strlen(TK_DMABUF_LINK)) == 0;
}

struct sgpu_storage *sgpu_storage_open(pid_t pid, int fd, uint64_t nonce, uint64_t length)
{
    struct sgpu_storage *s = calloc(1, sizeof *s);
    struct trailer trailer;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    if (!s || !is_storage(path) || (s->fd = open(path, O_RDWR | O_CLOEXEC)) < 0) {
        free(s);
        return NULL;
    }
    if (pread(s->fd, &trailer, sizeof trailer, (off_t)length) != sizeof trailer ||
        trailer.nonce != nonce || trailer.length != length) {
        close(s->fd);
        free(s);
        return NULL;
    }
    s->foreign = true;
    s->device = trailer.device;
    s->length = length;
    s->nonce = nonce;
    return storage_map(s);
}

void sgpu_storage_put(struct sgpu_storage *s)
{
    if (--s->refs > 0)
        return;
    sgpu_weak_forget(s);
    sgpu_bar_forget(s);
    munmap(s->view, s->length + sgpu_round(sizeof(struct trailer)));
    close(s->fd);
    if (!s->foreign)
        used[s->device] -= s->length;
    free(s);
}
