/* SPDX-License-Identifier: BSD-3-Clause
 *
 * librdmacm between the ranks of a fake world (fake_world.h), on its fake devices: calls succeed
 * and events are there at once, unless a test wants something lost or failing. Port P of device D
 * has the address 10.D.P.1. While a rank waits for events at start-up the others go on. Include
 * after fake_world.h. */
#ifndef FAKE_RDMACM_H
#define FAKE_RDMACM_H

#include "transport/verbs/library.h" /* the fake has its names */

#include <rdma/rdma_cma.h>

enum fake_cm_call {
    FAKE_CM_CHANNEL,
    FAKE_CM_CREATE_ID,
    FAKE_CM_BIND,
    FAKE_CM_LISTEN,
    FAKE_CM_RESOLVE_ADDR,
    FAKE_CM_RESOLVE_ROUTE,
    FAKE_CM_CONNECT,
    FAKE_CM_ACCEPT,
    FAKE_CM_ESTABLISH,
    FAKE_CM_INIT_ATTR,
    fake_cm_calls
};

/* All zero: nothing fails. */
struct fake_cm {
    /* After `allowed` more calls this one fails with `error`, for good; 0: it does not. */
    struct {
        int allowed, error;
    } failing[fake_cm_calls];
    enum rdma_cm_event_type
        instead[RDMA_CM_EVENT_TIMEWAIT_EXIT + 1]; /* of an event: replaces its own; 0: unchanged */
    int instead_status;
    int lost_connects; /* so many more do not arrive */
    int lost_answers;
    int unreachable;        /* so many more connects: lost, and the network says so */
    int refused_by_network; /* so many more connects: rejected with status 10 and no data */
    bool is_iwarp;     /* an answer needs no acknowledgement; queue pairs are still connected */
    bool is_lazy;      /* its kernel driver, see fake_join() */
    bool is_alone;     /* while a rank waits, no other rank runs */
    int ids, channels; /* that exist */
    unsigned connects; /* that arrived */
    struct rdma_conn_param last; /* of the last connect */
};
extern struct fake_cm fake_cm;

void fake_cm_reset(void);

/* Connects to the first listener of the rank that the test plays, with these bytes. Returns the
 * event and status that came back, or RDMA_CM_EVENT_TIMEWAIT_EXIT if none came; *data, of `size`
 * bytes, has the refusal's private data. */
enum rdma_cm_event_type fake_cm_conn_request(const void *request, uint8_t request_size, void *data,
                                             size_t size);

#endif
