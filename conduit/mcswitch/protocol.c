/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames and proofs of the protocol between members and the switch's controller, for both ends.
 * Owns nothing; pure but for reading a key's file. */
#include "config.h"

#include "mcswitch/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/sha256.h"

enum { member_bytes = 3 * 4 + 16 + 6 + 4 * 4 + 8 + 4 };

size_t tk_mcsw_body(unsigned type)
{
    switch (type) {
    case TK_MCSW_CREATE:
    case TK_MCSW_DESTROY:
    case TK_MCSW_CREATED:
    case TK_MCSW_REPAIRED:
    case TK_MCSW_MARKED:
    case TK_MCSW_LEFT:
    case TK_MCSW_DESTROYED:
        return 4;
    case TK_MCSW_PROBE:
        return 4; /* reserved, so that no request is empty */
    case TK_MCSW_JOIN:
        return 4 + member_bytes;
    case TK_MCSW_REPAIR:
        return 4 + 4 + member_bytes;
    case TK_MCSW_MARK:
    case TK_MCSW_LEAVE:
        return 8;
    case TK_MCSW_INFO:
        return 7 * 4 + TK_MCSW_PLANES * 2 * 16;
    case TK_MCSW_JOINED:
        return 7 * 4 + 8;
    case TK_MCSW_EVENT:
        return 3 * 4;
    default:
        return 0;
    }
}

void tk_mcsw_put_bytes(struct tk_mcsw_frame *f, const void *from, size_t bytes)
{
    if ((size_t)(f->end - f->at) < bytes)
        return;
    memcpy(f->at, from, bytes);
    f->at += bytes;
}

void tk_mcsw_get_bytes(struct tk_mcsw_frame *f, void *to, size_t bytes)
{
    memset(to, 0, bytes);
    if ((size_t)(f->end - f->at) < bytes)
        return;
    memcpy(to, f->at, bytes);
    f->at += bytes;
}

