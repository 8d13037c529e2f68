/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments that softhca must refuse or work around: members of another shape, version, user or
 * fabric; a kernel or container that refuses the copy between processes or pidfds; a peer that may
 * not be looked into. Owns nothing; the refusals are made with seccomp in the test itself. */
#include "config.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "contrib/softhca/support/registry_name.h"
#include "tests/softhca/harness.h"

#define NOBODY 65534

/* ---- messages ---- */

static int saved_stderr = -1, said_fd = -1;

static void listen_to_stderr(void)
{
    said_fd = memfd_create("said", MFD_CLOEXEC);
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    CHECK(said_fd >= 0 && saved_stderr >= 0);
    dup2(said_fd, STDERR_FILENO);
}

/* Everything since listen_to_stderr(). */
static const char *said(void)
{
    static char text[16384];
    ssize_t n = pread(said_fd, text, sizeof text - 1, 0);

    dup2(saved_stderr, STDERR_FILENO);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static int times(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

#define CHECK_SAID(text, what, n)                                                                  \
    do {                                                                                           \
        if (times(text, what) != (n)) {                                                            \
            fprintf(stderr, "%s:%d: '%s' was not said %d times but: %s\n", __FILE__, __LINE__,     \
                    what, n, text);                                                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* ---- refusals ---- */

static void refuse_calls(long first, long second, int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};

    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void refuse_copies(int error)
{
    refuse_calls(SYS_process_vm_readv, SYS_process_vm_writev, error);
}

static void no_pidfds(int error)
{
    refuse_calls(SYS_pidfd_open, SYS_pidfd_open, error);
}

static bool am_root(const char *test)
{
    if (geteuid() == 0)
        return true;
    printf("skip %s: only root can become another user\n", test);
    return false;
}

/* Dropping root makes a process not dumpable; most of these tests need it dumpable. */
static void become_nobody(bool dumpable)
{
    CHECK_EQ(setgid(NOBODY), 0);
    CHECK_EQ(setuid(NOBODY), 0);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0), 0);
}

/* ---- pairs ---- */

static struct address connected(int fd, struct end *e, const struct end_options *o, int timeout)
{
    struct address theirs;

    end_open(e, o);
    theirs = swap_addresses(fd, e);
    to_init(e->qp);
    to_rtr(e->qp, &theirs);
    to_rts(e, timeout, 7);
    meet(fd);
    return theirs;
}

static void ready_for_one(int fd, struct end *e, const struct end_options *o)
{
    struct address theirs;

    end_open(e, o);
    theirs = swap_addresses(fd, e);
    connect_to(e, &theirs);
    CHECK_EQ(post_recv(e, 1, 0, BUF_BYTES / 2), 0);
    meet(fd);
}

/* The other side: has one receive posted, stays until the first is done with it. */
static void stay_with(int fd, const struct end_options *o, enum ibv_wc_status expected)
{
    struct end e;

    ready_for_one(fd, &e, o);
    meet(fd);
    if (expected != IBV_WC_GENERAL_ERR)
        CHECK_EQ(wait_wc(e.rcq).status, expected);
}

/* ---- another shape ---- */

static void open_quietly(int fd, pid_t other)
{
    (void)other;
    open_softhca(0);
    meet(fd);
    meet(fd);
}

static struct ibv_context *try_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    CHECK(list && list[0]);
    errno = 0;
    return ibv_open_device(list[0]);
}

/* The settings are read once, so each try has a process of its own. */
static void refused(const char *name, const char *mine, const char *theirs, pid_t other)
{
    pid_t child = fork();
    char expected[200];
    int status;

    if (child == 0) {
        setenv(name, mine, 1);
        listen_to_stderr();
        struct ibv_context *ctx = try_open();
        int error = errno;
        const char *text = said();

        CHECK(!ctx);
        CHECK_EQ(error, EINVAL);
        snprintf(expected, sizeof expected, "%s is %s here but %s in process %d of", name, mine,
                 theirs, (int)other);
        CHECK_SAID(text, expected, 1);
        CHECK_SAID(text, "\n", 1);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void shapes_left(int fd, pid_t other)
{
    meet(fd);
    refused("SOFTHCA_HCAS", "2", "1", other);
    refused("SOFTHCA_PORTS", "3", "1", other);
    refused("SOFTHCA_LINK", "roce", "ib", other);
    setenv("SOFTHCA_MAX_QP", "17", 1); /* limits are each process's own */
    CHECK(try_open());
    meet(fd);
}

static void another_shape(void)
{
    in_two(shapes_left, open_quietly);
}

/* ---- another version, forged names ---- */

static int take_name(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(a.sun_path + 1, name, strlen(name));
    CHECK_EQ(bind(fd, (struct sockaddr *)&a,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
             0);
    return fd;
}

static void another_layout(void)
{
    char fabric[SHCA_NAME], name[108];

    shca_name_fabric(getenv("SOFTHCA_FABRIC"), geteuid(), fabric);
    snprintf(name, sizeof name, "softhca%u.%s.3.%d.4", SHCA_LAYOUT + 1, fabric, (int)getpid());
    take_name(name);
    listen_to_stderr();
    struct ibv_context *ctx = try_open();
    const char *text = said();

    CHECK(ctx);
    snprintf(name, sizeof name, "(layout %u, here %u)", SHCA_LAYOUT + 1, SHCA_LAYOUT);
    CHECK_SAID(text, name, 1);
}

/* Another user claims to be a member of root's fabric, with a segment of a foreign shape. */
static void forge(int fd, pid_t other)
{
    struct shca_segment head = {.magic = SHCA_MAGIC, .size = UINT64_C(256) << 20, .slot = 7};
    struct shca_name name = {.slot = 7, .space = shca_name_space()};
    char fabric[SHCA_NAME], text[108];
    int memory;

    (void)other;
    shca_name_fabric(getenv("SOFTHCA_FABRIC"), geteuid(), fabric);
    become_nobody(true);
    memory = memfd_create("softhca", 0);
    CHECK(memory >= 0 && ftruncate(memory, (off_t)head.size) == 0);
    head.pid = name.pid = (uint32_t)getpid();
    head.hcas = 7;
    memcpy(head.fabric, fabric, sizeof head.fabric);
    memcpy(name.fabric, fabric, sizeof name.fabric);
    CHECK_EQ(pwrite(memory, &head, sizeof head, 0), sizeof head);
    name.fd = memory;
    shca_name_segment(text, sizeof text, &name);
    take_name(text);
    meet(fd);
    meet(fd);
}

static void believe_nothing(int fd, pid_t other)
{
    (void)other;
    meet(fd);
    CHECK(try_open());
    meet(fd);
}

static void forged_member(void)
{
    if (am_root("forged_member"))
        in_two(believe_nothing, forge);
}

/* ---- another PID namespace ---- */

/* The name of a member that only its namespace tells from one that can be reached. */
static int take_hidden_name(void)
{
    struct shca_name name = {.slot = 7, .pid = 1, .space = shca_name_space() + 1, .fd = 3};
    char text[108];

    shca_name_fabric(getenv("SOFTHCA_FABRIC"), 0, name.fabric);
    shca_name_segment(text, sizeof text, &name);
    return take_name(text);
}

/* A process that was refused may open a device when that member has ended. */
static void another_namespace(void)
{
    if (!am_root("another_namespace"))
        return;
    int fd = take_hidden_name();
    listen_to_stderr();
    CHECK(!try_open());
    CHECK_EQ(errno, EINVAL);
    close(fd);
    struct ibv_context *ctx = try_open();
    const char *text = said();

    CHECK(ctx);
    CHECK_SAID(text, "process 1 of the same fabric", 1);
    CHECK_SAID(text, "\n", 1);
}

static void forge_hidden(int fd, pid_t other)
{
    (void)other;
    become_nobody(true);
    take_hidden_name();
    meet(fd);
    meet(fd);
}

/* If the kernel doesn't say whose name it is, there is a message, too. */
static void forged_namespace(void)
{
    if (am_root("forged_namespace"))
        in_two(believe_nothing, forge_hidden);
}

/* ---- other users, other fabrics: out of reach ---- */

static void out_of_reach(int fd, pid_t other)
{
    struct end e;

    (void)other;
    connected(fd, &e, NULL, 8);
    CHECK_EQ(post_send(&e, 1, 0, 100, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_RETRY_EXC_ERR);
    meet(fd);
}

static void as_nobody(int fd, pid_t other)
{
    (void)other;
    become_nobody(true);
    stay_with(fd, NULL, IBV_WC_GENERAL_ERR);
}

static void another_user(void)
{
    if (am_root("another_user"))
        in_two(out_of_reach, as_nobody);
}

static void elsewhere(int fd, pid_t other)
{
    (void)other;
    setenv("SOFTHCA_FABRIC", "elsewhere", 1);
    stay_with(fd, NULL, IBV_WC_GENERAL_ERR);
}

static void another_fabric(void)
{
    in_two(out_of_reach, elsewhere);
}

static void closed_left(int fd, pid_t other)
{
    struct end e;

    (void)other;
    become_nobody(true);
    listen_to_stderr();
    connected(fd, &e, NULL, 8);
    CHECK_EQ(post_send(&e, 1, 0, 100, 0), 0);
    struct ibv_wc wc = wait_wc(e.scq);
    const char *text = said();

    CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
    CHECK_SAID(text, "that process is not dumpable", 1);
    meet(fd);
}

static void closed_right(int fd, pid_t other)
{
    (void)other;
    become_nobody(false);
    stay_with(fd, NULL, IBV_WC_GENERAL_ERR);
}

static void not_dumpable(void)
{
    if (am_root("not_dumpable"))
        in_two(closed_left, closed_right);
}

/* ---- no copies between processes ---- */

static const struct end_options private_memory = {.private = true};
static enum ibv_wr_opcode tried;
static size_t tried_bytes;

/* Shared memory needs no copy: everything works. */
static void shared_left(int fd, pid_t other)
{
    struct end e;
    struct address a;

    (void)other;
    listen_to_stderr();
    a = connected(fd, &e, NULL, 14);
    fill(e.buf, 5000, 1);
    CHECK_EQ(post_send(&e, 1, 0, 5000, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 2, 0, 5000, IBV_SEND_SIGNALED, &a, 100000), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post(&e, IBV_WR_RDMA_READ, 3, 200000, 5000, IBV_SEND_SIGNALED, &a, 100000), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(e.buf + 200000, 5000, 1));
    CHECK_SAID(said(), "\n", 0);
    meet(fd);
}

static void shared_right(int fd, pid_t other)
{
    (void)other;
    stay_with(fd, NULL, IBV_WC_SUCCESS);
}

/* Private memory cannot be reached, and that is not the fault of a key. */
static void private_left(int fd, pid_t other)
{
    struct end e;
    struct address a;

    (void)other;
    listen_to_stderr();
    a = connected(fd, &e, &private_memory, 14);
    CHECK_EQ(post(&e, tried, 1, 0, tried_bytes, IBV_SEND_SIGNALED, &a, 0), 0);
    struct ibv_wc wc = wait_wc(e.scq);
    const char *text = said();

    CHECK_EQ(wc.status, IBV_WC_REM_OP_ERR);
    CHECK_SAID(text, "the kernel refuses to copy between processes", 1);
    CHECK_SAID(text, "\n", 1);
    meet(fd);
}

static void private_right(int fd, pid_t other)
{
    (void)other;
    stay_with(fd, &private_memory,
              tried == IBV_WR_SEND ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_WR_FLUSH_ERR);
}

/* Short messages wait in the segment and need no copy either. */
static void short_left(int fd, pid_t other)
{
    struct end e;

    (void)other;
    connected(fd, &e, &private_memory, 14);
    CHECK_EQ(post_send(&e, 1, 0, 4000, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
}

static void short_right(int fd, pid_t other)
{
    (void)other;
    stay_with(fd, &private_memory, IBV_WC_SUCCESS);
}

static void without_copies(int error)
{
    refuse_copies(error);
    in_two(shared_left, shared_right);
}

static void without_private(int error, enum ibv_wr_opcode op, size_t bytes)
{
    refuse_copies(error);
    tried = op;
    tried_bytes = bytes;
    in_two(private_left, private_right);
}

static void copies_eperm(void)
{
    without_copies(EPERM);
}

static void copies_enosys(void)
{
    without_copies(ENOSYS);
}

static void send_eperm(void)
{
    without_private(EPERM, IBV_WR_SEND, 5000);
}

static void write_eperm(void)
{
    without_private(EPERM, IBV_WR_RDMA_WRITE, 8);
}

static void read_enosys(void)
{
    without_private(ENOSYS, IBV_WR_RDMA_READ, 8);
}

static void short_messages_without_copies(void)
{
    refuse_copies(EPERM);
    in_two(short_left, short_right);
}

/* ---- no pidfds ---- */

static void dying_left(int fd, pid_t other)
{
    struct address a;
    double start;
    struct end e;

    a = connected(fd, &e, NULL, 14);
    CHECK_EQ(post_send(&e, 1, 0, 100, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    kill(other, SIGKILL);
    start = seconds();
    /* If the sender did not check the process, writes into its mapped memory would always
     * succeed. */
    do {
        struct ibv_wc wc;

        CHECK(seconds() - start < HANG);
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 2, 0, 8, IBV_SEND_SIGNALED, &a, 0), 0);
        wc = wait_wc(e.scq);
        if (wc.status == IBV_WC_RETRY_EXC_ERR)
            return;
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    } while (true);
}

static void dying_right(int fd, pid_t other)
{
    struct end e;

    (void)other;
    ready_for_one(fd, &e, NULL);
    pause();
}

static void pidfd_enosys(void)
{
    no_pidfds(ENOSYS);
    in_two(dying_left, dying_right);
}

static void pidfd_eperm(void)
{
    no_pidfds(EPERM);
    in_two(dying_left, dying_right);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"another_shape", another_shape},
        {"another_layout", another_layout},
        {"forged_member", forged_member},
        {"another_namespace", another_namespace},
        {"forged_namespace", forged_namespace},
        {"another_user", another_user},
        {"another_fabric", another_fabric},
        {"not_dumpable", not_dumpable},
        {"copies_eperm", copies_eperm},
        {"copies_enosys", copies_enosys},
        {"send_eperm", send_eperm},
        {"write_eperm", write_eperm},
        {"read_enosys", read_enosys},
        {"short_messages_without_copies", short_messages_without_copies},
        {"pidfd_enosys", pidfd_enosys},
        {"pidfd_eperm", pidfd_eperm},
        {NULL, NULL}};

    return run_cases(cases, argc, argv);
}
