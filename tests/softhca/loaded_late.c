/* SPDX-License-Identifier: BSD-3-Clause */
/* A program without verbs loads the library while threads already run, uses a device, unloads the
 * library, loads it again, then forks. Owns nothing; linked with no library of verbs. */
#include "config.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define VERB(name) ((__typeof__(&(name)))find(library, #name))

static _Atomic bool stop;

static void *find(void *library, const char *name)
{
    void *p = dlsym(library, name);

    CHECK(p != NULL);
    return p;
}

static void *run_beside(void *arg)
{
    while (!stop)
        usleep(100);
    return arg;
}

static void *load(void)
{
    char path[4096];
    void *library;

    snprintf(path, sizeof path, "%s/contrib/softhca/libsofthca.so", getenv("top_builddir"));
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    return library;
}

/* An own queue is polled through the context's table, as programs do. */
static void use(void *library)
{
    static char memory[4096];
    struct ibv_device **list = VERB(ibv_get_device_list)(NULL);
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_wc wc;
    struct ibv_mr *mr;

    CHECK(list && list[0]);
    ctx = VERB(ibv_open_device)(list[0]);
    CHECK(ctx != NULL);
    CHECK((pd = VERB(ibv_alloc_pd)(ctx)) != NULL);
    CHECK((cq = VERB(ibv_create_cq)(ctx, 4, NULL, NULL, 0)) != NULL);
    mr = VERB(ibv_reg_mr_iova2)(pd, memory, sizeof memory, (uintptr_t)memory,
                                IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr != NULL);
    CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
    CHECK(VERB(ibv_dereg_mr)(mr) == 0);
    CHECK(VERB(ibv_destroy_cq)(cq) == 0);
    CHECK(VERB(ibv_dealloc_pd)(pd) == 0);
    CHECK(VERB(ibv_close_device)(ctx) == 0);
    VERB(ibv_free_device_list)(list);
}

static void use_in_child(void *library)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        alarm(90);
        use(library);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    pthread_t thread;
    char fabric[64];
    void *library;

    if (!getenv("top_builddir")) {
        printf("run by make check, which says where the library is; skipped\n");
        return 77;
    }
    alarm(90);
    snprintf(fabric, sizeof fabric, "late-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    CHECK(dlsym(RTLD_DEFAULT, "ibv_open_device") == NULL); /* so it is late indeed */
    CHECK(pthread_create(&thread, NULL, run_beside, NULL) == 0);
    library = load();
    use(library);
    CHECK(dlclose(library) == 0);
    library = load();
    use(library);
    use_in_child(library);
    stop = true;
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
