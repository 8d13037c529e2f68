/* SPDX-License-Identifier: BSD-3-Clause */
/* See record.h. Owns the layout of this run. */
#include "config.h"

#include <string.h>

#include "record.h"
#include "store.h"

struct kv_layout kv_layout = {.at_key = kv_at_mark + kv_key_usual,
                              .at_seq = kv_at_mark + kv_key_usual + 4,
                              .at_len = kv_key_usual + kv_header_rest,
                              .get_image = kv_at_mark + kv_key_usual + 4,
                              .header_image = kv_key_usual + kv_header_rest};

void kv_layout_set(size_t key_size, bool compat)
{
    kv_key_size = key_size;
    kv_key_marked = compat;
    kv_layout.compat = compat;
    kv_layout.at_key = compat ? kv_key_usual : kv_at_mark + key_size;
    kv_layout.at_seq = compat ? 0 : kv_layout.at_key + 4;
    kv_layout.at_len = compat ? kv_compat_slot : kv_layout.at_seq + 2;
    kv_layout.get_image = compat ? kv_key_usual : kv_layout.at_seq;
    kv_layout.header_image = kv_layout.at_len;
}

void kv_record_write(char *end, enum kv_op op, uint16_t len, uint32_t seq, const struct kv_key *key,
                     uint8_t mark)
{
    uint16_t length = op == kv_delete ? (uint16_t)kv_len_delete : len;
    if (op != kv_get)
        memcpy(end - kv_layout.at_len, &length, sizeof(length));
    memcpy(end - kv_layout.at_key, key, kv_key_size);
    if (kv_layout.compat)
        return;
    memcpy(end - kv_layout.at_seq, &seq, sizeof(seq));
    end[-kv_at_mark] = (char)mark;
}

bool kv_record_read(const char *end, size_t value_max, struct kv_request *request)
{
    memcpy(&request->len, end - kv_layout.at_len, sizeof(request->len));
    if (!kv_layout.compat)
        memcpy(&request->seq, end - kv_layout.at_seq, sizeof(request->seq));
    request->key = kv_key_at(end - kv_layout.at_key);
    request->op = request->len == 0 ? kv_get : (request->len == kv_len_delete ? kv_delete : kv_put);
    if (request->op == kv_delete)
        request->len = 0;
    request->value = kv_record_value((char *)(uintptr_t)end, request->len);
    return request->len <= value_max;
}

void kv_record_clear(char *end, bool mark, bool len)
{
    if (mark)
        end[-kv_at_mark] = 0;
    if (len)
        memset(end - kv_layout.at_len, 0, sizeof(uint16_t));
}

static size_t write_compat(char *end, enum kv_op op, unsigned status, const void *value, size_t len)
{
    uint16_t length = (uint16_t)len;
    if (op != kv_get) {
        end[-1] = (char)status;
        return 1;
    }
    memset(end - kv_compat_value, 0, kv_compat_value);
    if (len)
        memcpy(end - kv_compat_value, value, len);
    memcpy(end - kv_compat_answer, &length, sizeof(length));
    return kv_compat_answer;
}

size_t kv_answer_write(char *end, enum kv_op op, uint32_t seq, unsigned status, const void *value,
                       size_t len, uint8_t mark)
{
    uint16_t length = (uint16_t)len;
    if (kv_layout.compat)
        return write_compat(end, op, status, value, len);
    if (len)
        memcpy(end - kv_answer_image - len, value, len);
    memcpy(end - 8, &length, sizeof(length));
    end[-6] = (char)status;
    memcpy(end - 5, &seq, sizeof(seq));
    end[-kv_at_mark] = (char)mark;
    return kv_answer_image + len;
}

static bool read_compat(const char *end, size_t size, struct kv_answer *answer)
{
    uint16_t length = 0;
    *answer = (struct kv_answer){answer->seq, (unsigned char)end[-1], NULL, 0};
    if (size == 1)
        return answer->status <= kv_full;
    if (size != kv_compat_answer)
        return false;
    memcpy(&length, end - kv_compat_answer, sizeof(length));
    answer->status = length ? kv_ok : kv_missing;
    answer->value = end - kv_compat_value;
    answer->len = length;
    return length <= kv_compat_value;
}

bool kv_answer_read(const char *end, size_t most, struct kv_answer *answer)
{
    uint16_t length = 0;
    if (kv_layout.compat)
        return read_compat(end, most, answer);
    if (most < kv_answer_image)
        return false;
    memcpy(&length, end - 8, sizeof(length));
    memcpy(&answer->seq, end - 5, sizeof(answer->seq));
    answer->status = (unsigned char)end[-6];
    answer->len = length;
    answer->value = end - kv_answer_image - length;
    return length <= kv_value_max && kv_answer_image + (size_t)length <= most &&
           answer->status <= kv_full;
}
