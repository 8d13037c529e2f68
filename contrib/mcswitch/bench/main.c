/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mcsw-bench: the speed of the switch's core on one core, without I/O. Owns its switch;
 * single-threaded. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/private.h"
#include "packet/bytes.h"
#include "packet/crc.h"
#include "packet/icrc.h"

enum { receivers = 8, group = 1, rounds = 5, burst = 1000, vip = 200 };

struct bench {
    struct mcsw *w;
    struct mcsw_cache *cache;
    uint32_t psn[receivers + 1]; /* of the sender, then of the receivers */
    uint64_t out, bytes;
    unsigned sum; /* of one byte of each frame, so that frames are read */
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void emit(void *context, unsigned port, uint8_t *frame, size_t length)
{
    struct bench *b = context;

    b->out++;
    b->bytes += length;
    b->sum += frame[length - 1] + port;
}

/* ---- a switch with one sender and its receivers ---- */

static void set_up(struct bench *b)
{
    struct mcsw_config c = {.groups = 1, .calls = {b, emit, NULL, NULL}, .mac = {2}};
    struct mcsw_receiver r[receivers] = {0};
    struct mcsw_sender s = {.ip = {10, 0, 0, 1}, .mac = {2}, .qpn = 17};
    struct mcsw_group_config g = {.ip_version = 4, .senders = 1, .receivers = receivers};

    memset(b, 0, sizeof *b);
    c.v4.on = true;
    memcpy(c.v4.requests, (uint8_t[]){10, 0, 0, vip}, 4);
    memcpy(c.v4.copies, (uint8_t[]){10, 0, 0, vip + 1}, 4);
    b->cache = mcsw_cache_open(malloc(mcsw_cache_bytes()));
    c.cache = b->cache;
    b->w = mcsw_open(malloc(mcsw_bytes(&c)), &c);
    for (unsigned i = 0; i < receivers; i++) {
        memcpy(r[i].ip, (uint8_t[]){10, 0, 0, (uint8_t)(i + 2)}, 4);
        r[i].port = i + 1;
        r[i].qpn = 100 + i;
        r[i].psn = 1000 * i;
        r[i].base = 4096 * i;
        r[i].rkey = 7 + i;
        b->psn[i + 1] = r[i].psn;
    }
    g.sender = &s;
    g.receiver = r;
    if (!mcsw_create(b->w, group, &g))
        abort();
}

static void tear_down(struct bench *b)
{
    free(b->w);
    free(b->cache);
}

static struct roce_frame base(unsigned host, bool to_requests)
{
    struct roce_frame f = {.ip_version = 4, .fragment = 0x4000, .hops = 64};

    memcpy(f.source, (uint8_t[]){10, 0, 0, (uint8_t)host}, 4);
    memcpy(f.destination, (uint8_t[]){10, 0, 0, (uint8_t)(to_requests ? vip : vip + 1)}, 4);
    f.source_port = 0xc000;
    f.destination_port = ROCE_UDP_PORT;
    f.packet.pkey = 0xffff;
    return f;
}

struct bytes {
    size_t length;
    uint8_t b[ROCE_FRAME_MAX];
};

static void build(const struct roce_frame *f, struct bytes *to)
{
    to->length = roce_frame_build(f, to->b, sizeof to->b);
}

static void lock(struct bench *b)
{
    static struct bytes frame;
    struct mcsw_control c = {.flags = MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_BITMAP,
                             .group = group,
                             .psn = MCSW_UNCHECKED,
                             .msn = MCSW_UNCHECKED,
                             .bitmap = (1u << receivers) - 1};
    uint8_t payload[MCSW_CONTROL_BYTES];
    struct roce_frame f = base(1, true);

    f.packet.opcode = ROCE_WRITE_ONLY;
    f.packet.dest_qpn = mcsw_qpn(group, 0);
    f.packet.va = MCSW_CONTROL_VA;
    f.packet.rkey = MCSW_CONTROL_RKEY;
    f.packet.payload = payload;
    f.packet.payload_length = (uint32_t)mcsw_control_build(&c, payload, sizeof payload);
    build(&f, &frame);
    mcsw_frame(b->w, 0, 1, frame.b, frame.length);
    for (unsigned i = 0; i <= receivers; i++)
        b->psn[i]++;
}

/* A burst of writes, made before the clock runs. */
static struct bytes *writes(struct bench *b, uint32_t payload_bytes)
{
    static uint8_t payload[ROCE_MTU_MAX];
    struct bytes *all = calloc(burst, sizeof *all);
    struct roce_frame f = base(1, true);

