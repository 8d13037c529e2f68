/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The members of the fabric. The registry is the kernel's table of abstract socket names: a member
 * holds one socket "softhca.<uid>.<fabric>.<slot>", whose name can exist only once and so claims
 * the slot, and a second one "...<slot>.<pid>.<fd>-<letters>", which locates its segment. Others
 * read /proc/net/unix. The kernel drops the names with the process, however it ends: no file is
 * left behind, no stale entry to clean, no server. Any user may bind such a name, so a name is
 * trusted only after the segment itself was opened (the kernel checks the user) and agrees.
 *
 * Reading the whole table costs time in proportion to the members, so that N members which all
 * read it need the square of N: a job of 1024 ranks on one host spent most of its start there.
 * Therefore members share a directory (directory.c): a process that joins reads the table only up
 * to the first member that has one, and finds the others through it. What the directory says counts
 * if a socket with the name exists, which one connect() answers; else the table is read.
 *
 * A pid, and /proc, belong to a PID namespace, so the second name says in which one its process is:
 * members that share no namespace can't reach each other, and the one that joins later is refused.
 *
 * Owns the cache of the table; registry_lock protects it. */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/registry_name.h"
#include "fabric/fabric.h"

/* An unknown slot is looked up again at most every millisecond: a sender that waits for a peer to
 * appear retries far more often than that. */
static const uint64_t refresh_ns = UINT64_C(1000000);

struct member {
    uint32_t pid;
    int fd;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct member members[SHCA_MEMBERS];
static uint64_t refreshed;
static unsigned space; /* of this process, since it joined */

/* A leading NUL: the abstract name space. */
static socklen_t address_of(const char *name, struct sockaddr_un *a)
{
    size_t n = strlen(name);

    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(a->sun_path + 1, name, n);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

static int bind_name(const char *name, int *out)
{
    struct sockaddr_un a;
    socklen_t length = address_of(name, &a);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), yes = 1;

    if (fd < 0)
        return errno;
    /* Requests carry the credentials of their senders; enabled before anybody can send. */
    (void)!setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&a, length)) {
        int e = errno;
        close(fd);
        return e;
    }
    *out = fd;
    return 0;
}

int shca_registry_claim(uint32_t *slot, int *fd)
{
    char name[108];
    /* The search starts at a slot that depends on the pid, so that a slot (and the QP numbers that
     * contain it) is not reused immediately by the next process after one has died. */
    uint32_t start = (uint32_t)getpid() * 2654435761u >> 22;

    space = shca_name_space();
    for (uint32_t i = 0; i < SHCA_MEMBERS; i++) {
        int e;

        *slot = (start + i) % SHCA_MEMBERS;
        shca_name_claim(name, sizeof name, shca_config.fabric, *slot);
        e = bind_name(name, fd);
        if (e != EADDRINUSE)
            return e;
    }
    shca_log("fabric %s already has %u processes, its limit; set SOFTHCA_FABRIC to start another",
             shca_config.fabric, SHCA_MEMBERS);
    return EUSERS;
}

static void segment_name(char name[108], uint32_t slot, uint32_t pid, int seg_fd)
{
    struct shca_name n = {.slot = slot, .pid = pid, .space = space, .fd = seg_fd};

    memcpy(n.fabric, shca_config.fabric, sizeof n.fabric);
    shca_name_segment(name, 108, &n);
}

int shca_registry_publish(uint32_t slot, int seg_fd, int *fd)
{
    uint32_t pid = (uint32_t)getpid();
    char name[108];
    int e;

    segment_name(name, slot, pid, seg_fd);
    e = bind_name(name, fd);
    if (e == 0)
        shca_directory_set(slot, pid, seg_fd);
    return e;
}

/* Whether a socket with the name of that segment exists. Connecting a datagram socket sends
 * nothing. False also if that cannot be determined. */
static bool is_published(uint32_t slot, struct member m)
{
    struct sockaddr_un a;
    socklen_t length;
    char name[108];
    bool is;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    segment_name(name, slot, m.pid, m.fd);
    length = address_of(name, &a);
    is = connect(fd, (struct sockaddr *)&a, length) == 0;
    close(fd);
    return is;
}

