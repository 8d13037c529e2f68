/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See doorbell.h. Owns this process's registration for membarrier (there is one per process), the
 * socket that wakes it, and the socket from which it wakes others. No lock. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "base/mode.h"
#include "transport/doorbell.h"

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Not private: sleeper and neighbour are two processes. */
static int futex(struct tk_doorbell *bell, int operation, uint32_t value,
                 const struct timespec *patience)
{
    return (int)syscall(SYS_futex, &bell->word, operation, value, patience, NULL, 0);
}

/* A process stays registered: neighbours are attached later, by many calls. */
static atomic_bool fences_come_by_themselves;

void tk_doorbell_prepare(void)
{
    bool do_come = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    atomic_store_explicit(&fences_come_by_themselves, do_come, memory_order_relaxed);
}

static bool is_prepared(void)
{
    return atomic_load_explicit(&fences_come_by_themselves, memory_order_relaxed);
}

/* A kernel that accepts the registration has the fence too. We do not try the fence: it interrupts
 * all CPUs of the host, and hundreds of ranks that start together would each do it. */
void tk_doorbell_open(struct tk_doorbell *own)
{
    atomic_store_explicit(&own->word, is_prepared() ? 0 : TK_BELL_FENCED, memory_order_release);
}

void tk_doorbell_attach(struct tk_doorbell *bell)
{
    if (!is_prepared())
        atomic_fetch_or_explicit(&bell->word, TK_BELL_FENCED, memory_order_acq_rel);
}

/* ---- the socket ---- */

static int socket_of_ours = -1;         /* written at start-up */
static _Atomic int sender = -1;         /* opened by the first thread that needs it */
static const char prefix[] = "tk-bell"; /* behind the 0 of an abstract name */

static int open_datagrams(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* An abstract name: the file system has no entry, and the name vanishes with its process. */
static socklen_t socket_name(struct sockaddr_un *at, uint64_t number)
{
    memset(at, 0, sizeof(*at));
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path + 1, prefix, sizeof(prefix) - 1);
    memcpy(at->sun_path + sizeof(prefix), &number, sizeof(number));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(prefix) + sizeof(number));
}

bool tk_doorbell_open_socket(struct tk_doorbell *own)
{
    struct sockaddr_un at;
    uint64_t number;
    if (socket_of_ours >= 0)
        return true;
    int file = open_datagrams();
    if (file >= 0 && getrandom(&number, sizeof(number), 0) == sizeof(number) &&
        bind(file, (struct sockaddr *)&at, socket_name(&at, number)) == 0) {
        own->socket = number;
        socket_of_ours = file;
        return true;
    }
    if (file >= 0)
        close(file);
    return false;
}

bool tk_doorbell_has_socket(struct tk_doorbell *own)
{
    uint32_t word = atomic_load_explicit(&own->word, memory_order_relaxed);
    return socket_of_ours >= 0 && !(word & TK_BELL_DEAF);
}

static int own_sender(void)
{
    int file = atomic_load(&sender), none = -1;
    if (file >= 0)
        return file;
    file = open_datagrams();
    if (file < 0 || atomic_compare_exchange_strong(&sender, &none, file))
        return file;
    close(file); /* another thread was first */
    return none;
}

/* A full queue also wakes the owner, because the socket is readable. If the socket can't be reached
 * (another network namespace, or no file descriptor left in this process), nothing wakes the owner:
 * its sleep ends with its time limit. */
static void send_to(struct tk_doorbell *bell)
{
    struct sockaddr_un at;
    int file = own_sender(), before = errno;
    socklen_t length = socket_name(&at, bell->socket);
    if (file < 0 ||
        (sendto(file, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&at, length) < 0 &&
         errno != EAGAIN && errno != ENOBUFS && errno != EINTR))
        atomic_fetch_or_explicit(&bell->word, TK_BELL_DEAF, memory_order_relaxed);
    errno = before;
}

