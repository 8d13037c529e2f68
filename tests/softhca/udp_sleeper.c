/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that polled and then does other work: its helper thread, which had left the packets to
 * it, answers instead. Acknowledgements that were deferred until the next poll are sent without a
 * poll. Owns nothing; two processes. */
#include "harness.h"

enum { rounds = 40, vain_polls = 1000 };

static void sleeper(int fd, pid_t parent)
{
    struct address to;
    struct end e;
    char byte;

    (void)parent;
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < vain_polls; k++)
            no_wc(e.rcq);
        if (i % 4 == 1)
            usleep(3000); /* the thread notices, and then it is left alone again */
        if (i % 4 == 2) { /* an acknowledgement is due when it stops polling */
            CHECK_EQ(post_recv(&e, 1, 0, 8), 0);
            meet(fd);
            CHECK_EQ(wait_wc(e.rcq).status, IBV_WC_SUCCESS);
        } else {
            meet(fd);
        }
        CHECK_EQ(recv(fd, &byte, 1, MSG_WAITALL), 1);
    }
    end_close(&e);
}

static void writer(int fd, pid_t child)
{
    struct address to;
    struct end e;

    (void)child;
    end_open(&e, NULL);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    for (int i = 0; i < rounds; i++) {
        meet(fd);
        if (i % 4 == 2)
            CHECK_EQ(post_send(&e, 1, 0, 8, 0), 0);
        else if (i % 4 == 3) /* several at once, and no poll before it sleeps */
            for (int k = 0; k < 3; k++)
                CHECK_EQ(
                    post(&e, IBV_WR_RDMA_WRITE, 1, 0, 8, k == 2 ? IBV_SEND_SIGNALED : 0, &to, 0),
                    0);
        else
            CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &to, 0), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
        CHECK_EQ(write(fd, "", 1), 1);
    }
    end_close(&e);
}

int main(void)
{
    setenv("SOFTHCA_WIRE", "udp", 1);
    deadline(ALARM);
    in_two(writer, sleeper);
    return 0;
}
