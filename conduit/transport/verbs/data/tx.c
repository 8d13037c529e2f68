/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See tx.h: what the completion of a work request does. No lock. */
#include "config.h"

#include "base/copy.h"
#include "firehose/firehose.h"
#include "transport/verbs/data/tx.h"

void tk_work_complete(struct tk_work *work)
{
    if (work->is_plain) {
        tk_work_complete_plain(work);
        return;
    }
    tk_counter_add(&tk_verbs.works_out, -1);
    struct tk_op *op = work->op;
    if (work->is_held)
        tk_firehose_release(work->held);
    else if (work->get_to)
        tk_copy_large(work->get_to, work->bounce->data, work->nbytes);
    tk_counter_t *sources = work->sources;
    tk_work_give(work);
    if (!op)
        return;
    if (sources)
        tk_counter_add(sources, -1);
    /* Last: whoever sees zero may free the operation. */
    tk_counter_add(&op->pending, -1);
}
