/* SPDX-License-Identifier: BSD-3-Clause */
/* More members than one level has: 70 in one process, under three leaves, on softhca's wire of
 * packets. Several roots send to random sets, which may leave whole leaves out; outsiders get
 * nothing. Started by broadcast.sh: levels CONTROLLER [BROADCASTS]. */
#include "config.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "member.h"
#include "star.h"

enum { members = 70, leaves = 3, patience_s = 60, sections_flag = 32, header_bytes = 32 };

static struct member all[members];
static bool chosen[members];
static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void join_all(const char *controller)
{
    struct member_options o = {.mtu = 1024, .timeout = 20, .retries = 7};
    struct tk_mcsw_job job;

    CHECK(tk_mcsw_job_make(&job, NULL));
    for (int i = 0; i < members; i++) {
        member_open(&all[i], &o);
        member_dial(&all[i], controller, &job);
    }
    tk_mcsw_create(&all[0].client, members, 1000 * patience_s);
    CHECK(tk_mcsw_wait(&all[0].client) == TK_MCSW_DONE);
    for (int i = 0; i < members; i++)
        member_ask_to_join(&all[i], all[0].client.group, i);
    for (int i = members - 1; i >= 0; i--) /* the first one is refused */
        member_connect(&all[i]);
    CHECK(all[0].client.place.leaves == leaves);
}

/* ---- a control with a section for each leaf that has a receiver ---- */

static void put(uint8_t **at, uint64_t value, unsigned bytes)
{
    struct tk_mcsw_frame f = {*at, *at + bytes};

    tk_mcsw_put(&f, value, bytes);
    *at += bytes;
}

static void put_header(uint8_t **at, unsigned flags, uint32_t group, uint32_t psn, unsigned links,
                       uint32_t bitmap)
{
    put(at, 0x4d43, 2);
    put(at, 1, 1);
    put(at, flags, 1);
    put(at, group, 4);
    put(at, all[0].client.place.key, 8);
    put(at, psn, 4);
    put(at, UINT32_MAX, 4);
    put(at, 0, 2);
    put(at, links, 2);
    put(at, bitmap, 4);
}

static uint32_t write_sections(uint8_t *out, uint32_t psn)
{
    const struct tk_mcsw_place *place = &all[0].client.place;
    uint32_t bitmap[leaves] = {0}, links = 0, offset;
    uint8_t *at = out;

    for (int i = 0; i < members; i++)
        bitmap[i / TK_MCSW_LEAF] |= (uint32_t)chosen[i] << i % TK_MCSW_LEAF;
    for (int i = 0; i < leaves; i++)
        links += bitmap[i] != 0;
    put_header(&at, ACQUIRE | TOPOLOGY | sections_flag, place->group, psn, links, 0);
    offset = header_bytes + 16 * links;
    for (uint32_t i = 0; i < leaves; i++)
        if (bitmap[i]) {
            put(&at, place->group << 8 | i, 4);
            put(&at, header_bytes, 4);
            put(&at, offset, 8);
            offset += header_bytes;
        }
    for (uint32_t i = 0; i < leaves; i++)
        if (bitmap[i])
            put_header(&at, TOPOLOGY | BITMAP, place->leaf_group + i, UINT32_MAX, 0, bitmap[i]);
    return (uint32_t)(at - out);
}

/* ---- broadcasts ---- */

static uint64_t flag_of(int member, int root)
{
    return *(volatile uint64_t *)(void *)(all[member].region + MEMBER_FLAGS + 8 * (size_t)root);
}

static void check(int root, uint64_t value, uint32_t bytes)
{
    time_t limit = time(NULL) + patience_s;
    struct ibv_wc wc;

    for (int i = 0; i < members; i++) {
        while (chosen[i] && flag_of(i, root) != value) {
            CHECK(ibv_poll_cq(all[i].cq, 1, &wc) == 0);
            CHECK(time(NULL) < limit);
        }
        CHECK(chosen[i] == (flag_of(i, root) == value));
        for (uint32_t k = 0; chosen[i] && k < bytes; k++)
            CHECK(all[i].region[k] == (uint8_t)(value + k));
    }
}

static void broadcast(uint64_t value)
{
    int root = (int)(random_number() % members);
    uint64_t leaves_out = value % 4 == 0 ? random_number() : 0;
    uint8_t control[512];
    struct broadcast b = {.control = control,
                          .bytes = 1 + (uint32_t)(random_number() % 3000),
                          .value = value,
                          .release = true};
    int somebody = (int)(random_number() % members);

    for (int i = 0; i < members; i++)
        chosen[i] = i == somebody || (random_number() % 2 && !(leaves_out >> i / TK_MCSW_LEAF & 1));
    for (uint32_t k = 0; k < b.bytes; k++)
        all[root].region[MEMBER_SOURCE + k] = (uint8_t)(value + k);
    b.control_bytes = write_sections(control, (all[root].psn + 1) & 0xffffff);
    member_post(&all[root], &b);
    CHECK(member_reap(&all[root]) == IBV_WC_SUCCESS);
    check(root, value, b.bytes);
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 40;

    CHECK(argc > 1);
    alarm(4 * patience_s);
    join_all(argv[1]);
    for (unsigned i = 1; i <= count; i++)
        broadcast(i);
    for (int i = 0; i < members; i++)
        member_part(&all[i]);
    for (int i = 0; i < members; i++)
        member_close(&all[i]);
    return 0;
}