static bool registry_is_ours(uint32_t pid)
{
    struct stat st;
    char path[32];

    snprintf(path, sizeof path, "/proc/%u", pid);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Names of another layout on the same fabric: those processes and this one cannot see each
 * other. */
static void foreign_line(const char *line)
{
    static bool reported;
    struct shca_name n;
    unsigned layout;

    if (reported || !shca_name_parse_foreign(line, &n, &layout) ||
        strcmp(n.fabric, shca_config.fabric) != 0)
        return;
    reported = true;
    shca_log("process %u is on the fabric %s with another version of softhca (layout %u, here %u): "
             "the two cannot see each other; run the same version in both",
             n.pid, shca_config.fabric_name, layout, SHCA_LAYOUT);
}

/* A member that another PID namespace hides: its pid means nothing here, or another process. */
static struct {
    bool asked; /* the owners of names are looked up */
    uint32_t pid;
    bool is_ours; /* known to be a process of this user, which every user could pretend */
} hidden;

static void hidden_line(const char *line, const struct shca_name *n)
{
    int64_t uid;

    if (!hidden.asked || hidden.is_ours)
        return;
    uid = shca_socket_owner(line);
    if (uid >= 0 && uid != geteuid())
        return;
    hidden.pid = n->pid;
    hidden.is_ours = uid >= 0;
}

static void read_line(const char *line)
{
    struct shca_name n;

    if (!shca_name_parse(line, &n)) {
        foreign_line(line);
        return;
    }
    if (strcmp(n.fabric, shca_config.fabric) != 0)
        return;
    if (n.space != space) {
        hidden_line(line, &n);
        return;
    }
    /* Two processes claim one slot: one of the names is false. */
    if (members[n.slot].pid != 0 && members[n.slot].pid != n.pid && !registry_is_ours(n.pid))
        return;
    members[n.slot] = (struct member){n.pid, n.fd};
}

/* 0, or errno when the table could not be read (out of descriptors): the previous contents remain,
 * and the next call tries again. */
static int refresh(void)
{
    FILE *f = fopen("/proc/self/net/unix", "re");
    char line[512];
    int e;

    if (!f)
        return errno;
    memset(members, 0, sizeof members);
    refreshed = tk_now();
    while (fgets(line, sizeof line, f))
        read_line(line);
    e = ferror(f) ? EIO : 0;
    fclose(f);
    for (uint32_t i = 0; i < SHCA_MEMBERS; i++)
        if (members[i].pid != 0)
            shca_directory_set(i, members[i].pid, members[i].fd);
    return e;
}

/* ---- the directory ---- */

/* A guide is a member whose directory can be taken over. Each attempt costs some system calls, and
 * members without one are an exception. */
enum { guides_tried = 16 };

/* Held by the one process that makes a directory, until others can take it over. */
static int maker_fd = -1;

static bool is_guide(const struct shca_name *n)
{
    struct shca_segment head;

    return shca_segment_peek(n->slot, n->pid, n->fd, &head) &&
           shca_directory_take(n->pid, &head.directory);
}

static bool find_guide(void)
{
    FILE *f = fopen("/proc/self/net/unix", "re");
    unsigned tried = 0;
    bool is_found = false;
    struct shca_name n;
    char line[512];

    while (f && !is_found && tried < guides_tried && fgets(line, sizeof line, f))
        if (shca_name_parse(line, &n) && n.space == space &&
            strcmp(n.fabric, shca_config.fabric) == 0) {
            is_found = is_guide(&n);
            tried++;
        }
    if (f)
        fclose(f);
    return is_found;
}

/* If all ranks of a job start at the same moment, one makes the directory and the others wait for
 * it, about a millisecond. Who makes one has to look at all members. */
void shca_registry_open_directory(void)
{
    const unsigned longest = 20000, patience = 5000000; /* us; afterwards the maker was stopped */
    unsigned pause = 500, waited = 0;
    char name[108];

    shca_name_word(name, sizeof name, shca_config.fabric, "directory");
    while (!find_guide()) {
        if (waited < patience && bind_name(name, &maker_fd) == EADDRINUSE) {
            usleep(pause);
            waited += pause;
            pause = pause < longest / 2 ? 2 * pause : longest;
            continue;
        }
        /* The previous maker may have finished between the two. */
        if (!find_guide())
            shca_directory_make();
        break;
    }
}

void shca_registry_close_directory(void)
{
    if (maker_fd >= 0)
        close(maker_fd);
    maker_fd = -1;
}

static bool look_up(uint32_t slot, struct member *m)
{
    return shca_directory_get(slot, &m->pid, &m->fd) && is_published(slot, *m);
}

int shca_registry_find(uint32_t slot, uint32_t *pid, int *fd)
{
    struct member m;
    int e = 0;

    if (look_up(slot, &m)) {
        *pid = m.pid;
        *fd = m.fd;
        return 0;
    }
    pthread_mutex_lock(&registry_lock);
    if (tk_now() - refreshed > refresh_ns)
        e = refresh();
    m = members[slot];
    pthread_mutex_unlock(&registry_lock);
    if (m.pid == 0)
        return e ? e : ENOENT;
    *pid = m.pid;
    *fd = m.fd;
    return 0;
}

void shca_registry_stale(void)
{
    pthread_mutex_lock(&registry_lock);
    refreshed = 0;
    pthread_mutex_unlock(&registry_lock);
}

uint32_t shca_registry_slots(uint16_t *slots)
{
    uint32_t n = 0;

    pthread_mutex_lock(&registry_lock);
    refresh();
    for (uint32_t i = 0; i < SHCA_MEMBERS; i++)
        if (members[i].pid != 0)
            slots[n++] = (uint16_t)i;
    pthread_mutex_unlock(&registry_lock);
    return n;
}

static void word_name(char name[108], const char *word)
{
    shca_name_word(name, 108, shca_config.fabric, word);
}

int shca_registry_hold(const char *word, int *fd)
{
    static _Atomic unsigned held;
    char name[108];
    size_t n;

    word_name(name, word);
    n = strlen(name);
    snprintf(name + n, sizeof name - n, ".%u.%u", (unsigned)getpid(), atomic_fetch_add(&held, 1));
    return bind_name(name, fd);
}

bool shca_registry_held(const char *word)
{
    FILE *f = fopen("/proc/self/net/unix", "re");
    char name[108], line[512];
    bool found = false;
    size_t n;

    if (!f)
        return false;
    word_name(name, word);
    n = strlen(name);
    snprintf(name + n, sizeof name - n, ".");
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, name) != NULL;
    fclose(f);
    return found;
}