void tk_mcsw_put(struct tk_mcsw_frame *f, uint64_t value, unsigned bytes)
{
    uint8_t text[8];

    for (unsigned i = 0; i < bytes; i++)
        text[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    tk_mcsw_put_bytes(f, text, bytes);
}

uint64_t tk_mcsw_get(struct tk_mcsw_frame *f, unsigned bytes)
{
    uint8_t text[8];
    uint64_t value = 0;

    tk_mcsw_get_bytes(f, text, bytes);
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | text[i];
    return value;
}

struct tk_mcsw_frame tk_mcsw_begin(uint8_t out[TK_MCSW_FRAME_MAX], unsigned type)
{
    struct tk_mcsw_frame f = {out + 4, out + TK_MCSW_FRAME_MAX};

    tk_mcsw_put(&f, type, 2);
    return f;
}

size_t tk_mcsw_end(const struct tk_mcsw_frame *f, uint8_t out[TK_MCSW_FRAME_MAX])
{
    struct tk_mcsw_frame head = {out, out + 4};

    tk_mcsw_put(&head, (uint64_t)(f->at - out) - 4, 4);
    return (size_t)(f->at - out);
}

/* ---- structs, field by field ---- */

/* A number of 4 or 8 bytes, or raw bytes. Size 0 ends the list. */
struct field {
    uint16_t offset, size;
    bool is_number;
};
#define NUMBER(type, name)                                                                         \
    {                                                                                              \
        offsetof(struct type, name), sizeof(((struct type *)NULL)->name), true                     \
    }
#define BYTES(type, name)                                                                          \
    {                                                                                              \
        offsetof(struct type, name), sizeof(((struct type *)NULL)->name), false                    \
    }

static const struct field member_fields[] = {
    NUMBER(tk_mcsw_member, rank),  NUMBER(tk_mcsw_member, plane), NUMBER(tk_mcsw_member, mtu),
    BYTES(tk_mcsw_member, gid),    BYTES(tk_mcsw_member, mac),    NUMBER(tk_mcsw_member, sqpn),
    NUMBER(tk_mcsw_member, sqpsn), NUMBER(tk_mcsw_member, rqpn),  NUMBER(tk_mcsw_member, rqpsn),
    NUMBER(tk_mcsw_member, base),  NUMBER(tk_mcsw_member, rkey),  {0}};

static const struct field info_fields[] = {
    NUMBER(tk_mcsw_info, version), NUMBER(tk_mcsw_info, boot),   NUMBER(tk_mcsw_info, planes),
    NUMBER(tk_mcsw_info, members), NUMBER(tk_mcsw_info, groups), NUMBER(tk_mcsw_info, mtu),
    NUMBER(tk_mcsw_info, lease),   BYTES(tk_mcsw_info, vip),     {0}};

static const struct field place_fields[] = {NUMBER(tk_mcsw_place, group),
                                            NUMBER(tk_mcsw_place, rank),
                                            NUMBER(tk_mcsw_place, members),
                                            NUMBER(tk_mcsw_place, vrqpn),
                                            NUMBER(tk_mcsw_place, vsqpn),
                                            NUMBER(tk_mcsw_place, key),
                                            NUMBER(tk_mcsw_place, leaves),
                                            NUMBER(tk_mcsw_place, leaf_group),
                                            {0}};

static void put_fields(struct tk_mcsw_frame *f, const struct field *field, const void *object)
{
    for (; field->size; field++) {
        const char *at = (const char *)object + field->offset;
        uint64_t number = 0;
        uint32_t half;

        if (!field->is_number) {
            tk_mcsw_put_bytes(f, at, field->size);
            continue;
        }
        if (field->size == sizeof(half)) {
            memcpy(&half, at, sizeof(half));
            number = half;
        } else {
            memcpy(&number, at, sizeof(number));
        }
        tk_mcsw_put(f, number, field->size);
    }
}

static void get_fields(struct tk_mcsw_frame *f, const struct field *field, void *object)
{
    for (; field->size; field++) {
        char *at = (char *)object + field->offset;

        if (!field->is_number) {
            tk_mcsw_get_bytes(f, at, field->size);
            continue;
        }
        uint64_t number = tk_mcsw_get(f, field->size);
        uint32_t half = (uint32_t)number;
        memcpy(at, field->size == sizeof(half) ? (void *)&half : (void *)&number, field->size);
    }
}

void tk_mcsw_put_member(struct tk_mcsw_frame *f, const struct tk_mcsw_member *m)
{
    put_fields(f, member_fields, m);
}

void tk_mcsw_get_member(struct tk_mcsw_frame *f, struct tk_mcsw_member *m)
{
    get_fields(f, member_fields, m);
}

void tk_mcsw_put_info(struct tk_mcsw_frame *f, const struct tk_mcsw_info *i)
{
    put_fields(f, info_fields, i);
}

void tk_mcsw_get_info(struct tk_mcsw_frame *f, struct tk_mcsw_info *i)
{
    get_fields(f, info_fields, i);
}

void tk_mcsw_put_place(struct tk_mcsw_frame *f, const struct tk_mcsw_place *p)
{
    put_fields(f, place_fields, p);
}

void tk_mcsw_get_place(struct tk_mcsw_frame *f, struct tk_mcsw_place *p)
{
    get_fields(f, place_fields, p);
}

void tk_mcsw_put_header(uint8_t to[TK_MCSW_HEADER], uint32_t flags)
{
    struct tk_mcsw_frame f = {to, to + TK_MCSW_HEADER};

    tk_mcsw_put_bytes(&f, TK_MCSW_MAGIC, 8);
    tk_mcsw_put(&f, TK_MCSW_VERSION, 4);
    tk_mcsw_put(&f, flags, 4);
}

void tk_mcsw_put_refusal(uint8_t to[TK_MCSW_CODE], enum tk_mcsw_error error)
{
    struct tk_mcsw_frame f = {to, to + TK_MCSW_CODE};

    memset(to, 0, TK_MCSW_CODE);
    tk_mcsw_put_bytes(&f, TK_MCSW_MAGIC, 8);
    tk_mcsw_put(&f, error, 2);
}

void tk_mcsw_code(const uint8_t key[TK_MCSW_KEY], bool by_switch, const uint8_t *talk, size_t bytes,
                  uint8_t code[TK_MCSW_CODE])
{
    static const char roles[2][16] = {"mcswitch member", "mcswitch switch"};
    uint8_t text[sizeof(roles[0]) + TK_MCSW_TALK];

    memcpy(text, roles[by_switch], sizeof(roles[0]));
    memcpy(text + sizeof(roles[0]), talk, bytes);
    tk_sha256_hmac(key, TK_MCSW_KEY, text, sizeof(roles[0]) + bytes, code);
}

void tk_mcsw_derive(const uint8_t site[TK_MCSW_KEY], const uint8_t id[TK_MCSW_ID],
                    uint8_t key[TK_MCSW_KEY])
{
    static const char role[12] = "mcswitch job";
    uint8_t text[sizeof(role) + TK_MCSW_ID];

    memcpy(text, role, sizeof(role));
    memcpy(text + sizeof(role), id, TK_MCSW_ID);
    tk_sha256_hmac(site, TK_MCSW_KEY, text, sizeof(text), key);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c | 0x20) : NULL;

    return at ? (int)(at - digits) : -1;
}

static bool parse_key(const char *text, size_t length, uint8_t key[TK_MCSW_KEY])
{
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        length--;
    if (length != 2 * TK_MCSW_KEY)
        return false;
    for (size_t i = 0; i < TK_MCSW_KEY; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        key[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool tk_mcsw_key_read(const char *path, uint8_t key[TK_MCSW_KEY], char *why, size_t space)
{
    char text[2 * TK_MCSW_KEY + 8];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    int error = errno;
    bool good = n >= 0 && parse_key(text, (size_t)n, key);

    if (fd >= 0)
        close(fd);
    memset(text, 0, sizeof(text));
    if (n < 0)
        snprintf(why, space, "the key %s cannot be read: %s", path, strerror(error));
    else if (!good)
        snprintf(why, space, "%s is no key: one line of 64 hexadecimal digits", path);
    return good;
}
