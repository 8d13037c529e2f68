/* SPDX-License-Identifier: BSD-3-Clause
 *
 * State that the files of this folder share: the queue pairs on this wire and its sockets. udp.h
 * names the lock of each. */
#include "config.h"

#include "wire/udp/udp.h"

struct shca_udp_state shca_udp = {.next = ROCE_NEVER};
struct shca_udp_port shca_udp_port[SHCA_UDP_PORTS];
