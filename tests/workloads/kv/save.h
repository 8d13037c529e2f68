/* SPDX-License-Identifier: BSD-3-Clause */
/* A store as a file, and back. The file is accepted only if it is complete: it ends with a checksum
 * over the rest, and its header (servers, sizes, byte order) must match this job. */
#ifndef KV_SAVE_H
#define KV_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store.h"

/* Both return false with one line in `why`; then no file is left under that name, and the store is
 * unchanged, unless the store itself refused a load. */
bool kv_save(const struct kv_store *store, const char *path, uint32_t server, uint32_t servers,
             char *why, size_t size);

/* Whether it is a file of that server, of the same number of servers, with keys of this length,
 * from a machine of this byte order. Checks its head only; otherwise one line in `why`. */
bool kv_load_fits(const char *path, uint32_t server, uint32_t servers, char *why, size_t size);

bool kv_load(struct kv_store *store, const char *path, uint32_t server, uint32_t servers, char *why,
             size_t size);

/* CRC-64/XZ of more bytes; begin with 0. */
uint64_t kv_crc64(uint64_t crc, const void *data, size_t size);

#endif
