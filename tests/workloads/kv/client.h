/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's knowledge of keys: the last version that it wrote, the versions of others that it has
 * seen, and hence the legal answers (K4, K5). For client.c and known.c. */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include "kv.h"

void kv_known_open(uint32_t loaded_version);
void kv_known_close(void);

/* Before a request leaves: its version and what its answer must at least be. */
void kv_known_issue(struct kv_pending *pending);

/* When its answer came. */
void kv_known_judge(const struct kv_pending *pending);

/* The number of a new key of this client; of an old key when there is no space for more. */
uint64_t kv_known_insert(uint64_t instead);

/* The number of the key that was put last. */
uint64_t kv_known_newest(void);

/* Some keys of others may be missing after all. */
void kv_known_doubt(void);

/* Collective: no reader has seen a version that its writer never wrote. */
void kv_known_reconcile(void);

#endif
