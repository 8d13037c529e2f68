/* SPDX-License-Identifier: BSD-3-Clause */
/* See pipeline.h. Owns nothing. */
#include "config.h"

#include "pipeline.h"

static void first_stage(struct kv_store *store, struct kv_item *item)
{
    switch (item->request.op) {
    case kv_get:
        kv_store_look(store, item->hash, &item->look);
        break;
    case kv_put:
        item->status = kv_store_put(store, &item->request.key, item->hash, item->request.value,
                                    item->request.len);
        break;
    case kv_delete:
        item->status = kv_store_delete(store, &item->request.key, item->hash);
        break;
    }
}

static void second_stage(struct kv_store *store, struct kv_item *item)
{
    if (item->request.op == kv_get)
        item->status =
            kv_store_find(store, &item->request.key, &item->look, &item->value, &item->len);
}

void kv_serve(struct kv_store *store, struct kv_item *item)
{
    first_stage(store, item);
    second_stage(store, item);
}

void kv_pipeline_push(struct kv_pipeline *pipeline, const struct kv_item *item)
{
    static const struct kv_item dummy;
    if (pipeline->immediate && !item)
        return;
    pipeline->pushes++;
    pipeline->dummies += !item;
    if (pipeline->immediate) {
        struct kv_item now = *item;
        kv_serve(pipeline->store, &now);
        pipeline->answer(pipeline->arg, &now);
        return;
    }
    if (item)
        kv_store_prefetch(pipeline->store, item->hash, item->request.op != kv_get);
    if (pipeline->hasty && pipeline->newer.real)
        first_stage(pipeline->store, &pipeline->newer);
    if (pipeline->older.real) {
        second_stage(pipeline->store, &pipeline->older);
        pipeline->answer(pipeline->arg, &pipeline->older);
    }
    if (!pipeline->hasty && pipeline->newer.real)
        first_stage(pipeline->store, &pipeline->newer);
    pipeline->older = pipeline->newer;
    pipeline->newer = item ? *item : dummy;
}

void kv_pipeline_flush(struct kv_pipeline *pipeline)
{
    kv_pipeline_push(pipeline, NULL);
    kv_pipeline_push(pipeline, NULL);
}
