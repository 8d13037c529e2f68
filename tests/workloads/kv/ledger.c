/* SPDX-License-Identifier: BSD-3-Clause */
/* See store_private.h. Open addressing, no removal. Owns its lines. */
#include "config.h"

#include <stdlib.h>

#include "store_private.h"

enum { first_room = 1024 };

bool kv_ledger_open(struct kv_ledger *ledger)
{
    ledger->lines = calloc(first_room, sizeof(*ledger->lines));
    ledger->room = first_room;
    ledger->count = 0;
    return ledger->lines != NULL;
}

void kv_ledger_close(struct kv_ledger *ledger)
{
    free(ledger->lines);
}

static struct kv_ledger_line *line_of(const struct kv_ledger *ledger, const struct kv_key *key)
{
    uint64_t at = kv_hash_of(key).hi;
    for (;; at++) {
        struct kv_ledger_line *line = &ledger->lines[at & (ledger->room - 1)];
        if (!line->used || kv_key_same(&line->key, key))
            return line;
    }
}

static void grow(struct kv_ledger *ledger)
{
    struct kv_ledger old = *ledger;
    ledger->room *= 2;
    ledger->lines = calloc(ledger->room, sizeof(*ledger->lines));
    if (!ledger->lines)
        abort();
    for (uint64_t i = 0; i < old.room; i++)
        if (old.lines[i].used)
            *line_of(ledger, &old.lines[i].key) = old.lines[i];
    free(old.lines);
}

void kv_ledger_set(struct kv_ledger *ledger, const struct kv_key *key, enum kv_fate fate)
{
    if (ledger->count * 2 >= ledger->room)
        grow(ledger);
    struct kv_ledger_line *line = line_of(ledger, key);
    ledger->count += !line->used;
    *line = (struct kv_ledger_line){*key, fate, 1};
}

enum kv_fate kv_ledger_get(const struct kv_ledger *ledger, const struct kv_key *key)
{
    const struct kv_ledger_line *line = line_of(ledger, key);
    return line->used ? (enum kv_fate)line->fate : kv_never;
}
