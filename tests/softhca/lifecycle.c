/* SPDX-License-Identifier: BSD-3-Clause */
/* How processes begin and end. A child of fork() has the handles but none of its parent's
 * connections, and the parent continues; writes of peers reach the parent, never the child. After
 * _exit survivors get the error of a vanished peer, and nothing is left behind. No memory has to be
 * locked. */
#include "config.h"

#include <dirent.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "harness.h"

static bool private;

static struct address join(int fd, struct end *e)
{
    struct address peer;

    end_open(e, &(struct end_options){.private = private});
    peer = swap_addresses(fd, e);
    connect_to(e, &peer);
    meet(fd);
    return peer;
}

static void expect_good(int status)
{
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- fork ---- */

static void use_parents_handles(struct end *e, const struct address *peer)
{
    struct ibv_wc wc;

    deadline(ALARM);
    CHECK(post_send(e, 1, 0, 64, 0) != 0);
    CHECK(post(e, IBV_WR_RDMA_WRITE, 1, 0, 64, IBV_SEND_SIGNALED, peer, 0) != 0);
    CHECK(post_recv(e, 1, 0, 64) != 0);
    CHECK(ibv_poll_cq(e->rcq, 1, &wc) <= 0);
    CHECK(ibv_reg_mr(e->pd, e->buf, 4096, 0) == NULL);
    CHECK(ibv_create_cq(e->ctx, 4, NULL, NULL, 0) == NULL);
    _exit(0);
}

static void forking_left(int fd, pid_t other)
{
    struct address peer;
    struct end e;
    pid_t child;
    int status;

    (void)other;
    peer = join(fd, &e);
    CHECK_EQ(post_recv(&e, 7, 4096, 64), 0);
    fill(e.buf, 64, 5);
    child = fork();
    if (child == 0)
        use_parents_handles(&e, &peer);
    CHECK_EQ(waitpid(child, &status, 0), child);
    expect_good(status);
    CHECK_EQ(post_send(&e, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    CHECK_EQ(wait_wc(e.rcq).wr_id, 7);
    CHECK(filled(e.buf + 4096, 64, 5));
    meet(fd);
    end_close(&e);
}

static void echoing_right(int fd, pid_t other)
{
    struct end e;

    (void)other;
    (void)join(fd, &e);
    CHECK_EQ(post_recv(&e, 1, 0, 64), 0);
    CHECK_EQ(wait_wc(e.rcq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post_send(&e, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    meet(fd);
    end_close(&e);
}

static void child_gets_errors_and_parent_goes_on(void)
{
    in_two(forking_left, echoing_right);
}

/* The child touches the page first, so if a page moves it is the parent's. */
static void watch_in_child(const struct end *e, int fd)
{
    char c;

    deadline(ALARM);
    e->buf[8000] = 1;
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(read(fd, &c, 1), 1);
    CHECK(private ? e->buf[0] == 0 && e->buf[100000] == 0 : filled(e->buf, 200000, 3));
    _exit(0);
}

static void written_left(int fd, pid_t other)
{
    struct end e;
    int fds[2], status;
    pid_t child;
    char c;

    (void)other;
    (void)join(fd, &e);
    memset(e.buf, 0, BUF_BYTES);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    child = fork();
    if (child == 0)
        watch_in_child(&e, fds[1]);
    CHECK_EQ(read(fds[0], &c, 1), 1);
    meet(fd);
    meet(fd); /* it was written */
    CHECK(filled(e.buf, 200000, 3));
    CHECK_EQ(write(fds[0], "x", 1), 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    expect_good(status);
    close(fds[0]);
    close(fds[1]);
    end_close(&e);
}

static void writing_right(int fd, pid_t other)
{
    struct address peer;
    struct end e;

    (void)other;
    peer = join(fd, &e);
    fill(e.buf, 200000, 3);
    meet(fd);
    CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 200000, IBV_SEND_SIGNALED, &peer, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    end_close(&e);
}

static void writes_land_in_the_parent(void)
{
    in_two(written_left, writing_right);
}

static void writes_land_in_the_private_parent(void)
{
    private = true;
    in_two(written_left, writing_right);
}

/* ---- _exit ---- */

static int files_in(const char *directory)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int n = 0;

    CHECK(d != NULL);
    while ((entry = readdir(d)))
        n += strstr(entry->d_name, "softhca") != NULL;
    closedir(d);
    return n;
}

static void leaving_right(int fd, pid_t other)
{
    struct end e;

    (void)other;
    (void)join(fd, &e);
    _exit(0);
}

static void surviving_left(int fd, pid_t other)
{
    double until = seconds() + HANG;
    struct address peer;
    struct ibv_wc wc;
    struct end e;

    (void)other;
    peer = join(fd, &e);
    CHECK(names_left() > 0); /* proves that the check after the end counts the right names */
    do {
        CHECK(seconds() < until);
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 4096, IBV_SEND_SIGNALED, &peer, 0), 0);
        wc = wait_wc(e.scq);
    } while (wc.status == IBV_WC_SUCCESS);
    CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
    _exit(0);
}

static void exit_without_goodbye(void)
{
    int shm = files_in("/dev/shm"), status;
    pid_t child = fork();

    if (child == 0)
        in_two(surviving_left, leaving_right);
    CHECK_EQ(waitpid(child, &status, 0), child);
    expect_good(status);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    CHECK_EQ(names_left(), 0);
    CHECK_EQ(files_in("/dev/shm"), shm);
}

/* ---- limits ---- */

/* Root may lock any amount (CAP_IPC_LOCK), regardless of the limit. */
static void give_up_locking(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    CHECK_EQ(syscall(SYS_capget, &head, data), 0);
    data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    data[CAP_TO_INDEX(CAP_IPC_LOCK)].permitted &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    CHECK_EQ(syscall(SYS_capset, &head, data), 0);
}

static void nothing_is_locked(void)
{
    struct rlimit none = {0, 0};
    struct address to_b;
    struct end a, b;

    give_up_locking();
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    /* By its number: AddressSanitizer turns mlock into nothing. */
    CHECK(syscall(SYS_mlock, &none, sizeof none) != 0);
    open_two(&a, &b, NULL);
    to_b = address_of(&b);
    fill(a.buf, BUF_BYTES, 9);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, BUF_BYTES, IBV_SEND_SIGNALED, &to_b, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, BUF_BYTES, 9));
    close_two(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"child_gets_errors_and_parent_goes_on", child_gets_errors_and_parent_goes_on},
        {"writes_land_in_the_parent", writes_land_in_the_parent},
        {"writes_land_in_the_private_parent", writes_land_in_the_private_parent},
        {"exit_without_goodbye", exit_without_goodbye},
        {"nothing_is_locked", nothing_is_locked},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
