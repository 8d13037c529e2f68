/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel's recorded conversations, with the end point as one side: for the same requests it
 * sends rxe's answers, and for the same work it sends the same requests. Single-threaded. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint/endpoint.h"
#include "frames.h"

/* Sides: the requester is the one that sent the first frame. */
static bool from_requester(const struct frames *f, unsigned i)
{
    return memcmp(f->frame[i].source, f->frame[0].source, 16) == 0;
}

/* The recorded packet as this end would send it: rxe does not set MigReq, and requests
 * acknowledgements of reads and atomics, which are answered anyway (specification 9.7.5.1.2). */
static struct roce_packet as_ours(const struct roce_packet *theirs)
{
    struct roce_packet p = *theirs;
    uint8_t kind = roce_opcode(p.opcode).kind;

    p.migrated = true;
    if (kind == ROCE_KIND_READ || kind == ROCE_KIND_ATOMIC)
        p.ack_request = false;
    return p;
}

static void same(const struct roce_packet *ours, const struct roce_packet *theirs)
{
    struct roce_packet p = as_ours(theirs);
    uint8_t a[ROCE_PACKET_MAX], b[ROCE_PACKET_MAX];
    size_t n = roce_packet_build(&p, a, sizeof a);

    assert_string_equal(roce_operation_name(ours->opcode), roce_operation_name(theirs->opcode));
    assert_int_equal(roce_packet_build(ours, b, sizeof b), n);
    assert_memory_equal(b, a, n);
}

/* ---- as the responder ---- */

/* The memory of the recorded responder as one region of any address and this key. */
static const struct roce_packet *coming; /* the recorded answer */
static uint32_t right_key;
static uint64_t region_end;
static unsigned delivered;

static enum roce_status check_recorded(void *context, const struct roce_reach *a)
{
    (void)context;
    return a->rkey == right_key && a->va + a->length <= region_end ? ROCE_SUCCESS
                                                                   : ROCE_REMOTE_ACCESS;
}

static enum roce_status write_recorded(void *context, const struct roce_reach *a, const void *from)
{
    (void)context, (void)a, (void)from;
    return ROCE_SUCCESS;
}

static enum roce_status read_recorded(void *context, const struct roce_reach *a, void *to)
{
    (void)context;
    assert_int_equal(a->length, coming->payload_length);
    memcpy(to, coming->payload, a->length);
    return ROCE_SUCCESS;
}

static enum roce_status atomic_recorded(void *context, const struct roce_reach *a, bool compare,
                                        uint64_t swap, uint64_t with, uint64_t *original)
{
    (void)context, (void)a, (void)compare, (void)swap, (void)with;
    *original = coming->original;
    return ROCE_SUCCESS;
}

static enum roce_status take_recorded(void *context, uint32_t srqn)
{
    (void)context, (void)srqn;
    return coming && (coming->syndrome & ROCE_SYNDROME_KIND) == ROCE_SYNDROME_RNR ? ROCE_NOT_READY
                                                                                  : ROCE_SUCCESS;
}

static enum roce_status fill_recorded(void *context, uint32_t offset, const void *from,
                                      uint32_t length)
{
    (void)context, (void)offset, (void)from, (void)length;
    return ROCE_SUCCESS;
}

/* The recording program passed the immediates of frames/README in the byte order of its CPU. */
static void done_recorded(void *context, const struct roce_message *m)
{
    (void)context;
    assert_true(!m->with_imm || m->imm == (m->write ? 0xf0debc9a : 0x78563412));
    delivered++;
}

static void none(void *context, const struct roce_request *r, enum roce_status status)
{
    (void)context, (void)r, (void)status;
}

static const struct roce_calls recorded = {.complete = none,
                                           .check = check_recorded,
                                           .write = write_recorded,
                                           .read = read_recorded,
                                           .atomic = atomic_recorded,
                                           .receive_take = take_recorded,
                                           .receive_fill = fill_recorded,
                                           .receive_done = done_recorded};

static const struct roce_packet *next_answer(const struct frames *f, unsigned i)
{
    for (i++; i < f->n; i++)
        if (!from_requester(f, i))
            return &f->frame[i].packet;
    return NULL;
}

