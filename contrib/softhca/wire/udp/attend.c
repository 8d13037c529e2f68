/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides when the helper thread polls the sockets: only while the program does not, because two
 * threads would compete for each packet and for the CPU. Owns the marks by which a program that
 * polls is recognized; they are atomic. */
#include "config.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "wire/udp/udp.h"

enum {
    vain_polls =
        32, /* empty polls in a row after which the program is assumed to be only polling */
    wary_completions = 256,
};
static const uint64_t look_ns = UINT64_C(1000000);

static struct shca_lock arm_lock;
static _Atomic int32_t wary; /* completions after which the helper thread is attentive */

static void arm(bool on)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);
    bool changes;

    if (atomic_load_explicit(&shca_udp.attentive, memory_order_relaxed) == on)
        return;
    /* The mark and the epoll registration must agree, or neither thread would poll. */
    shca_lock(&arm_lock);
    changes = atomic_exchange(&shca_udp.attentive, on) != on;
    for (uint32_t i = 1; i <= last && changes; i++)
        for (int k = 0; k < SHCA_INET_KINDS; k++) {
            /* Only new arrivals count: another thread is taking the packets that are in the socket
             * already. */
            struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
            int fd = shca_udp_port[i].socket[k].fd;

            /* Removed, because an entry that waits for nothing costs time with each packet. */
            if (fd >= 0)
                epoll_ctl(shca_helper.epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &e);
        }
    shca_unlock(&arm_lock);
    if (!on) /* from now on the thread is to look each millisecond, though it may sleep longer */
        shca_udp_due(tk_now() + look_ns);
}

/* After a completion the program may do something else, or spin on its memory. The thread notices
 * within a millisecond; if packets had to wait that long, it stays attentive after each completion
 * for a while, until the program's polls are empty again. */
void shca_udp_watch_program(void)
{
    static uint32_t vain; /* shca_udp.lock */

    if (atomic_load_explicit(&shca_udp.delivered, memory_order_relaxed)) {
        atomic_store_explicit(&shca_udp.delivered, false, memory_order_relaxed);
        vain = 0;
        if (atomic_load_explicit(&wary, memory_order_relaxed) > 0) {
            atomic_fetch_sub_explicit(&wary, 1, memory_order_relaxed);
            arm(true);
        }
    } else if (vain++ == vain_polls) {
        arm(false);
    }
}

bool shca_udp_polls(void)
{
    return !atomic_load_explicit(&shca_udp.attentive, memory_order_relaxed) &&
           atomic_load_explicit(&wary, memory_order_relaxed) == 0;
}

static bool packets_wait(void)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);
    bool found = false;
    char byte;

    for (uint32_t i = 1; i <= last; i++)
        for (int k = 0; k < SHCA_INET_KINDS && !found; k++) {
            int fd = shca_udp_port[i].socket[k].fd;

            found = fd >= 0 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
        }
    return found;
}

/* The thread checks once a millisecond whether a program that polled still polls. */
uint64_t shca_udp_sleep(void)
{
    static uint32_t seen;
    uint32_t now_runs = atomic_load(&shca_udp.runs);
    bool polls = now_runs - seen > 1; /* one is the thread's own */
    uint64_t now, next, ns;

    seen = now_runs;
    if (atomic_load(&shca_udp.users) == 0 && atomic_load(&shca_udp.held) == 0) {
        arm(false);
        atomic_store(&shca_udp.until, UINT64_MAX);
        return UINT64_MAX;
    }
    if (!polls && !atomic_load(&shca_udp.attentive)) {
        if (packets_wait() || atomic_load(&shca_udp.put_off) > 0)
            atomic_store_explicit(&wary, wary_completions, memory_order_relaxed);
        arm(true);
    }
    now = tk_now();
    next = atomic_load(&shca_udp.next);
    ns = next > now ? next - now : 0;
    if (!atomic_load(&shca_udp.attentive) && ns > look_ns)
        ns = look_ns;
    atomic_store(&shca_udp.until, ns > UINT64_MAX - now ? UINT64_MAX : now + ns);
    return ns;
}

void shca_udp_attend_inherited(void)
{
    atomic_store(&arm_lock.word, 0);
    atomic_store(&shca_udp.attentive, false);
    atomic_store(&wary, 0);
}

void shca_udp_attend(void)
{
    void (*progress)(void);

    if (atomic_load_explicit(&shca_udp.users, memory_order_relaxed) == 0)
        return;
    arm(true);
    /* By a pointer and not by name, because the receiver calls this file. */
    if (atomic_load(&shca_udp.put_off) > 0 && (progress = atomic_load(&shca_far_run)) != NULL)
        progress();
}
