/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The targets of the fuzzers: frames, captures, and conversations (endpoint.c). Owns nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/roce_targets.h"
#include "packet/bytes.h"
#include "packet/frame.h"
#include "packet/icrc.h"
#include "packet/pcap.h"

void fuzz_must(int promise)
{
    if (!promise)
        abort();
}

/* A good frame is built again; only the padding and the bytes after it may differ. */
static void check_frame(const uint8_t *data, size_t size, const struct roce_frame *f)
{
    uint8_t again[ROCE_FRAME_MAX + 65536];
    struct roce_frame g;
    size_t n = roce_frame_build(f, again, sizeof again);

    fuzz_must(n == size);
    fuzz_must(memcmp(again, data, f->bth_at + roce_opcode_bytes(f->packet.opcode)) == 0);
    fuzz_must(roce_frame_parse(again, n, &g) == ROCE_GOOD);
    fuzz_must(g.packet.payload_length == f->packet.payload_length);
    fuzz_must(memcmp(g.packet.payload, f->packet.payload, g.packet.payload_length) == 0);
}

static void run_frame(const uint8_t *data, size_t size)
{
    struct roce_frame f;
    enum roce_verdict v = roce_frame_parse(data, size, &f);
    uint8_t *copy;
    size_t end;

    fuzz_must(strcmp(roce_verdict_name(v), "unknown") != 0);
    if (v == ROCE_GOOD)
        check_frame(data, size, &f);
    if (v != ROCE_BAD_ICRC)
        return;
    /* No fuzzer guesses an ICRC. */
    copy = malloc(size);
    fuzz_must(copy != NULL);
    memcpy(copy, data, size);
    end = (size_t)f.bth_at + f.packet_length;
    roce_put_icrc(copy + end, roce_icrc_ip(copy + f.ip_at, f.bth_at - f.ip_at, end - f.ip_at));
    fuzz_must(roce_frame_parse(copy, size, &f) == ROCE_GOOD);
    check_frame(copy, size, &f);
    free(copy);
}

static void run_pcap(const uint8_t *data, size_t size)
{
    struct roce_pcap p;
    struct roce_pcap_packet k;

    if (!roce_pcap_open(&p, data, size))
        return;
    while (roce_pcap_next(&p, &k) == 1) {
        fuzz_must(k.data >= data && k.length <= size && k.data + k.length <= data + size);
        run_frame(k.data, k.length);
    }
}

const struct fuzz_target fuzz_targets[] = {{"frame", NULL, run_frame},
                                           {"pcap", NULL, run_pcap},
                                           {"endpoint", NULL, fuzz_endpoint},
                                           {NULL, NULL, NULL}};

const struct fuzz_target *fuzz_target_find(const char *name)
{
    for (const struct fuzz_target *t = fuzz_targets; name && t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    fprintf(stderr, "FUZZ_TARGET=%s is none of frame, pcap, endpoint\n", name ? name : "");
    exit(2);
}
