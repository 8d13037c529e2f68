/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages over the conduit: round trips, where the reply carries as much as the request,
 * and floods of requests without reply, which end when the last request has been handled. */
#include "config.h"

#include "bench.h"

static volatile long pongs, handled;
static volatile int flood_over;

static gex_AM_Index_t index_of(int entry)
{
    return bench_am_table[entry].gex_index;
}

enum {
    ping_short,
    pong_short,
    ping_medium,
    pong_medium,
    ping_long,
    pong_long,
    flood_short,
    flood_bulk,
    over
};

static void on_ping_short(gex_Token_t token)
{
    handled++;
    gex_AM_ReplyShort(token, index_of(pong_short), 0);
}

static void on_pong_short(gex_Token_t token)
{
    (void)token;
    pongs++;
}

static void on_ping_medium(gex_Token_t token, void *data, size_t nbytes)
{
    handled++;
    gex_AM_ReplyMedium(token, index_of(pong_medium), data, nbytes, GEX_EVENT_NOW, 0);
}

static void on_ping_long(gex_Token_t token, void *data, size_t nbytes)
{
    (void)data;
    handled++;
    gex_AM_ReplyLong(token, index_of(pong_long), bench_job.mine + BENCH_SOURCE, nbytes,
                     bench_job.theirs + BENCH_TARGET, GEX_EVENT_NOW, 0);
}

static void on_pong_bulk(gex_Token_t token, void *data, size_t nbytes)
{
    (void)token, (void)data, (void)nbytes;
    pongs++;
}

static void on_flood_short(gex_Token_t token)
{
    (void)token;
    handled++;
}

static void on_flood_bulk(gex_Token_t token, void *data, size_t nbytes)
{
    (void)token, (void)data, (void)nbytes;
    handled++;
}

static void on_over(gex_Token_t token)
{
    (void)token;
    flood_over = 1;
}

gex_AM_Entry_t bench_am_table[] = {
    [ping_short] = {0, (gex_AM_Fn_t)on_ping_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL,
                    "ping"},
    [pong_short] = {0, (gex_AM_Fn_t)on_pong_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL,
                    "pong"},
    [ping_medium] = {0, (gex_AM_Fn_t)on_ping_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0,
                     NULL, "ping_medium"},
    [pong_medium] = {0, (gex_AM_Fn_t)on_pong_bulk, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL,
                     "pong_medium"},
    [ping_long] = {0, (gex_AM_Fn_t)on_ping_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL,
                   "ping_long"},
    [pong_long] = {0, (gex_AM_Fn_t)on_pong_bulk, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0, NULL,
                   "pong_long"},
    [flood_short] = {0, (gex_AM_Fn_t)on_flood_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0,
                     NULL, "flood"},
    [flood_bulk] = {0, (gex_AM_Fn_t)on_flood_bulk, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 0,
                    NULL, "flood_bulk"},
    [over] = {0, (gex_AM_Fn_t)on_over, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "over"},
};
const size_t bench_am_count = sizeof(bench_am_table) / sizeof(*bench_am_table);

/* Rank 1's part in all cases of this file: handlers do the work. */
static void serve(long count)
{
    GASNET_BLOCKUNTIL(handled == count);
    handled = 0;
}

static void request_short(int entry)
{
    gex_AM_RequestShort(bench_job.tm, bench_job.peer, index_of(entry), 0);
}

static void request_medium(int entry, size_t nbytes)
{
    gex_AM_RequestMedium(bench_job.tm, bench_job.peer, index_of(entry),
                         bench_job.mine + BENCH_SOURCE, nbytes, GEX_EVENT_NOW, 0);
}

static void request_long(int entry, size_t nbytes)
{
    gex_AM_RequestLong(bench_job.tm, bench_job.peer, index_of(entry), bench_job.mine + BENCH_SOURCE,
                       nbytes, bench_job.theirs + BENCH_TARGET, GEX_EVENT_NOW, 0);
}

static void await_pong(long count)
{
    GASNET_BLOCKUNTIL(pongs == count);
}

void bench_am_short(size_t nbytes, long count)
{
    (void)nbytes;
    if (bench_job.me == 1) {
        serve(count);
        return;
    }
    pongs = 0;
    for (long i = 1; i <= count; i++) {
        request_short(ping_short);
        await_pong(i);
    }
}

void bench_am_medium(size_t nbytes, long count)
{
    if (bench_job.me == 1) {
        serve(count);
        return;
    }
    pongs = 0;
    for (long i = 1; i <= count; i++) {
        request_medium(ping_medium, nbytes);
        await_pong(i);
    }
}

void bench_am_long(size_t nbytes, long count)
{
    if (bench_job.me == 1) {
        serve(count);
        return;
    }
    pongs = 0;
    for (long i = 1; i <= count; i++) {
        request_long(ping_long, nbytes);
        await_pong(i);
    }
}

/* The end of a flood: rank 1 has handled all messages and reports it. */
static void finish_flood(long count)
{
    if (bench_job.me == 1) {
        serve(count);
        request_short(over);
        return;
    }
    GASNET_BLOCKUNTIL(flood_over);
    flood_over = 0;
}

void bench_am_short_flood(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        request_short(flood_short);
    finish_flood(count);
}

void bench_am_medium_flood(size_t nbytes, long count)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        request_medium(flood_bulk, nbytes);
    finish_flood(count);
}

void bench_am_long_flood(size_t nbytes, long count)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        request_long(flood_bulk, nbytes);
    finish_flood(count);
}
