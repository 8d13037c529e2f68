/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See board.h. Owns the file, on the leader, and its mappings. The first page is the head, which
 * only the leader writes, but for the meeting; editions and tables follow one after another, and
 * the pages of a replaced edition are freed. No lock: one thread at a time. */
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

/* Between checks whether the leader is still alive. */
static const uint64_t patience = TK_SECOND / 4;

/* Before the first poll, because an edition comes within milliseconds, and a poll may sleep while
 * it does; and between polls. */
static const uint64_t patience_to_poll = TK_SECOND / 50, patience_of_poll = TK_SECOND / 500;

/* 256 ranks met within 0.1 s and 1024 within 1.1 s on two CPUs beside other work. If a rank can't
 * join, the others start this much later. */
static const uint64_t meeting_patience = TK_SECOND, patience_of_each = TK_SECOND / 250;

/* Special values in place of the size of an edition. */
enum edition_kind { EDITION_WHOLE, EDITION_NONE, EDITION_FAILED };

struct edition {
    uint64_t at, size; /* in the file */
    uint32_t kind;
    uint32_t reserved;
};

/* Between two fences the leader publishes one edition and a few tables, so it cannot be further
 * ahead of the others. */
enum { editions_known = 8 };

/* One word that is set once decides for all. */
enum meeting { MEETING_OPEN, MEETING_HELD, MEETING_OFF };

struct board_head {
    uint8_t nonce[16];
    _Atomic uint32_t editions; /* and tables so far; the word on which the others sleep */
    uint32_t reserved;
    struct edition last[editions_known]; /* by number, reused cyclically; written before the
                                          * count */
    _Atomic uint32_t arrived, meeting;
};

static struct {
    struct board_head *head; /* NULL: there is no board, or it is not accessible */
    void *edition;           /* mapped now */
    size_t size;             /* of that mapping */
    uint32_t seen;           /* editions and tables that we have taken */
    int fd, leader;
    bool leads;             /* we are the leader; then also: */
    uint64_t end;           /* of the file */
    struct edition current; /* the next one replaces it */
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
    board.leads = false;
    board.end = tk_page_size();
    board.current = (struct edition){.size = 0};
    board.seen = 0;
    return board.head != NULL;
}

/* Some clients close all descriptors that they do not know, and the number may belong to another
 * file by now. */
static bool board_is_open(struct stat *file)
{
    return fstat(board.fd, file) == 0 && file->st_ino == board.file.st_ino &&
           file->st_dev == board.file.st_dev;
}

/* Beyond the limit on files the kernel would send SIGXFSZ. */
static bool board_grow(uint64_t at, size_t size)
{
    struct rlimit limit;
    int status;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        at + size > limit.rlim_cur)
        return false;
    do
        status = fallocate(board.fd, 0, (off_t)at, (off_t)size);
    while (status != 0 && errno == EINTR);
    return status == 0;
}

/* Its first page is filled in before anyone can know of it. */
static bool board_make(struct tk_board_place *place)
{
    board.fd = memfd_create("board", MFD_CLOEXEC);
    if (board.fd < 0 || !board_grow(0, tk_page_size()) || !board_map(getpid()) ||
        getrandom(place->nonce, sizeof(place->nonce), 0) != sizeof(place->nonce))
        return false;
    memcpy(board.head->nonce, place->nonce, sizeof(place->nonce));
    board.leads = true;
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

static void board_show(struct edition edition)
{
    uint32_t number = atomic_load_explicit(&board.head->editions, memory_order_relaxed);
    board.head->last[number % editions_known] = edition;
    atomic_store_explicit(&board.head->editions, number + 1, memory_order_release);
    tk_futex_wake_all(&board.head->editions);
}

/* Memory for the next edition or table, to be written. NULL: out of memory. */
static void *board_extend(size_t size, struct edition *edition)
{
    struct stat file;
    *edition = (struct edition){.at = board.end, .size = size, .kind = EDITION_WHOLE};
    if (!board_is_open(&file) || !board_grow(board.end, size))
        return NULL;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, board.fd, (off_t)board.end);
    if (at == MAP_FAILED)
        return NULL;
    board.end += tk_align_up(size, tk_page_size());
    return at;
}

/* No rank still maps the previous one: the others dropped it before the fence. */
static void board_replace(struct edition edition)
{
    if (board.current.size > 0)
        fallocate(board.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)board.current.at,
                  (off_t)tk_align_up(board.current.size, tk_page_size()));
    board.current = edition;
}

