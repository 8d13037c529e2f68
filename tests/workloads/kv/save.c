/* SPDX-License-Identifier: BSD-3-Clause */
/* See save.h. Owns the file while it is written or read. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"
#include "save.h"

enum { format = 1, byte_order = 0x01020304 };

struct header {
    char magic[8];
    uint32_t order, format, server, servers, key_size, value_max;
    uint64_t entries, digest;
};

/* Of an entry; its key and its value follow. */
struct line {
    uint32_t len, zero;
};

static const char magic[8] = "tk-kv\r\n";

uint64_t kv_crc64(uint64_t crc, const void *data, size_t size)
{
    static uint64_t table[256];
    const unsigned char *at = data;
    if (!table[1])
        for (unsigned i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++)
                table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT64_C(0xc96c5795d7870f42) : 0);
        }
    crc = ~crc;
    for (size_t i = 0; i < size; i++)
        crc = table[(crc ^ at[i]) & 255] ^ crc >> 8;
    return ~crc;
}

/* ---- Saving */

struct saving {
    FILE *file;
    uint64_t crc;
};

static void put_bytes(struct saving *saving, const void *data, size_t size)
{
    saving->crc = kv_crc64(saving->crc, data, size);
    fwrite(data, 1, size, saving->file);
}

static void put_entry(void *arg, const struct kv_key *key, const char *value, size_t len)
{
    struct line line = {(uint32_t)len, 0};
    put_bytes(arg, &line, sizeof(line));
    put_bytes(arg, key, kv_key_size);
    put_bytes(arg, value, len);
}

static void put_all(struct saving *saving, const struct kv_store *store, uint32_t server,
                    uint32_t servers)
{
    struct header header = {.order = byte_order,
                            .format = format,
                            .server = server,
                            .servers = servers,
                            .key_size = (uint32_t)kv_key_size,
                            .value_max = kv_value_max,
                            .entries = kv_store_count(store).entries,
                            .digest = kv_store_digest(store)};
    memcpy(header.magic, magic, sizeof(magic));
    put_bytes(saving, &header, sizeof(header));
    kv_store_each(store, put_entry, saving);
    fwrite(&saving->crc, 1, sizeof(saving->crc), saving->file);
}

/* Written under another name until it is complete. */
bool kv_save(const struct kv_store *store, const char *path, uint32_t server, uint32_t servers,
             char *why, size_t size)
{
    char temporary[4096];
    struct saving saving = {NULL, 0};
    snprintf(temporary, sizeof(temporary), "%s.part", path);
    saving.file = fopen(temporary, "w");
    if (!saving.file) {
        snprintf(why, size, "%s can't be opened: %s", temporary, strerror(errno));
        return false;
    }
    put_all(&saving, store, server, servers);
    bool bad = ferror(saving.file);
    bad |= fclose(saving.file) != 0;
    if (!bad && rename(temporary, path) == 0)
        return true;
    snprintf(why, size, "%s can't be written: %s", path, strerror(errno));
    unlink(temporary);
    return false;
}

/* ---- Loading */

static char *read_file(const char *path, size_t *length, char *why, size_t size)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    long end = -1;
    if (file && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) >= 0) {
        rewind(file);
        text = malloc((size_t)end + 1);
        *length = text ? fread(text, 1, (size_t)end, file) : 0;
    }
    if (!text || *length != (size_t)end) {
        snprintf(why, size, "%s can't be read: %s", path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

/* The error in a file's header; NULL: none. */
static const char *look_at_head(const struct header *head, uint32_t server, uint32_t servers)
{
    const struct header header = *head;
    if (memcmp(header.magic, magic, sizeof(magic)))
        return "was not saved by kv";
    if (header.order != byte_order)
        return "was saved by a machine with another byte order";
    if (header.format != format || header.value_max > kv_value_max)
        return "has another format";
    if (header.key_size != kv_key_size)
        return "was saved with keys of another length";
    if (header.servers != servers)
        return "was saved by another number of servers";
    return header.server != server ? "was saved by another server" : NULL;
}

/* ... with the file as a whole. */
static const char *look_at(const char *text, size_t length, uint32_t server, uint32_t servers)
{
    struct header header;
    uint64_t crc;
    if (length < sizeof(header) + sizeof(crc))
        return "is too short";
    memcpy(&header, text, sizeof(header));
    memcpy(&crc, text + length - sizeof(crc), sizeof(crc));
    const char *wrong = look_at_head(&header, server, servers);
    if (!wrong && kv_crc64(0, text, length - sizeof(crc)) != crc)
        wrong = "is damaged: its checksum does not fit";
    return wrong;
}

bool kv_load_fits(const char *path, uint32_t server, uint32_t servers, char *why, size_t size)
{
    struct header header;
    FILE *file = fopen(path, "r");
    const char *wrong = file ? "is too short" : NULL;
    if (!file)
        snprintf(why, size, "%s can't be read: %s", path, strerror(errno));
    else if (fread(&header, sizeof(header), 1, file) == 1)
        wrong = look_at_head(&header, server, servers);
    if (wrong)
        snprintf(why, size, "%s %s", path, wrong);
    if (file)
        fclose(file);
    return file && !wrong;
}

/* Puts the entries in the order of the file. False if they do not match the header. */
static bool take_entries(struct kv_store *store, const char *text, size_t length,
                         const struct header *header)
{
    const char *at = text + sizeof(*header), *end = text + length - sizeof(uint64_t);
    for (uint64_t i = 0; i < header->entries; i++) {
        struct line line;
        if ((size_t)(end - at) < sizeof(line) + kv_key_size)
            return false;
        memcpy(&line, at, sizeof(line));
        struct kv_key key = kv_key_at(at + sizeof(line));
        at += sizeof(line) + kv_key_size;
        if (line.len > kv_value_max || (size_t)(end - at) < line.len ||
            kv_store_put(store, &key, kv_hash_of(&key), at, line.len) != kv_ok)
            return false;
        at += line.len;
    }
    return at == end && kv_store_digest(store) == header->digest;
}

bool kv_load(struct kv_store *store, const char *path, uint32_t server, uint32_t servers, char *why,
             size_t size)
{
    size_t length = 0;
    struct header header;
    char *text = read_file(path, &length, why, size);
    if (!text)
        return false;
    const char *wrong = look_at(text, length, server, servers);
    if (!wrong) {
        memcpy(&header, text, sizeof(header));
        if (!take_entries(store, text, length, &header))
            wrong = "holds entries that this store can't keep";
    }
    if (wrong)
        snprintf(why, size, "%s %s", path, wrong);
    free(text);
    return !wrong;
}
