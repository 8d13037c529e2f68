/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads of fences and direct modex; see exchange.h. */
#include "config.h"

#include "exchange.h"

bool exchange_unpack_fence(const uint8_t *payload, size_t length, struct exchange_fence *f)
{
    struct unpack u = {payload, payload + length, false};

    f->status = unpack_number(&u);
    f->name = u.at;
    f->number = unpack_number(&u);
    f->count = unpack_number(&u);
    f->ranks = unpack_bytes(&u, f->count == EXCHANGE_ALL ? 0 : (size_t)f->count * 4);
    if (u.bad)
        return false;
    f->name_length = (size_t)(u.at - f->name);
    f->data = u.at;
    f->length = (size_t)(u.end - u.at);
    return true;
}

bool exchange_unpack_reply(const uint8_t *payload, size_t length, struct exchange_reply *r)
{
    struct unpack u = {payload, payload + length, false};

    r->id = unpack_number(&u);
    r->host = unpack_number(&u);
    r->status = unpack_number(&u);
    r->data = u.at;
    r->length = (size_t)(u.end - u.at);
    return !u.bad;
}

void exchange_pack_name(struct bytes *b, uint32_t number, uint32_t count, const uint32_t *ranks)
{
    pack_number(b, number);
    pack_number(b, count);
    for (uint32_t i = 0; count != EXCHANGE_ALL && i < count; i++)
        pack_number(b, ranks[i]);
}
