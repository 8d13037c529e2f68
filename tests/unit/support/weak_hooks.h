/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands in front of real sources (-include) and gives their shared accesses to weak_memory.c.
 * Their own includes are included here first, so that the hooks do not affect them. */
#ifndef WEAK_HOOKS_H
#define WEAK_HOOKS_H

#include "config.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/copy.h"
#include "weak_memory.h"

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_signal_fence

#define atomic_load_explicit(at, order)         weak_load(at, sizeof(*(at)), order)
#define atomic_store_explicit(at, value, order) weak_store(at, sizeof(*(at)), value, order)
#define atomic_exchange_explicit(at, value, order)                                                 \
    weak_exchange(at, sizeof(*(at)), weak_set, value, order)
#define atomic_compare_exchange_weak_explicit(at, expected, desired, order, failed)                \
    weak_cas(at, sizeof(*(at)), expected, desired, order)
#define atomic_fetch_add_explicit(at, value, order)                                                \
    weak_exchange(at, sizeof(*(at)), weak_add, value, order)
#define atomic_fetch_or_explicit(at, value, order)                                                 \
    weak_exchange(at, sizeof(*(at)), weak_or, value, order)
#define atomic_fetch_and_explicit(at, value, order)                                                \
    weak_exchange(at, sizeof(*(at)), weak_and, value, order)
#define atomic_signal_fence(order) ((void)(order))

#define tk_copy_small weak_copy
#define tk_copy       weak_copy
#define syscall       weak_syscall

#define socket(...)                            weak_socket
#define bind(file, address, size)              weak_bind(address, size)
#define sendto(file, from, n, flags, to, size) weak_send(to, size)
#define recv(file, to, n, flags)               weak_receive(to)
#define ppoll(files, count, patience, ...)     ((void)(patience), weak_poll(files, count))

#endif