static struct roce_endpoint *open_responder(const struct frames *f)
{
    const struct roce_packet *answer = next_answer(f, 0);
    struct roce_attributes a = {.transport = f->frame[0].packet.opcode >> 5,
                                .qpn = f->frame[0].packet.dest_qpn,
                                .dest_qpn = answer ? answer->dest_qpn : 0,
                                .receive_psn = f->frame[0].packet.psn,
                                .path_mtu = 1024,
                                .pkey = 0xffff,
                                .qkey = 0x11111111,
                                .access = 7,
                                .min_rnr_timer = 16,
                                .max_dest_rd_atomic = 8};
    struct roce_endpoint *e = roce_open(&a, &recorded, NULL);

    assert_non_null(e);
    roce_ready_to_receive(e, &a);
    return e;
}

/* Passes the requests in; exactly the recorded answers must come out, in this order. The recording
 * has `skip` frames that were lost after it was made. */
static void answer_as_recorded(const char *name, unsigned skip, unsigned frames)
{
    static struct frames f;
    struct roce_endpoint *e;
    const struct roce_request *of;
    uint8_t b[ROCE_PACKET_MAX];
    struct roce_packet p;
    size_t n;

    frames_load(&f, name);
    e = open_responder(&f);
    delivered = 0;
    for (unsigned i = 0; i < f.n && i < frames; i++) {
        coming = from_requester(&f, i) ? next_answer(&f, i) : &f.frame[i].packet;
        if (from_requester(&f, i)) {
            if (i >= skip)
                roce_input(e, 0, &f.frame[i].packet, false);
            continue;
        }
        n = roce_output(e, 0, b, &of);
        assert_int_equal(roce_packet_parse(b, n, &p), ROCE_GOOD);
        same(&p, coming);
    }
    assert_int_equal(roce_output(e, 0, b, &of), 0);
    roce_close(e);
    frames_free(&f);
}

/* The key of the first write or read of a recording. */
static uint32_t key_of(const char *name)
{
    static struct frames f;
    uint32_t key = 0;

    frames_load(&f, name);
    for (unsigned i = 0; i < f.n && key == 0; i++)
        if (f.frame[i].packet.headers & (ROCE_HAS_RETH | ROCE_HAS_ATOMICETH))
            key = f.frame[i].packet.rkey;
    frames_free(&f);
    return key;
}

static void answers_are_the_kernels(void **unused)
{
    region_end = UINT64_MAX;
    right_key = key_of("ipv4-rc");
    answer_as_recorded("ipv4-rc", 0, frames_max);
    assert_int_equal(delivered, 13); /* 8 sends, 4 writes with immediate, the one not ready */
    right_key = key_of("ipv6-atomic_bw");
    answer_as_recorded("ipv6-atomic_bw", 0, frames_max);
    answer_as_recorded("ipv6-lossy", 1, 8); /* until the other side begins to send too */
    assert_int_equal(delivered, 1);
}

static void refusals_are_the_kernels(void **unused)
{
    right_key = 0;
    answer_as_recorded("ipv6-bad_key", 0, frames_max);
    answer_as_recorded("ipv6-no_right", 0, frames_max);
    right_key = key_of("ipv4-too_long");
    region_end = 0;
    answer_as_recorded("ipv4-too_long", 0, frames_max);
}

static void unreliable_ones_arrive(void **unused)
{
    region_end = UINT64_MAX;
    right_key = key_of("ipv6-uc");
    answer_as_recorded("ipv6-uc", 0, frames_max);
    assert_int_equal(delivered, 12);
    answer_as_recorded("ipv4-ud", 0, frames_max);
    assert_int_equal(delivered, 2);
    answer_as_recorded("ipv6-ud", 0, frames_max);
    assert_int_equal(delivered, 2);
}

/* ---- as the requester ---- */

static unsigned completed;

static enum roce_status fetch_recorded(void *context, const struct roce_request *r, uint32_t offset,
                                       void *to, uint32_t length)
{
    const struct frames *f = context;
    const struct roce_frame *g = &f->frame[r->id];

    /* The packets of a message stand one after the other. */
    for (; offset >= 1024; offset -= 1024)
        g++;
    assert_int_equal(g->packet.payload_length, length);
    memcpy(to, g->packet.payload, length);
    return ROCE_SUCCESS;
}