bool tk_board_publish(size_t size, void (*write)(void *edition, const void *what), const void *what)
{
    struct edition edition;
    if (!board.head)
        return false;
    void *at = write ? board_extend(size, &edition) : NULL;
    if (!at) {
        board_show((struct edition){.kind = write ? EDITION_NONE : EDITION_FAILED});
        return false;
    }
    write(at, what);
    munmap(at, size);
    board_replace(edition);
    board_show(edition);
    return true;
}

const void *tk_board_keep(const void *table, size_t size, uint64_t *where)
{
    struct edition edition;
    if (!board.head || !board.leads)
        return NULL;
    void *at = board_extend(size, &edition);
    if (at) {
        memcpy(at, table, size);
        mprotect(at, size, PROT_READ);
    }
    *where = edition.at;
    board_show(at ? edition : (struct edition){.kind = EDITION_NONE});
    return at;
}

static bool is_leader_gone(void)
{
    return kill(board.leader, 0) != 0 && errno == ESRCH;
}

/* The next edition or table. If the leader has ended without it, that counts as a failure. */
static struct edition wait_for_edition(void (*poll)(void))
{
    uint32_t now;
    uint64_t most = poll ? patience_to_poll : patience;
    while ((now = atomic_load_explicit(&board.head->editions, memory_order_acquire)) ==
           board.seen) {
        tk_futex_wait(&board.head->editions, now, most);
        if (poll &&
            atomic_load_explicit(&board.head->editions, memory_order_acquire) == board.seen) {
            poll();
            most = patience_of_poll;
        }
        if (is_leader_gone() &&
            atomic_load_explicit(&board.head->editions, memory_order_acquire) == board.seen)
            return (struct edition){.kind = EDITION_FAILED};
    }
    return board.head->last[board.seen++ % editions_known];
}

/* Offset and size come from another process, and memory beyond the end of the file can't be
 * read. */
static void *map_edition(const struct edition *edition, int access, int flags)
{
    struct stat file;
    if (edition->kind != EDITION_WHOLE || edition->size == 0 || !board_is_open(&file) ||
        edition->at > (uint64_t)file.st_size ||
        edition->size > (uint64_t)file.st_size - edition->at)
        return NULL;
    void *at = mmap(NULL, edition->size, access, flags, board.fd, (off_t)edition->at);
    return at == MAP_FAILED ? NULL : at;
}

void *tk_board_wait(size_t *size, bool *failed, void (*poll)(void))
{
    tk_board_drop();
    *failed = false;
    if (!board.head)
        return NULL;
    struct edition edition = wait_for_edition(poll);
    *failed = edition.kind == EDITION_FAILED;
    board.edition = map_edition(&edition, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    *size = board.size = edition.size;
    return board.edition;
}

/* Tables are read on the path of a first message, so their pages are mapped now to avoid page
 * faults there (3 us). */
const void *tk_board_kept(size_t *size, uint64_t *where)
{
    if (!board.head || board.leads)
        return NULL;
    struct edition edition = wait_for_edition(NULL);
    *size = edition.size;
    *where = edition.at;
    return map_edition(&edition, PROT_READ, MAP_SHARED | MAP_POPULATE);
}

static bool meeting_end(uint32_t how)
{
    uint32_t was = MEETING_OPEN;
    if (!atomic_compare_exchange_strong(&board.head->meeting, &was, how))
        return was == MEETING_HELD;
    tk_futex_wake_all(&board.head->meeting);
    return how == MEETING_HELD;
}

bool tk_board_meet(uint32_t ranks)
{
    if (!board.head)
        return false;
    if (atomic_fetch_add(&board.head->arrived, 1) + 1 == ranks)
        return meeting_end(MEETING_HELD);
    uint64_t now, until = tk_now() + meeting_patience + ranks * patience_of_each;
    while (atomic_load(&board.head->meeting) == MEETING_OPEN && (now = tk_now()) < until)
        tk_futex_wait(&board.head->meeting, MEETING_OPEN, until - now);
    return meeting_end(MEETING_OFF);
}

void *tk_board_copy(uint64_t where, size_t size)
{
    const struct edition edition = {.at = where, .size = size, .kind = EDITION_WHOLE};
    return board.head ? map_edition(&edition, PROT_READ | PROT_WRITE, MAP_PRIVATE) : NULL;
}

void tk_board_drop(void)
{
    if (board.edition)
        munmap(board.edition, board.size);
    board.edition = NULL;
}
