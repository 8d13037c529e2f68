/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See rendezvous_queue.h. No state of its own. */
#include "config.h"

#include <stddef.h>

#include "transport/verbs/data/rendezvous_queue.h"

void tk_pull_list_add(struct tk_pull_list *list, struct tk_pull *pull)
{
    pull->next = NULL;
    if (list->first)
        list->last->next = pull;
    else
        list->first = pull;
    list->last = pull;
}

struct tk_pull *tk_pull_list_take(struct tk_pull_list *list)
{
    struct tk_pull *pull = list->first;
    if (pull)
        list->first = pull->next;
    return pull;
}

void tk_pull_queue_open(struct tk_pull_queue *queue, unsigned places)
{
    *queue = (struct tk_pull_queue){.places = (int)places};
}

void tk_pull_queue_add(struct tk_pull_queue *queue, struct tk_pull *pull)
{
    tk_pull_list_add(&queue->waiting, pull);
    queue->count++;
}

struct tk_pull *tk_pull_queue_next(struct tk_pull_queue *queue)
{
    if (queue->places == 0 || queue->count == 0)
        return NULL;
    queue->places--;
    queue->count--;
    return tk_pull_list_take(&queue->waiting);
}

void tk_pull_queue_read(struct tk_pull_queue *queue, struct tk_pull *pull)
{
    tk_pull_list_add(&queue->reading, pull);
}

void tk_pull_queue_put_back(struct tk_pull_queue *queue, struct tk_pull *pull)
{
    queue->places++;
    tk_pull_queue_add(queue, pull);
}

struct tk_pull *tk_pull_queue_take(struct tk_pull_queue *queue)
{
    struct tk_pull *before = NULL, *pull = queue->reading.first;
    while (pull && !tk_op_done(&pull->op)) {
        before = pull;
        pull = pull->next;
    }
    if (!pull)
        return NULL;
    if (before)
        before->next = pull->next;
    else
        queue->reading.first = pull->next;
    if (queue->reading.last == pull)
        queue->reading.last = before;
    return pull;
}

void tk_pull_queue_leave(struct tk_pull_queue *queue)
{
    queue->places++;
}
