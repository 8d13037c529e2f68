/* SPDX-License-Identifier: BSD-3-Clause */
/* The first message of a connection; see handshake.h. The order of its fields: name of the security
 * module, credential with its length in front, kind of process, namespace and rank, version of
 * libpmix, and from 2.1 on names of the modules for packing and storage, with the kind of buffer
 * between them. What follows is for tools. */
#include "config.h"

#include "handshake.h"

#include <arpa/inet.h>
#include <string.h>

enum { SIMPLE_CLIENT = 0, BUFFER_PLAIN = 1, BUFFER_DESCRIBED = 2 };

struct handshake_reader {
    const uint8_t *at;
    size_t left;
    bool is_short; /* a field did not end inside of the message */
};

static const uint8_t *take_bytes(struct handshake_reader *r, size_t count)
{
    const uint8_t *bytes = r->at;

    if (r->is_short || count > r->left) {
        r->is_short = true;
        return NULL;
    }
    r->at += count;
    r->left -= count;
    return bytes;
}

static uint32_t take_number(struct handshake_reader *r)
{
    const uint8_t *bytes = take_bytes(r, sizeof(uint32_t));
    uint32_t number = 0;

    if (bytes)
        memcpy(&number, bytes, sizeof(number));
    return ntohl(number);
}

static uint8_t take_byte(struct handshake_reader *r)
{
    const uint8_t *byte = take_bytes(r, 1);
    return byte ? *byte : 0;
}

/* A string with its terminator; "" if the terminator is missing: "" is not valid for any field. */
static const char *take_text(struct handshake_reader *r)
{
    const uint8_t *end = r->is_short ? NULL : memchr(r->at, 0, r->left);

    if (!end) {
        r->is_short = true;
        return "";
    }
    return (const char *)take_bytes(r, (size_t)(end - r->at) + 1);
}

static bool is_listed(const char *name, size_t length, const char *list)
{
    while (list && length) {
        size_t entry = strcspn(list, ",");
        if (entry == length && !memcmp(list, name, length))
            return true;
        list = list[entry] ? list + entry + 1 : NULL;
    }
    return false;
}

/* Each name of one list is in the other. */
static bool are_listed(const char *names, const char *list)
{
    for (;;) {
        size_t length = strcspn(names, ",");
        if (!is_listed(names, length, list))
            return false;
        if (!names[length])
            return true;
        names += length + 1;
    }
}

/* Skips one to three digits and returns what follows them; NULL if there is no digit. */
static const char *skip_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits >= 1 && digits <= 3 ? text + digits : NULL;
}

/* Three numbers: libpmix skips one byte behind each without checking it. */
static bool is_version(const char *text)
{
    for (int i = 0; i < 2; i++) {
        text = skip_number(text);
        if (!text || *text++ != '.')
            return false;
    }
    return skip_number(text);
}

/* The modules are called after versions: v12, v20, v21, v3, v4, v41. */
static bool is_packing(const char *name)
{
    const char *end = name[0] == 'v' ? skip_number(name + 1) : NULL;
    return end && !*end;
}

/* The credential of the module that every installation has: user and group, in this machine's byte
 * order. */
static bool is_credential(const struct handshake_rules *rules, const char *security,
                          const uint8_t *credential, size_t length)
{
    uid_t uid;
    gid_t gid;

    if (strcmp(security, "native") != 0)
        return true;
    if (length != sizeof(uid) + sizeof(gid))
        return false;
    memcpy(&uid, credential, sizeof(uid));
    memcpy(&gid, credential + sizeof(uid), sizeof(gid));
    return uid == rules->uid && gid == rules->gid;
}

static const char *modules_flaw(const struct handshake_rules *rules, struct handshake_reader *r)
{
    const char *packing = take_text(r);
    uint8_t buffer = take_byte(r);
    const char *storage = take_text(r);

    if (r->is_short)
        return "a field does not end inside of the message";
    if (!is_packing(packing))
        return "no name of a module for packing";
    if (buffer != BUFFER_PLAIN && buffer != BUFFER_DESCRIBED)
        return "an unknown kind of buffer";
    if (!are_listed(storage, rules->storage))
        return "a module for storage that this job does not use";
    return NULL;
}

size_t handshake_length(const uint8_t header[HANDSHAKE_HEADER])
{
    uint32_t length;

    memcpy(&length, header + 8, sizeof(length)); /* as this machine writes it */
    return length <= HANDSHAKE_MAX ? length : 0;
}

const char *handshake_flaw(const struct handshake_rules *rules, const uint8_t *message,
                           size_t length)
{
    struct handshake_reader r = {.at = message, .left = length};
    const char *security = take_text(&r);
    size_t size = take_number(&r);
    const uint8_t *credential = take_bytes(&r, size);
    uint8_t kind = take_byte(&r);
    const char *nspace = take_text(&r);
    uint32_t rank = take_number(&r);
    const char *version = take_text(&r);

    if (r.is_short)
        return "a field does not end inside of the message";
    if (!is_listed(security, strlen(security), rules->security))
        return "a module for security that this job does not use";
    if (!is_credential(rules, security, credential, size))
        return "a credential of another user or group";
    if (kind != SIMPLE_CLIENT)
        return "not a process of the job but a tool";
    if (strcmp(nspace, rules->nspace) != 0)
        return "the namespace of another job";
    if (rank < rules->first || rank - rules->first >= rules->count)
        return "a rank that is not on this host";
    if (!is_version(version))
        return "no version of libpmix";
    if (!strncmp(version, "2.0.", 4)) /* its message ends here */
        return NULL;
    return modules_flaw(rules, &r);
}