static void empty_socket(void)
{
    char bytes[16];
    while (recv(socket_of_ours, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
        continue;
}

/* ---- ringing ---- */

static void wake_all(struct tk_doorbell *bell)
{
    uint32_t word = atomic_load_explicit(&bell->word, memory_order_relaxed);
    while (word & TK_BELL_ANYBODY) {
        uint32_t rung = (word & ~(uint32_t)TK_BELL_ANYBODY) + TK_BELL_RUNG;
        if (!atomic_compare_exchange_weak_explicit(&bell->word, &word, rung, memory_order_acq_rel,
                                                   memory_order_relaxed))
            continue;
        if (word & TK_BELL_ASLEEP)
            futex(bell, FUTEX_WAKE, INT_MAX, NULL);
        if (word & TK_BELL_POLLED)
            send_to(bell);
        return;
    }
}

/* Without membarrier both sides modify the word, and one of the two modifications is first. If ours
 * is first, the sleeper's acquires what we wrote before; if the sleeper's is first, we see it.
 * Adding 0 is a modification too. */
void tk_doorbell_look(struct tk_doorbell *bell)
{
    uint32_t word = atomic_load_explicit(&bell->word, memory_order_relaxed);
    if (word & TK_BELL_FENCED)
        word = atomic_fetch_or_explicit(&bell->word, TK_BELL_FENCED, memory_order_acq_rel);
    if (word & TK_BELL_ANYBODY)
        wake_all(bell);
}

/* ---- sleeping ---- */

/* This thread is awake. Other threads may still sleep, and the thread that clears ASLEEP must wake
 * them too. */
static void get_up(struct tk_doorbell *own)
{
    if (TK_THREADED)
        wake_all(own);
    else
        atomic_fetch_and_explicit(&own->word, ~(uint32_t)TK_BELL_ASLEEP, memory_order_relaxed);
}

/* Marks in the word that a thread sleeps, and looks once more. Returns the word in *word; false:
 * the thread must not sleep. */
static bool lie_down(struct tk_doorbell *own, uint32_t how, bool (*look)(void *what), void *what,
                     uint32_t *word)
{
    *word = atomic_fetch_or_explicit(&own->word, how, memory_order_acq_rel) | how;
    /* The registration worked when the bell was opened; if the kernel refuses the fence now,
     * sleeping would not be safe. */
    return ((*word & TK_BELL_FENCED) || membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0) &&
           !look(what);
}

static struct timespec patience_of(uint64_t nsec)
{
    return (struct timespec){.tv_sec = (time_t)(nsec / TK_SECOND),
                             .tv_nsec = (long)(nsec % TK_SECOND)};
}

bool tk_doorbell_sleep(struct tk_doorbell *own, bool (*look)(void *what), void *what, uint64_t nsec)
{
    const struct timespec patience = patience_of(nsec);
    bool over = false;
    uint32_t word;
    if (lie_down(own, TK_BELL_ASLEEP, look, what, &word))
        over = futex(own, FUTEX_WAIT, word, &patience) != 0 && errno == ETIMEDOUT;
    get_up(own);
    return !over;
}

/* Only the one thread that sleeps in poll() sets POLLED. Unlike ASLEEP it needs no count: a
 * datagram that was sent before poll() is still in the socket. */
bool tk_doorbell_sleep_on(struct tk_doorbell *own, bool (*look)(void *what), void *what,
                          struct pollfd *files, unsigned count, uint64_t nsec)
{
    const struct timespec patience = patience_of(nsec);
    int ready = -1;
    uint32_t word;
    files[0] = (struct pollfd){.fd = socket_of_ours, .events = POLLIN};
    if (lie_down(own, TK_BELL_POLLED, look, what, &word))
        ready = ppoll(files, count, &patience, NULL);
    atomic_fetch_and_explicit(&own->word, ~(uint32_t)TK_BELL_POLLED, memory_order_relaxed);
    if (ready > 0 && files[0].revents)
        empty_socket();
    return ready != 0;
}
