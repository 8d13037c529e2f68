/* SPDX-License-Identifier: BSD-3-Clause */
/* The accept(), recv(), read() and send() that libpmix calls; see gate.h. Several threads of
 * libpmix call them at the same time, for different descriptors: the thread that accepts a
 * connection writes its entry of the table before it passes the descriptor on to the thread that
 * reads from it. The fields that show whether an entry is in use are atomic, because a descriptor's
 * number may be reused for another thread's file meanwhile. */
#include "config.h"

#include "gate.h"
#include "owner.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A server that was busy beyond the deadline still reads data that was sent in time. */
enum { GRACE_MS = 1000 };

/* Between two attempts to accept when files or memory are short. */
enum { PAUSE_MS = 10 };

enum gate_stage {
    GATE_FRESH,   /* nothing was read */
    GATE_HANDED,  /* the first message is good, and libpmix takes it piece by piece */
    GATE_PASSED,  /* libpmix has all of the first message */
    GATE_REFUSED, /* libpmix sees the end of the connection */
};

struct gate_connection {
    _Atomic int64_t deadline; /* 0: not under watch */
    _Atomic uint64_t inode;   /* of the socket: the number may belong to another file by now */
    enum gate_stage stage;    /* of the first message */
    uint8_t *message;         /* the message with its header, on the heap */
    size_t length, taken;
    _Atomic bool served;   /* we have answered, or begun to read */
    _Atomic bool answered; /* libpmix has sent something, so the first message was complete */
};

static struct gate_connection *gate_connections;
static size_t gate_size;
static int64_t first_message_ms;
static const struct handshake_rules *_Atomic gate_rules; /* NULL: no rank exists */

bool gate_close(int64_t first_ms)
{
    struct rlimit files;
    size_t count = 65536;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < count)
        count = files.rlim_cur;
    first_message_ms = first_ms;
    gate_connections = calloc(count, sizeof(*gate_connections));
    gate_size = gate_connections ? count : 0;
    return gate_connections;
}

void gate_open(const struct handshake_rules *rules)
{
    atomic_store(&gate_rules, rules);
}

static uint64_t inode_of(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 ? (uint64_t)s.st_ino : 0;
}

/* The entry of a descriptor that is under watch, else NULL. */
static struct gate_connection *gate_watched(int fd)
{
    if (fd < 0 || (size_t)fd >= gate_size)
        return NULL;
    struct gate_connection *v = &gate_connections[fd];
    if (!atomic_load(&v->deadline))
        return NULL;
    if (atomic_load(&v->inode) == inode_of(fd))
        return v;
    atomic_store(&v->deadline, 0); /* closed, and the number used again */
    return NULL;
}

static bool is_ours(int fd)
{
    uid_t uid;
    return owner_of_peer(fd, &uid) && uid == geteuid();
}

/* EAGAIN is the only error that every caller tolerates; some caller treats each other error as a
 * failure of its listening socket. */
static int accept_nothing(void)
{
    errno = EAGAIN;
    return -1;
}

/* Transient errors of accept(): a connection that is gone already, or lack of files or memory,
 * where the connection stays pending and select() returns at once. */
static bool is_transient(int error)
{
    struct timespec pause = {0, PAUSE_MS * 1000000L};

    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)
        nanosleep(&pause, NULL);
    else if (error != ECONNABORTED && error != EPROTO && error != EINTR)
        return false;
    return true;
}

/* Returns the descriptor of an admitted connection, -1 for none. */
static int gate_admit(int fd)
{
    if (!gate_size)
        return fd;
    if (fd < 0)
        return is_transient(errno) ? accept_nothing() : fd;
    if ((size_t)fd >= gate_size || !is_ours(fd)) {
        close(fd);
        return accept_nothing();
    }
    struct gate_connection *v = &gate_connections[fd];
    free(v->message); /* of an earlier connection that libpmix closed on the way */
    v->message = NULL;
    v->length = v->taken = 0;
    v->stage = GATE_FRESH;
    atomic_store(&v->inode, inode_of(fd));
    atomic_store(&v->served, false);
    atomic_store(&v->answered, false);
    atomic_store(&v->deadline, clock_ms() + first_message_ms);
    return fd;
}

static bool is_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_NONBLOCK);
}

static ssize_t plain_recv(int fd, void *data, size_t size, int flags)
{
    return syscall(SYS_recvfrom, fd, data, size, flags, NULL, NULL);
}

/* The first read may be late because the server was busy; it must still get what was sent in time.
 */
static int64_t deadline_of(struct gate_connection *v)
{
    int64_t deadline = atomic_load(&v->deadline), least = clock_ms() + GRACE_MS;
    if (!atomic_exchange(&v->served, true) && deadline < least) {
        deadline = least;
        atomic_store(&v->deadline, deadline);
    }
    return deadline;
}

/* Reads once without blocking. Returns the number of bytes read, 0 at end of file or after the
 * deadline, -1 with EAGAIN if no data is available. */
