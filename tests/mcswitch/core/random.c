/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two switches, one fast and exact, one strict with its scan, get the same random frames: the same
 * frames leave, in any order, and their state is the same after each. Frames that fail a check of
 * the switch change nothing. usage: core_random [frames [seed]] */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/private.h"
#include "packet/bytes.h"
#include "packet/icrc.h"
#include "rig.h"

enum { members = 5 };

static struct rig fast, strict;
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void stop(const char *what, unsigned n)
{
    fprintf(stderr, "frame %u: %s\n", n, what);
    exit(1);
}

/* ---- one random frame ---- */

/* A PSN near the expected one: mostly in order, else a repeat or a gap. */
static uint32_t near(uint32_t psn)
{
    switch (draw(8)) {
    case 0:
        return roce_psn_add(psn, ROCE_PSN_MASK - draw(6));
    case 1:
        return roce_psn_add(psn, draw(3));
    default:
        return psn;
    }
}

static struct mcsw_control any_control(const struct mcsw_view *v, unsigned s, uint32_t psn,
                                       struct mcsw_entry *entries)
{
    struct mcsw_control c =
        rig_set(&fast, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_BITMAP, psn, draw(1u << members));
    unsigned links = draw(members + 1);

    if (v->holder == s && draw(3))
        c.flags = MCSW_RELEASE;
    else if (v->holder == s)
        c.flags &= (uint8_t)~MCSW_ACQUIRE;
    if (draw(3) == 0 && c.flags != MCSW_RELEASE) {
        c.flags ^= MCSW_BITMAP;
        c.flags |= draw(2) ? MCSW_ADDRESS : 0;
        for (unsigned i = 0; i < links; i++)
            entries[i] =
                (struct mcsw_entry){mcsw_qpn(RIG_GROUP, draw(20) ? (i + s) % members : draw(40)),
                                    0x3000 + draw(99), draw(1000)};
        c.links = (uint16_t)links;
        c.entries = entries;
    }
    if (draw(30) == 0)
        c.key ^= 1;
    if (draw(30) == 0)
        c.flags = (uint8_t)draw(256);
    if (c.flags == MCSW_RELEASE)
        c.bitmap = c.links = 0;
    return c;
}

static unsigned any_sender(const struct mcsw_view *v)
{
    return v->holder < members && draw(10) ? v->holder : draw(members);
}

static void put_request(struct rig *r, const struct mcsw_view *v)
{
    static const uint8_t operations[] = {ROCE_SEND_ONLY,      ROCE_WRITE_ONLY, ROCE_WRITE_FIRST,
                                         ROCE_WRITE_MIDDLE,   ROCE_WRITE_LAST, ROCE_SEND_LAST_IMM,
                                         ROCE_WRITE_ONLY_IMM, ROCE_FETCH_ADD};
    struct mcsw_entry entries[32];
    unsigned s = any_sender(v);
    uint32_t psn = near(v->sender[s].epsn);
    struct mcsw_control c;

    if (v->holder != s ? draw(4) : draw(12) == 0) {
        c = any_control(v, s, psn, entries);
        rig_control(r, s, psn, &c);
    } else {
        unsigned operation = operations[draw(40) ? draw(7) : 7];

        r->write_rkey = draw(4) ? 0 : MCSW_WINDOW_RKEY;
        rig_write(r, s, operation, psn, draw(4096), operation == ROCE_FETCH_ADD ? 0 : 4 * draw(40));
    }
}

static void put_response(struct rig *r, const struct mcsw_view *v)
{
    static const uint8_t naks[] = {0x60, 0x60, 0x60, 0x60, 0x61, 0x62, 0x63, 0x25, 0x2a, 0x3f};
    unsigned m = draw(members);
    uint32_t next = v->receiver[m].psn_out, back = draw(2) ? 0 : draw(4);
    uint8_t syndrome = draw(12) ? ROCE_CREDITS_NONE
                                : naks[draw(20) ? (draw(2) ? draw(4) : 7 + draw(3)) : draw(10)];

    if (draw(40) == 0) {
        rig_congestion(r, m);
        return;
    }
    if ((syndrome & 0x60) == 0)
        back++;
    rig_response(r, m, syndrome, draw(50) ? next - back : next + draw(4),
                 v->receiver[m].msn_out - draw(2));
}

