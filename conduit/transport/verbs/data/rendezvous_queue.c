/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See rendezvous_queue.h. No state of its own. */
#include "config.h"

#include <stddef.h>

#include "transport/verbs/data/rendezvous_queue.h"

void tk_rndv_list_add(struct tk_rndv_list *list, struct tk_rndv *rndv)
{
    rndv->next = NULL;
    if (list->first)
        list->last->next = rndv;
    else
        list->first = rndv;
    list->last = rndv;
}

struct tk_rndv *tk_rndv_list_take(struct tk_rndv_list *list)
{
    struct tk_rndv *rndv = list->first;
    if (rndv)
        list->first = rndv->next;
    return rndv;
}

void tk_rndv_queue_open(struct tk_rndv_queue *queue, unsigned places)
{
    *queue = (struct tk_rndv_queue){.places = (int)places};
}

void tk_rndv_queue_add(struct tk_rndv_queue *queue, struct tk_rndv *rndv)
{
    tk_rndv_list_add(&queue->waiting, rndv);
    queue->count++;
}

struct tk_rndv *tk_rndv_queue_next(struct tk_rndv_queue *queue)
{
    if (queue->places == 0 || queue->count == 0)
        return NULL;
    queue->places--;
    queue->count--;
    return tk_rndv_list_take(&queue->waiting);
}

void tk_rndv_queue_read(struct tk_rndv_queue *queue, struct tk_rndv *rndv)
{
    tk_rndv_list_add(&queue->reading, rndv);
}

void tk_rndv_queue_put_back(struct tk_rndv_queue *queue, struct tk_rndv *rndv)
{
    queue->places++;
    tk_rndv_queue_add(queue, rndv);
}

struct tk_rndv *tk_rndv_queue_take(struct tk_rndv_queue *queue)
{
    struct tk_rndv *before = NULL, *rndv = queue->reading.first;
    while (rndv && !tk_op_done(&rndv->op)) {
        before = rndv;
        rndv = rndv->next;
    }
    if (!rndv)
        return NULL;
    if (before)
        before->next = rndv->next;
    else
        queue->reading.first = rndv->next;
    if (queue->reading.last == rndv)
        queue->reading.last = before;
    return rndv;
}

void tk_rndv_queue_leave(struct tk_rndv_queue *queue)
{
    queue->places++;
}
