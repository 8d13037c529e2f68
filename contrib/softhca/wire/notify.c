/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends events to a program, this one or a peer: records of 8 bytes in pipes. Owns nothing. */
#include "config.h"

#include <unistd.h>

#include "wire/wire.h"

void shca_cq_notify(struct shca_peer *p, struct shca_cq_sh *cq, bool solicited)
{
    uint32_t arm = atomic_load(&cq->arm);
    uint64_t record = (uint64_t)cq->index << 32 | arm;

    if ((arm & 3) == 0 || ((arm & 3) == 2 && !solicited) || cq->event.fd < 0)
        return;
    /* First the event, then the disarming: if we are killed in between, there is one event too
     * many, which the reader recognises by its number, and never a sleeper without an event. */
    if (p)
        shca_peer_signal(p, &cq->event, record);
    else if (write(cq->event.fd, &record, sizeof record) < 0)
        return;
    atomic_compare_exchange_strong(&cq->arm, &arm, arm & ~3u);
}

void shca_async_send(struct shca_peer *p, const struct shca_pipe *to, enum ibv_event_type type,
                     uint32_t index)
{
    uint64_t record = (uint64_t)type << 32 | index;

    if (p)
        shca_peer_signal(p, to, record);
    else if (write(to->fd, &record, sizeof record) < 0)
        return;
}
