/* SPDX-License-Identifier: BSD-3-Clause */
/* See record.h. Owns nothing. */
#include "config.h"

#include <string.h>

#include "record.h"
#include "store.h"

void kv_record_write(char *end, enum kv_op op, uint16_t len, uint32_t seq, const struct kv_key *key,
                     uint8_t mark)
{
    uint16_t length = op == kv_delete ? (uint16_t)kv_len_delete : len;
    if (op != kv_get)
        memcpy(end - kv_at_len, &length, sizeof(length));
    memcpy(end - kv_at_seq, &seq, sizeof(seq));
    memcpy(end - kv_at_key, key, kv_key_size);
    end[-kv_at_mark] = (char)mark;
}

bool kv_record_read(const char *end, size_t value_most, struct kv_request *request)
{
    memcpy(&request->len, end - kv_at_len, sizeof(request->len));
    memcpy(&request->seq, end - kv_at_seq, sizeof(request->seq));
    memcpy(&request->key, end - kv_at_key, kv_key_size);
    request->op = request->len == 0 ? kv_get : (request->len == kv_len_delete ? kv_delete : kv_put);
    if (request->op == kv_delete)
        request->len = 0;
    request->value = end - kv_at_len - request->len;
    return request->len <= value_most;
}

void kv_record_clear(char *end, bool mark, bool len)
{
    if (mark)
        end[-kv_at_mark] = 0;
    if (len)
        memset(end - kv_at_len, 0, sizeof(uint16_t));
}

size_t kv_answer_write(char *end, uint32_t seq, unsigned status, const void *value, size_t len,
                       uint8_t mark)
{
    uint16_t length = (uint16_t)len;
    if (len)
        memcpy(end - kv_answer_image - len, value, len);
    memcpy(end - 8, &length, sizeof(length));
    end[-6] = (char)status;
    memcpy(end - 5, &seq, sizeof(seq));
    end[-kv_at_mark] = (char)mark;
    return kv_answer_image + len;
}

bool kv_answer_read(const char *end, size_t most, struct kv_answer *answer)
{
    uint16_t length = 0;
    if (most < kv_answer_image)
        return false;
    memcpy(&length, end - 8, sizeof(length));
    memcpy(&answer->seq, end - 5, sizeof(answer->seq));
    answer->status = (unsigned char)end[-6];
    answer->len = length;
    answer->value = end - kv_answer_image - length;
    return length <= kv_value_most && kv_answer_image + (size_t)length <= most &&
           answer->status <= kv_full;
}
