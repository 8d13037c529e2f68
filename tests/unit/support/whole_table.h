/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Is a transport's table whole, as conduit/transport/transport.h requires? */
#ifndef WHOLE_TABLE_H
#define WHOLE_TABLE_H

#include "transport/transport.h"
#include "unit.h"

typedef void (*table_member)(void);

/* An optional group is NULL, or has all of its functions. */
static inline void assert_group(const char *transport, const char *group, const void *table,
                                size_t size)
{
    assert_int_equal(size % sizeof(table_member), 0);
    for (size_t i = 0; table && i < size / sizeof(table_member); i++) {
        table_member member;
        memcpy(&member, (const char *)table + i * sizeof(member), sizeof(member));
        if (!member)
            fail_msg("%s: function %zu of `%s` is missing", transport, i, group);
    }
}

#define ASSERT_GROUP(t, group) assert_group((t)->name, #group, (t)->group, sizeof(*(t)->group))

static inline void assert_table_is_whole(const struct tk_transport *t)
{
    assert_non_null(t->name);
    assert_true(t->rma.put && t->rma.get && t->rma.post);
    assert_int_equal(!t->rma.gather, !t->rma.gather_max);
    assert_true(t->am.send_short && t->am.send_small && t->am.send);
    assert_true(t->am.send_medium || t->am.medium_below == 0);
    assert_true(t->am.reserve && t->am.reserve_place && t->am.send_reserved && t->am.release);
    assert_true(t->poll && t->reap && t->reap_in_handler);
    assert_int_equal(!t->demand, !t->unconnected);
    ASSERT_GROUP(t, lifecycle);
    ASSERT_GROUP(t, demand);
    ASSERT_GROUP(t, memory);
    ASSERT_GROUP(t, atomics);
    ASSERT_GROUP(t, neighbour);
}

#endif