    f.packet.opcode = ROCE_WRITE_ONLY;
    f.packet.dest_qpn = mcsw_qpn(group, 0);
    f.packet.rkey = 1;
    f.packet.payload = payload;
    f.packet.payload_length = f.packet.dma_length = payload_bytes;
    for (unsigned i = 0; i < burst; i++) {
        f.packet.psn = b->psn[0] & ROCE_PSN_MASK;
        b->psn[0]++;
        payload[0]++;
        build(&f, &all[i]);
    }
    return all;
}

static struct bytes *acknowledgements(struct bench *b)
{
    struct bytes *all = calloc((size_t)burst * receivers, sizeof *all);

    for (unsigned r = 0; r < receivers; r++) {
        struct roce_frame f = base(r + 2, false);

        f.packet.opcode = ROCE_ACKNOWLEDGE;
        f.packet.dest_qpn = mcsw_qpn(group, r);
        f.packet.syndrome = ROCE_CREDITS_NONE;
        for (unsigned i = 0; i < burst; i++) {
            f.packet.psn = b->psn[r + 1] & ROCE_PSN_MASK;
            b->psn[r + 1]++;
            build(&f, &all[i * receivers + r]);
        }
    }
    return all;
}

/* Time in ns for each packet that goes in, of the best burst; *back: for its acknowledgements. */
static double measure(uint32_t payload_bytes, double *back)
{
    double best = 1e30, t;
    struct bench b;

    *back = 1e30;
    set_up(&b);
    lock(&b);
    for (unsigned round = 0; round < rounds; round++) {
        struct bytes *data = writes(&b, payload_bytes), *acks = acknowledgements(&b);

        t = now();
        for (unsigned i = 0; i < burst; i++)
            mcsw_frame(b.w, 0, 2, data[i].b, data[i].length);
        t = now() - t;
        best = t / burst < best ? t / burst : best;
        t = now();
        for (unsigned i = 0; i < burst * receivers; i++)
            mcsw_frame(b.w, 1 + i % receivers, 2, acks[i].b, acks[i].length);
        t = now() - t;
        *back = t / burst < *back ? t / burst : *back;
        free(data);
        free(acks);
    }
    if (mcsw_counters(b.w)->copies != (uint64_t)rounds * burst * receivers ||
        mcsw_counters(b.w)->acks != (uint64_t)rounds * burst)
        abort();
    tear_down(&b);
    return best;
}

/* ---- the ICRC alone ---- */

static double icrc_whole(const uint8_t *packet, size_t length, unsigned *sum)
{
    double best = 1e30;

    for (unsigned round = 0; round < rounds; round++) {
        double t = now();

        for (unsigned i = 0; i < burst; i++)
            *sum += roce_crc_bytes(i, packet, length);
        t = (now() - t) / burst;
        best = t < best ? t : best;
    }
    return best;
}

static double icrc_change(uint8_t *was, uint8_t *is, size_t headers, size_t behind, unsigned *sum)
{
    struct mcsw_cache *cache = mcsw_cache_open(malloc(mcsw_cache_bytes()));
    double best = 1e30;

    for (unsigned round = 0; round < rounds; round++) {
        double t = now();

        for (unsigned i = 0; i < burst; i++) {
            is[headers - 1] = (uint8_t)i;
            *sum += mcsw_shift(cache, roce_icrc_change(was, is, headers), behind);
        }
        t = (now() - t) / burst;
        best = t < best ? t : best;
    }
    free(cache);
    return best;
}

int main(void)
{
    static const uint32_t sizes[] = {8, 64, 1024, 4096};
    static uint8_t was[5000], is[5000];
    enum { headers = ipv4_bytes + udp_bytes + ROCE_BTH_BYTES + reth_bytes };
    double whole, change;
    unsigned sum = 0;

    printf("# one core, %d receivers, fast mode, ICRC verified on arrival and followed in copies\n",
           receivers);
    printf("# payload  ns/copy  M copies/s  Gbit/s out  ns/acknowledgement in\n");
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double back, ns = measure(sizes[i], &back) / receivers;

        printf("%9u %8.1f %11.2f %11.1f %12.1f\n", sizes[i], ns, 1e3 / ns,
               8 * (sizes[i] + 74.0) / ns, back / receivers);
    }
    for (size_t i = 0; i < sizeof was; i++)
        was[i] = is[i] = (uint8_t)(i * 37);
    was[0] = is[0] = 0x45;
    whole = icrc_whole(was, headers + 4096, &sum);
    change = icrc_change(was, is, headers, 4096, &sum);
    printf("# ICRC of a copy of 4096 bytes: %.1f ns by what changed, %.0f ns in whole with a "
           "table: ratio %.4f\n",
           change, whole, change / whole);
    return sum == 1; /* uses the sum, so that no work is optimised away */
}
