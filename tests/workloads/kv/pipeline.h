/* SPDX-License-Identifier: BSD-3-Clause */
/* Two requests between their arrival and their answer, so that the memory of one is fetched while
 * another is served. Oldest first: the answer of the older is made before the newer touches the
 * store, so that a client's requests have the effect of being served in order. */
#ifndef KV_PIPELINE_H
#define KV_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "store.h"

struct kv_item {
    bool real; /* false: a dummy, which only pushes others out */
    struct kv_request request;
    struct kv_hash hash;
    uint32_t client;
    uint64_t r; /* number of the request among this client's */
    struct kv_look look;
    enum kv_status status;
    const char *value; /* the answer to a GET that hit */
    size_t len;
};

typedef void kv_answer(void *arg, const struct kv_item *item);

struct kv_pipeline {
    struct kv_store *store;
    kv_answer
        *answer; /* called for each real item that leaves; the value is good during the call */
    void *arg;
    bool hasty;     /* for injection: the newer one's first stage before the older one's second */
    bool immediate; /* no stages: each item is served as it comes */
    struct kv_item newer, older;
    uint64_t pushes, dummies;
};

/* `item` NULL: a dummy. A PUT's value must stay where it is until its answer. */
void kv_pipeline_push(struct kv_pipeline *pipeline, const struct kv_item *item);

/* Until nothing is inside. */
void kv_pipeline_flush(struct kv_pipeline *pipeline);

/* Serves one request at once, without a pipeline. */
void kv_serve(struct kv_store *store, struct kv_item *item);

#endif
