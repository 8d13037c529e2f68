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

#include "base/sha256.h"

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

static uint32_t get32(struct tk_mcsw_frame *f)
{
    return (uint32_t)tk_mcsw_get(f, 4);
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

void tk_mcsw_put_member(struct tk_mcsw_frame *f, const struct tk_mcsw_member *m)
{
    tk_mcsw_put(f, m->rank, 4);
    tk_mcsw_put(f, m->plane, 4);
    tk_mcsw_put(f, m->mtu, 4);
    tk_mcsw_put_bytes(f, m->gid, sizeof(m->gid));
    tk_mcsw_put_bytes(f, m->mac, sizeof(m->mac));
    tk_mcsw_put(f, m->sqpn, 4);
    tk_mcsw_put(f, m->sqpsn, 4);
    tk_mcsw_put(f, m->rqpn, 4);
    tk_mcsw_put(f, m->rqpsn, 4);
    tk_mcsw_put(f, m->base, 8);
    tk_mcsw_put(f, m->rkey, 4);
}

void tk_mcsw_get_member(struct tk_mcsw_frame *f, struct tk_mcsw_member *m)
{
    m->rank = get32(f);
    m->plane = get32(f);
    m->mtu = get32(f);
    tk_mcsw_get_bytes(f, m->gid, sizeof(m->gid));
    tk_mcsw_get_bytes(f, m->mac, sizeof(m->mac));
    m->sqpn = get32(f);
    m->sqpsn = get32(f);
    m->rqpn = get32(f);
    m->rqpsn = get32(f);
    m->base = tk_mcsw_get(f, 8);
    m->rkey = get32(f);
}

void tk_mcsw_put_info(struct tk_mcsw_frame *f, const struct tk_mcsw_info *i)
{
    tk_mcsw_put(f, i->version, 4);
    tk_mcsw_put(f, i->boot, 4);
    tk_mcsw_put(f, i->planes, 4);
    tk_mcsw_put(f, i->members, 4);
    tk_mcsw_put(f, i->groups, 4);
    tk_mcsw_put(f, i->mtu, 4);
    tk_mcsw_put(f, i->lease, 4);
    tk_mcsw_put_bytes(f, i->vip, sizeof(i->vip));
}

void tk_mcsw_get_info(struct tk_mcsw_frame *f, struct tk_mcsw_info *i)
{
    i->version = get32(f);
    i->boot = get32(f);
    i->planes = get32(f);
    i->members = get32(f);
    i->groups = get32(f);
    i->mtu = get32(f);
    i->lease = get32(f);
    tk_mcsw_get_bytes(f, i->vip, sizeof(i->vip));
}

void tk_mcsw_put_place(struct tk_mcsw_frame *f, const struct tk_mcsw_place *p)
{
    tk_mcsw_put(f, p->group, 4);
    tk_mcsw_put(f, p->rank, 4);
    tk_mcsw_put(f, p->members, 4);
    tk_mcsw_put(f, p->vrqpn, 4);
    tk_mcsw_put(f, p->vsqpn, 4);
    tk_mcsw_put(f, p->key, 8);
    tk_mcsw_put(f, p->leaves, 4);
    tk_mcsw_put(f, p->leaf_group, 4);
}

void tk_mcsw_get_place(struct tk_mcsw_frame *f, struct tk_mcsw_place *p)
{
    p->group = get32(f);
    p->rank = get32(f);
    p->members = get32(f);
    p->vrqpn = get32(f);
    p->vsqpn = get32(f);
    p->key = tk_mcsw_get(f, 8);
    p->leaves = get32(f);
    p->leaf_group = get32(f);
}

void tk_mcsw_put_header(uint8_t to[TK_MCSW_HEADER], uint32_t flags)
{
    struct tk_mcsw_frame f = {to, to + TK_MCSW_HEADER};

    tk_mcsw_put_bytes(&f, TK_MCSW_MAGIC, 8);
    tk_mcsw_put(&f, TK_MCSW_VERSION, 4);
    tk_mcsw_put(&f, flags, 4);
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

bool tk_mcsw_key_read(const char *path, uint8_t key[TK_MCSW_KEY], char *why, size_t room)
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
        snprintf(why, room, "the key %s cannot be read: %s", path, strerror(error));
    else if (!good)
        snprintf(why, room, "%s is no key: one line of 64 hexadecimal digits", path);
    return good;
}
