/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of one process in another: the same bytes, at an address of its own that its CPU cannot
 * touch either; handles of what is gone are refused. */
#include "cuda_start.h"

enum { SIZE = 10000 };

/* Two processes that are not each other's children with a device: both start after the fork. */
struct pipes {
    int to_child[2], to_parent[2];
    pid_t child;
};

static void part(struct pipes *p, void (*child)(int in, int out))
{
    CHECK(pipe(p->to_child) == 0 && pipe(p->to_parent) == 0);
    p->child = fork();
    CHECK(p->child >= 0);
    if (p->child == 0) {
        alarm(CASE_SECONDS);
        child(p->to_child[0], p->to_parent[1]);
        _exit(0);
    }
}

static void put(int fd, const void *data, size_t n)
{
    CHECK(write(fd, data, n) == (ssize_t)n);
}

static void get(int fd, void *data, size_t n)
{
    CHECK(read(fd, data, n) == (ssize_t)n);
}

static void finish(struct pipes *p, int expected)
{
    int status;

    CHECK(waitpid(p->child, &status, 0) == p->child && status == expected);
}

/* The owner, in the child: memory of ones; a handle; then the bytes must be twos. */
static void owner(int in, int out)
{
    CUipcMemHandle h;
    CUdeviceptr p, mine;
    unsigned char bytes[SIZE], c;
    int value;

    cuda_start(0);
    p = cuda_alloc(SIZE);
    GOOD(cuMemsetD8(p, 1, SIZE));
    GOOD(cuCtxSynchronize());
    GIVES(1, cuIpcGetMemHandle(&h, 4096));
    GOOD(cuIpcGetMemHandle(&h, p + 100)); /* of the whole allocation */
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle(&mine, h, 1));
    put(out, &h, sizeof h);
    get(in, &c, 1);
    GOOD(cuMemcpyDtoH(bytes, p, SIZE));
    for (value = 0; value < SIZE; value++)
        CHECK(bytes[value] == (value == 50 ? 3 : 2));
    GOOD(cuMemFree(p));
    cuda_alloc(SIZE); /* now has the descriptor number that the handle names */
    put(out, &c, 1);
    get(in, &c, 1);
}

static void shared(void)
{
    CUipcMemHandle h;
    CUdeviceptr p, again, base;
    unsigned char bytes[SIZE], c = 3;
    struct pipes pipes;
    size_t size;
    int before, fd;

    part(&pipes, owner);
    cuda_start(0);
    before = count_descriptors();
    get(pipes.to_parent[0], &h, sizeof h);
    GIVES(1, cuIpcOpenMemHandle(&p, h, 0));
    GOOD(cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    GOOD(cuIpcOpenMemHandle(&again, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(again == p);
    GOOD(cuMemGetAddressRange(&base, &size, p + 1));
    CHECK(base == p && size == SIZE);
    GOOD(cuMemcpyDtoH(bytes, p, SIZE));
    CHECK(bytes[0] == 1 && bytes[SIZE - 1] == 1);
    GIVES(1, cuMemcpyDtoH(bytes, p + 1, SIZE));
    GOOD(cuMemsetD8(p, 2, SIZE));
    GOOD(cuMemcpyHtoD(p + 50, &c, 1));
    GIVES(1, cuMemFree(p));
    GIVES(1, cuIpcGetMemHandle(&h, p)); /* not ours to pass on */
    GIVES(1, cuMemGetHandleForAddressRange(&fd, p, 4096, 1, 0));
    put(pipes.to_child[1], &c, 1);
    get(pipes.to_parent[0], &c, 1); /* freed by the owner; stays valid here until it is closed */
    GOOD(cuMemcpyDtoH(bytes, p, SIZE));
    CHECK(bytes[0] == 2);
    GOOD(cuIpcCloseMemHandle(p));
    GOOD(cuMemcpyDtoH(bytes, p, 1));
    GOOD(cuIpcCloseMemHandle(p));
    GIVES(1, cuIpcCloseMemHandle(p));
    GIVES(1, cuMemcpyDtoH(bytes, p, 1));
    GIVES(CUDA_ERROR_MAP_FAILED, cuIpcOpenMemHandle(&p, h, 1)); /* stale */
    CHECK(count_descriptors() == before);
    put(pipes.to_child[1], &c, 1);
    finish(&pipes, 0);
    GIVES(CUDA_ERROR_MAP_FAILED, cuIpcOpenMemHandle(&p, h, 1)); /* its process is gone */
    memset(&h, 0, sizeof h);
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenMemHandle(&p, h, 1));
}

static void give_and_wait(int in, int out)
{
    CUipcMemHandle h;
    char c;

    cuda_start(0);
    GOOD(cuIpcGetMemHandle(&h, cuda_alloc(SIZE)));
    put(out, &h, sizeof h);
    get(in, &c, 1);
}

/* If the owner is killed, processes that opened the memory keep it. */
static void killed_owner(void)
{
    CUipcMemHandle h;
    CUdeviceptr p;
    char c = 1;
    struct pipes pipes;

    part(&pipes, give_and_wait);
    cuda_start(0);
    get(pipes.to_parent[0], &h, sizeof h);
    GOOD(cuIpcOpenMemHandle(&p, h, 1));
    kill(pipes.child, SIGKILL);
    finish(&pipes, SIGKILL);
    GOOD(cuMemcpyHtoD(p, &c, 1));
    GOOD(cuIpcCloseMemHandle(p));
    GIVES(CUDA_ERROR_MAP_FAILED, cuIpcOpenMemHandle(&p, h, 1));
}

static void cpu_access(void)
{
    CUipcMemHandle h;
    CUdeviceptr p;
    struct pipes pipes;

    part(&pipes, give_and_wait);
    cuda_start(0);
    get(pipes.to_parent[0], &h, sizeof h);
    GOOD(cuIpcOpenMemHandle(&p, h, 1));
    put(pipes.to_child[1], "", 1);
    finish(&pipes, 0);
    *(volatile char *)host_pointer(p) = 1;
}

static void refused(void)
{
    CUipcMemHandle h = {{0}};
    CUdeviceptr p;
    _Bool capable = 1;

    cuda_start(0);
    p = cuda_alloc(SIZE);
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuIpcGetMemHandle(&h, p));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuIpcOpenMemHandle(&p, h, 1));
    GOOD(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
    CHECK(!capable);
}

static const struct gpu_case cases[] = {
    {"shared", shared, NULL, NULL, 0},
    {"killed owner", killed_owner, NULL, NULL, 0},
    {"access of the CPU", cpu_access, NULL, NULL, SIGSEGV},
    {"refused", refused, "no-ipc", NULL, 0},
};

int main(void)
{
    return RUN_CASES(cases);
}
