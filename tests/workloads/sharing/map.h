/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connection leads where: Q connections of a server, cut evenly among C clients, over P
 * rails. Numbers only. */
#ifndef SHARING_MAP_H
#define SHARING_MAP_H

#include <stdint.h>

struct sharing_place {
    uint32_t client, rail, local; /* local: among this client's connections on this rail */
};

/* Connections of each client; `clients` divides `qps`. */
static inline uint32_t sharing_each(uint32_t qps, uint32_t clients)
{
    return qps / clients;
}

/* Connection i of 0..qps-1. Rails are taken in turn, by the number in the whole. */
struct sharing_place sharing_map(uint32_t i, uint32_t qps, uint32_t clients, uint32_t rails);

/* The group of threads that owns connection i, when `degree` threads of `threads` share each. */
static inline uint32_t sharing_group(uint32_t i, uint32_t threads, uint32_t degree)
{
    return i % (threads / degree);
}

#endif