/* Repairs, as the controller does. */
static void repair(struct rig *r, const struct mcsw_view *v)
{
    for (unsigned m = 0; m < members; m++) {
        struct mcsw_receiver x = r->receiver[m];
        struct mcsw_sender s = r->sender[m];

        if (v->receiver[m].dirty && draw(6) == 0) {
            x.psn = v->receiver[m].psn_out + (1u << 22);
            mcsw_repair(r->w, RIG_GROUP, m, &x);
        }
        if (v->sender[m].fenced && draw(6) == 0) {
            s.psn = draw(1 << 24);
            mcsw_register(r->w, RIG_GROUP, m, &s);
        }
    }
    if (draw(50) == 0)
        mcsw_set_window(r->w, RIG_GROUP, draw(members), draw(1 << 20), 0x7000 + draw(99));
}

static void put_one(struct rig *r, const struct mcsw_view *v)
{
    if (draw(400) == 0)
        r->now += 1500000;
    if (draw(2))
        put_request(r, v);
    else
        put_response(r, v);
    repair(r, v);
}

/* ---- comparison ---- */

static bool take_equal(struct rig *r, const struct rig_out *o)
{
    for (unsigned i = 0; i < r->outs; i++) {
        struct rig_out *x = &r->out[i];

        if (!x->matched && x->port == o->port && x->length == o->length &&
            memcmp(x->bytes, o->bytes, o->length) == 0) {
            x->matched = true;
            return true;
        }
    }
    return false;
}

static void *registers(struct rig *r, size_t *bytes)
{
    *bytes = r->w->groups_at;
    *bytes = mcsw_bytes(&fast.config) - *bytes;
    return (uint8_t *)r->w + r->w->groups_at;
}

/* Only the scan has a holder of the minimum. */
static void compare_views(unsigned n)
{
    struct mcsw_view a = rig_view(&fast), b = rig_view(&strict);

    if (memcmp(&a.senders, &b.senders, offsetof(struct mcsw_view, sender)) != 0)
        stop("the groups' states differ", n);
    for (unsigned m = 0; m < members; m++) {
        if (memcmp(&a.sender[m], &b.sender[m], 8) != 0 ||
            a.sender[m].fenced != b.sender[m].fenced ||
            a.sender[m].nak_sent != b.sender[m].nak_sent)
            stop("the senders' states differ", n);
        if (a.receiver[m].psn_out != b.receiver[m].psn_out ||
            a.receiver[m].acked != b.receiver[m].acked || a.receiver[m].off != b.receiver[m].off ||
            a.receiver[m].msn_out != b.receiver[m].msn_out)
            stop("the receivers' states differ", n);
    }
}

static void same_frames(unsigned n)
{
    if (fast.outs != strict.outs)
        stop("one sends more frames than the other", n);
    for (unsigned i = 0; i < fast.outs; i++) {
        if (!take_equal(&strict, &fast.out[i]))
            stop("one sends a frame that the other does not", n);
        if (fast.out[i].verdict != ROCE_GOOD)
            stop("a frame that is not good leaves", n);
    }
    fast.outs = strict.outs = 0;
    compare_views(n);
}

/* ---- frames that must change nothing ---- */

struct bad {
    uint8_t bytes[ROCE_FRAME_MAX];
    size_t length;
    unsigned port;
};

static void keep(void *context, unsigned port, uint64_t now, const uint8_t *frame, size_t length)
{
    struct bad *b = context;

    (void)now;
    b->port = port;
    b->length = length;
    memcpy(b->bytes, frame, length);
}

/* The frame that member m would send now, without sending it. */
static void make(struct bad *b, const struct mcsw_view *v)
{
    static struct rig paper;

    memcpy(&paper, &fast, offsetof(struct rig, out));
    paper.record = keep;
    paper.context = b;
    paper.w = malloc(mcsw_bytes(&fast.config));
    memcpy(paper.w, fast.w, mcsw_bytes(&fast.config));
    paper.w->c.calls.context = &paper;
    if (draw(2))
        put_request(&paper, v);
    else
        put_response(&paper, v);
    free(paper.w);
}

