/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See rig.h. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

static enum roce_status fetch(void *context, const struct roce_request *q, uint32_t offset,
                              void *to, uint32_t length)
{
    struct rig *r = context;

    assert_true(offset + length <= q->length);
    memcpy(to, r->buffer + offset, length);
    return r->fetch;
}

static enum roce_status store(void *context, const struct roce_request *q, uint32_t offset,
                              const void *from, uint32_t length)
{
    struct rig *r = context;

    assert_true(offset + length <= q->length);
    memcpy(r->buffer + offset, from, length);
    return r->fetch;
}

static void complete(void *context, const struct roce_request *q, enum roce_status status)
{
    struct rig *r = context;

    assert_true(r->completions < rig_log);
    r->completion[r->completions++] = (struct rig_completion){q->id, status};
}

static enum roce_status reach(struct rig *r, const struct roce_reach *a)
{
    if (r->check != ROCE_SUCCESS)
        return r->check;
    return a->rkey == rig_key && a->va <= rig_bytes && a->length <= rig_bytes - a->va
               ? ROCE_SUCCESS
               : ROCE_REMOTE_ACCESS;
}

static enum roce_status check(void *context, const struct roce_reach *a)
{
    struct rig *r = context;

    r->checks++;
    return reach(r, a);
}

static enum roce_status write_memory(void *context, const struct roce_reach *a, const void *from)
{
    struct rig *r = context;
    enum roce_status status = reach(r, a);

    if (status == ROCE_SUCCESS)
        memcpy(r->memory + a->va, from, a->length);
    return status;
}

static enum roce_status read_memory(void *context, const struct roce_reach *a, void *to)
{
    struct rig *r = context;
    enum roce_status status = reach(r, a);

    if (status == ROCE_SUCCESS)
        memcpy(to, r->memory + a->va, a->length);
    return status;
}

static enum roce_status atomic(void *context, const struct roce_reach *a, bool compare_swap,
                               uint64_t swap_add, uint64_t compare, uint64_t *original)
{
    struct rig *r = context;
    enum roce_status status = reach(r, a);
    uint64_t value;

    if (status != ROCE_SUCCESS)
        return status;
    r->atomics++;
    memcpy(original, r->memory + a->va, sizeof *original);
    value = compare_swap ? (*original == compare ? swap_add : *original) : *original + swap_add;
    memcpy(r->memory + a->va, &value, sizeof value);
    return ROCE_SUCCESS;
}

static enum roce_status receive_take(void *context, uint32_t srqn)
{
    struct rig *r = context;

    (void)srqn;
    assert_int_equal(r->taken, 0);
    if (r->receives == 0)
        return ROCE_NOT_READY;
    r->receives--;
    r->taken = 1;
    return ROCE_SUCCESS;
}

static enum roce_status receive_fill(void *context, uint32_t offset, const void *from,
                                     uint32_t length)
{
    struct rig *r = context;

    assert_int_equal(r->taken, 1);
    if (r->fill != ROCE_SUCCESS)
        return r->fill;
    if (offset + length > r->receive_bytes)
        return ROCE_REMOTE_INVALID;
    memcpy(r->receive + offset, from, length);
    return ROCE_SUCCESS;
}

static void receive_done(void *context, const struct roce_message *m)
{
    struct rig *r = context;

    assert_int_equal(r->taken, 1);
    r->taken = 0;
    r->messages++;
    r->message = *m;
}

static void event(void *context, enum roce_event what)
{
    struct rig *r = context;

    assert_true(r->events < rig_log);
    r->event[r->events++] = what;
}

static const struct roce_calls calls = {fetch,        store,        complete, check,
                                        write_memory, read_memory,  atomic,   receive_take,
                                        receive_fill, receive_done, event};

struct rig *rig_new(void)
{
    struct rig *r = calloc(1, sizeof *r);

    assert_non_null(r);
    r->now = 1000;
    r->receive_bytes = rig_bytes;
    r->a = (struct roce_attributes){
        .window_first = UINT32_MAX, /* all of it at once */
        .transport = ROCE_RC,
        .qpn = rig_qpn,
        .dest_qpn = rig_peer,
        .send_psn = 0xfffffe,
        .receive_psn = 0xfffffe,
        .path_mtu = 1024,
        .pkey = 0xffff,
        .qkey = 0x11111111,
        .access = ROCE_ACCESS_WRITE | ROCE_ACCESS_READ | ROCE_ACCESS_ATOMIC,
        .timeout = 14,
        .retry_count = 3,
        .rnr_retry = 2,
        .min_rnr_timer = 12,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
    };
    for (unsigned i = 0; i < rig_bytes; i++)
        r->buffer[i] = (uint8_t)(i * 7 + (i >> 8));
    return r;
}

void rig_start(struct rig *r)
{
    r->e = roce_open(&r->a, &calls, r);
    assert_non_null(r->e);
    roce_ready_to_receive(r->e, &r->a);
    roce_ready_to_send(r->e, &r->a);
}

void rig_free(struct rig *r)
{
    roce_close(r->e);
    free(r);
}

bool rig_out(struct rig *r)
{
    bool wants = roce_wants_output(r->e, r->now);
    size_t n = roce_output(r->e, r->now, r->bytes, &r->of);

    if (n == 0)
        return false;
    assert_true(wants);
    assert_int_equal(roce_packet_parse(r->bytes, n, &r->out), ROCE_GOOD);
    return true;
}

void rig_expect(struct rig *r, unsigned operation, uint32_t psn)
{
    assert_true(rig_out(r));
    assert_int_equal(r->out.opcode, roce_opcode_of(r->a.transport, operation));
    assert_int_equal(r->out.psn, psn & 0xffffff);
    assert_int_equal(r->out.dest_qpn, r->a.dest_qpn);
}

void rig_silent(struct rig *r)
{
    assert_false(rig_out(r));
}

unsigned rig_drain(struct rig *r)
{
    unsigned n = 0;

    while (rig_out(r))
        n++;
    return n;
}

struct roce_packet rig_packet(const struct rig *r, unsigned operation, uint32_t psn)
{
    return (struct roce_packet){.opcode = roce_opcode_of(r->a.transport, operation),
                                .headers =
                                    roce_opcode(roce_opcode_of(r->a.transport, operation)).headers,
                                .psn = psn & 0xffffff,
                                .pkey = 0xffff,
                                .dest_qpn = rig_qpn,
                                .rkey = rig_key,
                                .payload = r->buffer};
}

void rig_in(struct rig *r, const struct roce_packet *p)
{
    roce_input(r->e, r->now, p, false);
}

void rig_ack(struct rig *r, uint32_t psn, uint8_t syndrome)
{
    struct roce_packet p = rig_packet(r, ROCE_ACKNOWLEDGE, psn);

    p.syndrome = syndrome;
    rig_in(r, &p);
}

void rig_post(struct rig *r, enum roce_request_kind kind, uint32_t length, uint8_t flags)
{
    static uint64_t id;
    struct roce_request q = {.id = id++,
                             .kind = (uint8_t)kind,
                             .flags = flags,
                             .length = length,
                             .imm = 0xabcd1234,
                             .rkey = rig_key,
                             .swap_add = 5,
                             .dest_qpn = rig_peer,
                             .qkey = 0x11111111};

    assert_int_equal(roce_post(r->e, &q), 0);
}