int shca_registry_guard(const char *word, int *fd)
{
    char name[108];
    int e;

    word_name(name, word);
    /* The holder only reads one file of the kernel: after ten seconds it must have been stopped. */
    for (int tries = 0; (e = bind_name(name, fd)) == EADDRINUSE && tries < 100000; tries++)
        usleep(100);
    return e == EADDRINUSE ? EAGAIN : e;
}

static bool is_in_directory(uint32_t pid)
{
    struct member m;

    for (uint32_t i = 0; i < SHCA_MEMBERS; i++)
        if (shca_directory_get(i, &m.pid, &m.fd) && m.pid == pid && is_published(i, m))
            return true;
    return false;
}

bool shca_registry_has_pid(uint32_t pid)
{
    bool found = false;

    if (is_in_directory(pid))
        return true;
    pthread_mutex_lock(&registry_lock);
    /* While sockets are opened and closed the kernel's table may skip an entry between two reads;
     * not three times in a row. */
    for (int attempt = 0; attempt < 3 && !found; attempt++) {
        found = refresh() != 0;
        for (uint32_t i = 0; i < SHCA_MEMBERS && !found; i++)
            found = members[i].pid == pid;
    }
    pthread_mutex_unlock(&registry_lock);
    return found;
}

void shca_registry_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    registry_lock = fresh;
    refreshed = 0;
    shca_registry_close_directory();
}

static int refuse(const char *name, const char *mine, const char *theirs, uint32_t pid)
{
    shca_log(
        "%s is %s here but %s in process %u of the same fabric, %s; give both the same, or set "
        "SOFTHCA_FABRIC to start another fabric",
        name, mine, theirs, pid, shca_config.fabric_name);
    return EINVAL;
}

static int compare_number(const char *name, uint32_t mine, uint32_t theirs, uint32_t pid)
{
    char a[16], b[16];

    if (mine == theirs)
        return 0;
    snprintf(a, sizeof a, "%u", mine);
    snprintf(b, sizeof b, "%u", theirs);
    return refuse(name, a, b, pid);
}

static int compare(const struct shca_segment *theirs)
{
    const struct shca_segment *mine = shca.seg;
    int e = compare_number("SOFTHCA_HCAS", mine->hcas, theirs->hcas, theirs->pid);

    if (e == 0)
        e = compare_number("SOFTHCA_PORTS", mine->ports, theirs->ports, theirs->pid);
    if (e == 0 && mine->roce != theirs->roce && mine->roce != SHCA_ROCE_BY_PROFILE &&
        theirs->roce != SHCA_ROCE_BY_PROFILE)
        e = refuse("SOFTHCA_LINK", mine->roce ? "roce" : "ib", theirs->roce ? "roce" : "ib",
                   theirs->pid);
    return e;
}

/* Messages to such a member would be lost in silence. Packets reach it. */
static int refuse_hidden(void)
{
    if (!hidden.pid || shca_config.udp)
        return 0;
    shca_log("process %u of the same fabric, %s, is in another PID namespace (container), where "
             "this process can't reach its memory; let all run in one, or set SOFTHCA_UDP=auto so "
             "that they send packets, or SOFTHCA_FABRIC to start another fabric, if they need not "
             "talk",
             hidden.pid, shca_config.fabric_name);
    return hidden.is_ours ? EINVAL : 0;
}

int shca_registry_agree(void)
{
    struct shca_segment head;
    int e;

    if (shca_directory_is_alike(shca.seg))
        return 0;
    pthread_mutex_lock(&registry_lock);
    memset(&hidden, 0, sizeof hidden); /* those of an earlier attempt may be gone */
    hidden.asked = true;
    e = refresh();
    hidden.asked = false;
    if (e != 0) {
        shca_log("cannot join fabric %s: /proc/self/net/unix, by which its processes find each "
                 "other: %s; %s",
                 shca_config.fabric, strerror(e), shca_remedy(e));
        e = ENOTSUP;
    }
    if (e == 0)
        e = refuse_hidden();
    for (uint32_t i = 0; i < SHCA_MEMBERS && e == 0; i++)
        if (members[i].pid != 0 && i != shca.slot &&
            shca_segment_peek(i, members[i].pid, members[i].fd, &head))
            e = compare(&head);
    refreshed = 0; /* a process that joins now must not be missed because of this read */
    pthread_mutex_unlock(&registry_lock);
    return e;
}