static void fix_icrc(struct bad *b)
{
    uint8_t *ip = b->bytes + 14;
    size_t length = roce_get16(ip + 2) - (size_t)ROCE_ICRC_BYTES;
    uint32_t sum = 0;

    roce_put16(ip + 10, 0);
    for (unsigned i = 0; i < 20; i += 2)
        sum += roce_get16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    roce_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
    if (length + 18 <= b->length)
        roce_put_icrc(ip + length, roce_icrc_ip(ip, 28, length));
}

static void spoil(struct bad *b)
{
    uint8_t *ip = b->bytes + 14;

    switch (draw(6)) {
    case 0: /* another port, of a member or unused */
        b->port = draw(2) ? members + draw(9) : (b->port + 1 + draw(members - 1)) % members;
        break;
    case 1: /* another member's address */
        ip[15] = (uint8_t)(1 + (ip[15] + draw(members - 1)) % members);
        break;
    case 2: /* damage that the ICRC shows */
        b->bytes[49 + draw((uint32_t)b->length - 49)] ^= (uint8_t)(1 << draw(8));
        return;
    case 3: /* any bytes, from a stranger's port */
        for (unsigned n = draw(8) + 1; n > 0; n--)
            b->bytes[34 + draw((uint32_t)b->length - 34)] = (uint8_t)draw(256);
        b->port = members + 1;
        break;
    case 4: /* a group or member that does not exist */
        roce_put24(b->bytes + 47, draw(2) ? mcsw_qpn(draw(9) + RIG_GROUP + 1, 0)
                                          : mcsw_qpn(RIG_GROUP, members + draw(200)));
        break;
    default: /* cut */
        b->length -= 1 + draw((uint32_t)b->length - 34);
        return;
    }
    fix_icrc(b);
}

static void refuse_one(const struct mcsw_view *v, unsigned n)
{
    static struct bad b;
    size_t bytes;
    void *now = registers(&fast, &bytes), *before = malloc(bytes);

    make(&b, v);
    spoil(&b);
    memcpy(before, now, bytes);
    mcsw_frame(fast.w, b.port, fast.now, b.bytes, b.length);
    if (memcmp(before, now, bytes) != 0)
        stop("a frame that fails a check changed the state", n);
    if (fast.outs != 0)
        stop("a frame that fails a check was answered", n);
    free(before);
}

static void run(unsigned frames, const struct rig_options *o)
{
    struct rig_options other = *o;
    uint64_t kept;

    other.mode = MCSW_STRICT;
    rig_open(&fast, o);
    rig_open(&strict, &other);
    for (unsigned n = 0; n < frames; n++) {
        struct mcsw_view v = rig_view(&fast);

        kept = state;
        put_one(&fast, &v);
        state = kept;
        put_one(&strict, &v);
        same_frames(n);
        if (n % 4 == 0) {
            v = rig_view(&fast);
            refuse_one(&v, n);
        }
    }
    if (strict.violations || fast.failures || strict.failures)
        stop("the strict checker complains", frames);
    printf("%u frames: %llu copies, %llu locks, %llu thefts, %llu repeats, %llu dirtied, %llu "
           "refused\n",
           frames, (unsigned long long)mcsw_counters(fast.w)->copies,
           (unsigned long long)mcsw_counters(fast.w)->controls,
           (unsigned long long)mcsw_counters(fast.w)->steals,
           (unsigned long long)mcsw_counters(fast.w)->repeats,
           (unsigned long long)mcsw_counters(fast.w)->dirtied,
           (unsigned long long)mcsw_counters(fast.w)->refused);
    if (mcsw_counters(fast.w)->copies < frames / 20 || mcsw_counters(fast.w)->steals == 0)
        stop("hardly anything happened", frames);
    rig_close(&fast);
    rig_close(&strict);
}

int main(int argc, char **argv)
{
    unsigned frames = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 50000;

    state = argc > 2 ? strtoull(argv[2], NULL, 0) : 19;
    printf("seed %llu\n", (unsigned long long)state);
    run(frames, &(struct rig_options){.members = members});
    run(frames, &(struct rig_options){.members = members, .near_wrap = true});
    return 0;
}
