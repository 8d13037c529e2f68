/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of server/: the up-calls of libpmix, the job's keys, and the channel to the
 * guard. */
#ifndef TRUNKLINE_SPAWNER_SERVER_PRIVATE_H
#define TRUNKLINE_SPAWNER_SERVER_PRIVATE_H

#include "server.h"
#include "spawner/wire/wire.h"

#include <stdbool.h>

#include <pmix.h>
#include <pmix_server.h>

/* Makes `fd` the channel to the guard; call before any other thread exists. */
void server_open_channel(int fd);

/* Sends a frame to the guard and waits until it is in the socket. Safe from any thread (own lock):
 * up-calls come from libpmix's thread. When it returns, the guard will see the frame before the
 * exit of a rank that waited for the up-call; the exit policy depends on that order. */
void server_send(enum wire_type type, uint32_t rank, const void *payload, size_t length);

/* The next frame of the guard; for the main thread alone. False at the deadline (clock_ms). */
bool server_receive(struct wire_frame *frame, int64_t deadline);

/* With the servers of other hosts; exchange.c. Requests of libpmix to them, on its thread, and the
 * answers, on the main thread. Both may come before server_open_exchange() has returned. */
void server_open_exchange(const struct server_job *server);
pmix_status_t server_fence(const pmix_proc_t procs[], size_t count, pmix_status_t status,
                           const char *data, size_t length, pmix_modex_cbfunc_t done, void *object);
pmix_status_t server_ask(const pmix_proc_t *proc, pmix_modex_cbfunc_t done, void *object);
void server_take(const struct wire_frame *frame);

/* The table of up-calls given to PMIx_server_init(). */
extern pmix_server_module_t server_upcalls;

/* Registers the namespace: sizes, maps, and what each rank may ask about the job. */
pmix_status_t server_register_job(const struct server_job *server);

/* Registers rank `rank` as a client of this server, running under our own user. */
pmix_status_t server_register_rank(const struct server_job *server, uint32_t rank);

#endif
