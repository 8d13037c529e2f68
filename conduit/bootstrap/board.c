/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See board.h. Owns the file, on the leader, and its mappings. The first page is the head, which
 * the leader alone writes; behind it lies the edition. No lock: one thread at a time. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/futex.h"
#include "base/page.h"
#include "bootstrap/board.h"

/* Between looks whether the leader still lives. */
static const uint64_t patience = TK_SECOND / 4;

/* What an edition may be, beside its size. */
enum edition_kind { EDITION_WHOLE, EDITION_NONE, EDITION_FAILED };

struct board_head {
    uint8_t nonce[16];
    _Atomic uint32_t editions; /* so far; what the others sleep on */
    uint32_t kind;             /* of the last one; this and its size are written before the count */
    uint64_t size;
};

static struct {
    struct board_head *head; /* NULL: there is no board, or it is not reached */
    void *edition;           /* mapped now */
    size_t size;             /* of that mapping */
    uint32_t seen;           /* editions that we have had */
    int fd, leader;
    struct stat file;
} board = {.fd = -1};

static void board_close(void)
{
    if (board.head)
        munmap(board.head, tk_page_size());
    if (board.fd >= 0)
        close(board.fd);
    board.head = NULL;
    board.fd = -1;
}

static bool board_map(int pid)
{
    void *head = MAP_FAILED;
    if (fstat(board.fd, &board.file) == 0 && S_ISREG(board.file.st_mode) &&
        (size_t)board.file.st_size >= tk_page_size())
        head = mmap(NULL, tk_page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, board.fd, 0);
    board.head = head == MAP_FAILED ? NULL : head;
    board.leader = pid;
    board.seen = 0;
    return board.head != NULL;
}

/* Clients were seen to close all descriptors that they do not know, and the number may be another
 * file's by now. */
static bool board_is_open(struct stat *file)
{
    return fstat(board.fd, file) == 0 && file->st_ino == board.file.st_ino &&
           file->st_dev == board.file.st_dev;
}

/* Beyond the limit on files the kernel would send SIGXFSZ. */
static bool has_room(size_t size)
{
    struct rlimit limit;
    size_t whole = tk_page_size() + size;
    int status;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        whole > limit.rlim_cur)
        return false;
    do
        status = fallocate(board.fd, 0, 0, (off_t)whole);
    while (status != 0 && errno == EINTR);
    return status == 0;
}

/* Its first page is filled in before anyone can know of it. */
static bool board_make(struct tk_board_place *place)
{
    board.fd = memfd_create("board", MFD_CLOEXEC);
    if (board.fd < 0 || !has_room(0) || !board_map(getpid()) ||
        getrandom(place->nonce, sizeof(place->nonce), 0) != sizeof(place->nonce))
        return false;
    memcpy(board.head->nonce, place->nonce, sizeof(place->nonce));
    place->pid = getpid();
    place->fd = board.fd;
    return true;
}

void tk_board_open(struct tk_board_place *place)
{
    *place = (struct tk_board_place){.fd = -1};
    if (!board_make(place)) {
        board_close();
        place->fd = -1;
    }
}

bool tk_board_join(const struct tk_board_place *place)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->fd);
    board.fd = place->fd < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (board.fd >= 0 && board_map(place->pid) &&
        memcmp(board.head->nonce, place->nonce, sizeof(place->nonce)) == 0)
        return true;
    board_close();
    return false;
}

static void board_show(size_t size, enum edition_kind kind)
{
    board.head->size = size;
    board.head->kind = kind;
    atomic_fetch_add_explicit(&board.head->editions, 1, memory_order_release);
    tk_futex_wake_all(&board.head->editions);
}

bool tk_board_publish(size_t size, void (*write)(void *edition, const void *what), const void *what)
{
    struct stat file;
    void *edition = MAP_FAILED;
    if (!board.head)
        return false;
    if (write && board_is_open(&file) && has_room(size))
        edition =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, board.fd, (off_t)tk_page_size());
    if (edition == MAP_FAILED) {
        board_show(0, write ? EDITION_NONE : EDITION_FAILED);
        return false;
    }
    write(edition, what);
    munmap(edition, size);
    board_show(size, EDITION_WHOLE);
    return true;
}

static bool is_leader_gone(void)
{
    return kill(board.leader, 0) != 0 && errno == ESRCH;
}

/* False: the leader went without it. */
static bool wait_for_edition(void)
{
    uint32_t now;
    while ((now = atomic_load_explicit(&board.head->editions, memory_order_acquire)) ==
           board.seen) {
        tk_futex_wait(&board.head->editions, now, patience);
        if (is_leader_gone() &&
            atomic_load_explicit(&board.head->editions, memory_order_acquire) == board.seen)
            return false;
    }
    board.seen = now;
    return true;
}

/* The size comes from another process, and what lies behind the end of the file can't be read. */
static void *map_edition(size_t size)
{
    struct stat file;
    if (size == 0 || !board_is_open(&file) || size > (size_t)file.st_size - tk_page_size())
        return NULL;
    void *edition =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, board.fd, (off_t)tk_page_size());
    if (edition == MAP_FAILED)
        return NULL;
    board.edition = edition;
    board.size = size;
    return edition;
}

void *tk_board_wait(size_t *size, bool *failed)
{
    tk_board_drop();
    *failed = false;
    if (!board.head)
        return NULL;
    *failed = !wait_for_edition() || board.head->kind == EDITION_FAILED;
    if (*failed || board.head->kind != EDITION_WHOLE)
        return NULL;
    *size = (size_t)board.head->size;
    return map_edition(*size);
}

void tk_board_drop(void)
{
    if (board.edition)
        munmap(board.edition, board.size);
    board.edition = NULL;
}