static enum roce_status store_recorded(void *context, const struct roce_request *r, uint32_t offset,
                                       const void *from, uint32_t length)
{
    (void)context, (void)r, (void)offset, (void)from, (void)length;
    return ROCE_SUCCESS;
}

static void complete_recorded(void *context, const struct roce_request *r, enum roce_status status)
{
    (void)context, (void)r;
    assert_int_equal(status, ROCE_SUCCESS);
    completed++;
}

/* The request whose first packet this is. */
static struct roce_request request_of(const struct frames *f, unsigned i)
{
    const struct roce_packet *p = &f->frame[i].packet;
    struct roce_request r = {.id = i, .rkey = p->rkey, .va = p->va, .length = p->dma_length};
    const struct roce_packet *last = p;

    switch (roce_opcode(p->opcode).kind) {
    case ROCE_KIND_READ:
        r.kind = ROCE_DO_READ;
        return r;
    case ROCE_KIND_ATOMIC:
        r.kind = (p->opcode & 31) == ROCE_FETCH_ADD ? ROCE_DO_FETCH_ADD : ROCE_DO_COMPARE_SWAP;
        r.length = 8;
        r.swap_add = p->swap_add;
        r.compare = p->compare;
        return r;
    case ROCE_KIND_WRITE:
        r.kind = ROCE_DO_WRITE;
        break;
    default:
        r.kind = ROCE_DO_SEND;
        r.length = p->payload_length;
        for (unsigned k = i; !roce_opcode(f->frame[k].packet.opcode).last; k++)
            r.length += f->frame[k + 1].packet.payload_length;
    }
    for (unsigned k = i; !roce_opcode(last->opcode).last; last = &f->frame[++k].packet)
        continue;
    if (last->headers & ROCE_HAS_IMM) {
        r.flags |= ROCE_WITH_IMM;
        r.imm = last->imm;
    }
    if (last->solicited)
        r.flags |= ROCE_SOLICITED;
    return r;
}

static void requests_are_the_kernels(void **unused)
{
    static const struct roce_calls calls = {
        .fetch = fetch_recorded, .store = store_recorded, .complete = complete_recorded};
    static struct frames f;
    struct roce_attributes a = {.transport = ROCE_RC,
                                .path_mtu = 1024,
                                .pkey = 0xffff,
                                .timeout = 14,
                                .retry_count = 6,
                                .rnr_retry = 7,
                                .max_rd_atomic = 8};
    struct roce_endpoint *e;
    roce_time now = 0;
    unsigned posted = 0;

    frames_load(&f, "ipv4-rc");
    a.qpn = next_answer(&f, 0)->dest_qpn;
    a.dest_qpn = f.frame[0].packet.dest_qpn;
    a.send_psn = f.frame[0].packet.psn;
    e = roce_open(&a, &calls, &f);
    assert_non_null(e);
    roce_ready_to_receive(e, &a);
    roce_ready_to_send(e, &a);
    for (unsigned i = 0; i < f.n; i++, now += 1000) {
        const struct roce_packet *p = &f.frame[i].packet;
        const struct roce_request *of;
        uint8_t b[ROCE_PACKET_MAX];
        struct roce_packet ours;
        size_t n;

        if (!from_requester(&f, i)) {
            roce_input(e, now, p, false);
            continue;
        }
        if (roce_opcode(p->opcode).first && roce_posted(e) == 0) {
            struct roce_request r = request_of(&f, i);

            assert_int_equal(roce_post(e, &r), 0);
            posted++;
        }
        while ((n = roce_output(e, now, b, &of)) == 0) { /* the receiver was not ready */
            assert_true(roce_deadline(e) > now && roce_deadline(e) != ROCE_NEVER);
            now = roce_deadline(e);
        }
        assert_int_equal(roce_packet_parse(b, n, &ours), ROCE_GOOD);
        same(&ours, p);
    }
    assert_int_equal(completed, posted);
    assert_int_equal(posted, 16 + 3 + 2 + 1);
    assert_int_equal(roce_counters(e)->timeouts, 0);
    roce_close(e);
    frames_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_kernels),
        cmocka_unit_test(refusals_are_the_kernels),
        cmocka_unit_test(unreliable_ones_arrive),
        cmocka_unit_test(requests_are_the_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
