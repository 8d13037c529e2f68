/* SPDX-License-Identifier: BSD-3-Clause */
/* A program linked with librdmacm, which needs private versions of libibverbs. Without an RDMA
 * stack in the kernel it gets an error; the test is only that it starts and gets an answer. */
#include "config.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>

int main(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    printf("channel %s, %d devices, first %s\n", channel ? "made" : "refused", n,
           n > 0 ? ibv_get_device_name(list[0]) : "none");
    if (list)
        ibv_free_device_list(list);
    if (channel)
        rdma_destroy_event_channel(channel);
    return 0;
}