static ssize_t read_some(int fd, char *data, size_t size, int flags, int64_t deadline)
{
    if (clock_ms() >= deadline)
        return 0;
    return plain_recv(fd, data, size, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
}

/* Behaves as a blocking recv(), but returns at the deadline. */
static ssize_t read_until(int fd, char *data, size_t size, int flags, int64_t deadline)
{
    size_t have = 0;

    do {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, clock_poll_timeout(deadline)) < 0)
            return have ? (ssize_t)have : -1;
        ssize_t n = read_some(fd, data + have, size - have, flags, deadline);
        if (n < 0 && errno == EAGAIN)
            continue;
        if (n <= 0)
            return have ? (ssize_t)have : n;
        have += (size_t)n;
    } while (have == 0 || ((flags & MSG_WAITALL) && have < size));
    return (ssize_t)have;
}

/* Reads exactly `size` bytes, whatever the mode of the socket; false at the deadline or at the end
 * of the connection. */
static bool read_all(int fd, uint8_t *data, size_t size, int64_t deadline)
{
    return read_until(fd, (char *)data, size, MSG_WAITALL, deadline) == (ssize_t)size;
}

/* Reads the first message into `v`. Returns NULL if the message is valid, else a text that says
 * what is wrong with it. */
static const char *read_first(struct gate_connection *v, int fd, int64_t deadline)
{
    const struct handshake_rules *rules = atomic_load(&gate_rules);
    uint8_t header[HANDSHAKE_HEADER];

    if (!rules)
        return "no rank was started yet";
    if (!read_all(fd, header, sizeof(header), deadline))
        return "no message came in time";
    size_t length = handshake_length(header);
    if (!length)
        return "a length that no first message has";
    v->message = malloc(sizeof(header) + length);
    if (!v->message)
        return "no memory";
    memcpy(v->message, header, sizeof(header));
    v->length = sizeof(header) + length;
    if (!read_all(fd, v->message + sizeof(header), length, deadline))
        return "the message was not complete in time";
    return handshake_flaw(rules, v->message + sizeof(header), length);
}

static void gate_judge(struct gate_connection *v, int fd)
{
    const char *flaw = read_first(v, fd, deadline_of(v));

    v->stage = flaw ? GATE_REFUSED : GATE_HANDED;
    if (!flaw)
        return;
    free(v->message);
    v->message = NULL;
    log_verbose(2, "the PMIx server refuses a connection of a process of this user: %s", flaw);
}

static ssize_t gate_hand_on(struct gate_connection *v, void *data, size_t size)
{
    size_t left = v->length - v->taken, count = size < left ? size : left;

    memcpy(data, v->message + v->taken, count);
    v->taken += count;
    if (v->taken < v->length)
        return (ssize_t)count;
    free(v->message);
    v->message = NULL;
    v->stage = GATE_PASSED;
    return (ssize_t)count;
}

/* Reads what follows the first message. */
static ssize_t gate_pass(struct gate_connection *v, int fd, void *data, size_t size, int flags)
{
    int64_t deadline = deadline_of(v);

    if (!(flags & MSG_DONTWAIT) && is_blocking(fd))
        return read_until(fd, data, size, flags, deadline);
    if (atomic_load(&v->answered)) {
        atomic_store(&v->deadline, 0); /* a process of the job, read when data is available */
        return plain_recv(fd, data, size, flags);
    }
    return read_some(fd, data, size, flags, deadline);
}

static ssize_t gate_receive(struct gate_connection *v, int fd, void *data, size_t size, int flags)
{
    if (v->stage == GATE_FRESH)
        gate_judge(v, fd);
    if (v->stage == GATE_REFUSED)
        return 0;
    if (v->stage == GATE_HANDED)
        return gate_hand_on(v, data, size);
    return gate_pass(v, fd, data, size, flags);
}

/* Exports a function under a name of libc. The C name differs, since headers declare the libc names
 * in different ways. */
#define GATE_EXPORT(name) __asm__(name) __attribute__((visibility("default"), used))

int gate_accept(int fd, struct sockaddr *address, socklen_t *length) GATE_EXPORT("accept");
int gate_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
    GATE_EXPORT("accept4");
ssize_t gate_recv(int fd, void *data, size_t size, int flags) GATE_EXPORT("recv");
ssize_t gate_read(int fd, void *data, size_t size) GATE_EXPORT("read");
ssize_t gate_send(int fd, const void *data, size_t size, int flags) GATE_EXPORT("send");

int gate_accept(int fd, struct sockaddr *address, socklen_t *length)
{
    return gate_admit((int)syscall(SYS_accept4, fd, address, length, 0));
}

int gate_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return gate_admit((int)syscall(SYS_accept4, fd, address, length, flags));
}

ssize_t gate_recv(int fd, void *data, size_t size, int flags)
{
    struct gate_connection *v = gate_watched(fd);
    return v ? gate_receive(v, fd, data, size, flags) : plain_recv(fd, data, size, flags);
}

ssize_t gate_read(int fd, void *data, size_t size)
{
    struct gate_connection *v = gate_watched(fd);
    return v ? gate_receive(v, fd, data, size, 0) : syscall(SYS_read, fd, data, size);
}

ssize_t gate_send(int fd, const void *data, size_t size, int flags)
{
    struct gate_connection *v = gate_watched(fd);
    if (v)
        atomic_store(&v->answered, true);
    return syscall(SYS_sendto, fd, data, size, flags, NULL, 0);
}
