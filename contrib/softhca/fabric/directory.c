/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directory: where the members of the fabric are, in memory that they share. The first process
 * makes it, each one that joins takes it over from a member that it finds (registry.c), and enters
 * itself. It lives as long as somebody uses it. What it says are hints that registry.c verifies:
 * nobody removes an entry, and a fabric may have two if the process that makes one is stopped.
 *
 * Owns the mapping and its descriptor. They change only while this process joins, or forks. */
#include "config.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/fabric.h"

static struct shca_directory *directory;
static bool is_taken;
static struct shca_pipe place = {.fd = -1};

struct shca_pipe shca_directory_place(void)
{
    return place;
}

void shca_directory_drop(void)
{
    if (directory)
        munmap(directory, sizeof *directory);
    if (place.fd >= 0)
        close(place.fd);
    directory = NULL;
    place = (struct shca_pipe){.fd = -1};
}

/* A directory that could shrink would kill its users by SIGBUS. */
static bool is_sealed(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

static bool directory_map(int fd)
{
    struct stat st;
    void *at;

    if (fstat(fd, &st) != 0 || st.st_size != sizeof *directory || st.st_uid != geteuid())
        return false;
    at = mmap(NULL, sizeof *directory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return false;
    directory = at;
    place = (struct shca_pipe){.fd = fd, .ino = st.st_ino};
    return true;
}

bool shca_directory_take(uint32_t pid, const struct shca_pipe *theirs)
{
    struct stat st;
    int fd = theirs->fd < 0 ? -1 : shca_open_of(pid, theirs->fd, O_RDWR);

    if (fd < 0)
        return false;
    /* The program may have closed it, and the number may belong to another file now. */
    if (fstat(fd, &st) != 0 || st.st_ino != theirs->ino || !is_sealed(fd) || !directory_map(fd)) {
        close(fd);
        return false;
    }
    is_taken = directory->magic == SHCA_MAGIC && atomic_load(&directory->settled) != 0 &&
               strncmp(directory->fabric, shca_config.fabric, sizeof directory->fabric) == 0;
    if (!is_taken)
        shca_directory_drop();
    return is_taken;
}

void shca_directory_make(void)
{
    int fd = memfd_create("softhca-directory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return;
    if (fchmod(fd, 0600) != 0 || ftruncate(fd, sizeof *directory) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 || !directory_map(fd)) {
        close(fd);
        return;
    }
    is_taken = false;
    memcpy(directory->fabric, shca_config.fabric, sizeof directory->fabric);
    directory->hcas = shca.seg->hcas;
    directory->ports = shca.seg->ports;
    directory->roce = shca.seg->roce;
    directory->magic = SHCA_MAGIC;
}

/* The mark comes before the comparison with each member: so of two processes that join at the same
 * time, one sees the mark, or the other sees the member. */
bool shca_directory_is_alike(const struct shca_segment *mine)
{
    if (!directory)
        return false;
    if (directory->hcas != mine->hcas || directory->ports != mine->ports ||
        directory->roce != mine->roce)
        atomic_store(&directory->is_mixed, 1);
    return is_taken && !atomic_load(&directory->is_mixed);
}

void shca_directory_settled(uint32_t slot)
{
    if (directory)
        atomic_store(&directory->settled, slot + 1);
}

bool shca_directory_find_settled(uint32_t *slot)
{
    uint32_t last = directory ? atomic_load(&directory->settled) : 0;

    *slot = last - 1;
    return last != 0 && *slot < SHCA_MEMBERS;
}

bool shca_directory_get(uint32_t slot, uint32_t *pid, int *fd)
{
    uint64_t entry = directory ? atomic_load(&directory->at[slot]) : 0;

    *pid = (uint32_t)(entry >> 32);
    *fd = (int)(uint32_t)entry;
    return *pid != 0;
}

void shca_directory_set(uint32_t slot, uint32_t pid, int fd)
{
    uint64_t entry = (uint64_t)pid << 32 | (uint32_t)fd;

    /* A page that nobody writes to stays in the caches of all. */
    if (directory && atomic_load_explicit(&directory->at[slot], memory_order_relaxed) != entry)
        atomic_store(&directory->at[slot], entry);
}
