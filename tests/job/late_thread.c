/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that has had one thread starts another one in a handler, which runs while the first one
 * puts and has requests in flight that took no lock. From then on both put and get to the same
 * peer, and end each other's requests. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    rounds = 1500,
    in_flight = 64, /* more than polls take at once, and than a short send queue holds */
    area = 4096,    /* of a thread */
    own = 2 * area  /* behind what the peer writes: where gets go */
};

static gex_AM_Index_t go;
static pthread_t second;
static volatile bool is_started;

/* Each word is its own, and comes back as it went. */
static void work(size_t place, int count)
{
    uint64_t *there = job_remote(1 - job.rank, place);
    uint64_t *back = (uint64_t *)(void *)(job.base + own + place);
    for (int round = 0; round < count; round++) {
        for (size_t i = 0; i < in_flight; i++) {
            uint64_t word = job_mix(place + i, (uint64_t)round);
            gex_RMA_PutNBI(job.tm, 1 - job.rank, &there[i], &word, sizeof(word), GEX_EVENT_NOW, 0);
        }
        gex_NBI_Wait(GEX_EC_PUT, 0);
        for (size_t i = 0; i < in_flight; i++)
            gex_RMA_GetNBI(job.tm, &back[i], 1 - job.rank, &there[i], sizeof(*back), 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
        for (size_t i = 0; i < in_flight; i++)
            CHECK(back[i] == job_mix(place + i, (uint64_t)round), "word %zu of round %d", i, round);
    }
}

static void *work_too(void *unused)
{
    (void)unused;
    work(area, rounds);
    return NULL;
}

static void on_go(gex_Token_t token)
{
    (void)token;
    CHECK(pthread_create(&second, NULL, work_too, NULL) == 0);
    is_started = true;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 0);
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_go, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "go"};
    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    go = entry.gex_index;
    job_attach(1 << 16);
    work(0, rounds);
    job_barrier();
    gex_AM_RequestShort(job.tm, 1 - job.rank, go, 0);
    while (!is_started)
        work(0, 1);
    work(0, rounds);
    CHECK(pthread_join(second, NULL) == 0);
    job_end();
}
