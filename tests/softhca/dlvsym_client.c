/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that is not linked with libibverbs but opens it at run time and asks for functions by
 * name and version, as some middleware does. replace.sh runs it on the replacement library.
 * usage: byversion here|absent    (is there a libibverbs of the host behind it?) */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_query_port

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *library;

static void *function(const char *name, const char *version)
{
    void *f = dlvsym(library, name, version);

    if (!f) {
        printf("%s@%s: %s\n", name, version, dlerror());
        exit(1);
    }
    return f;
}

#define VERB(name) ((__typeof__(name) *)function(#name, "IBVERBS_1.1"))

/* Our own functions, at the versions that programs of today ask for. */
static void own(void)
{
    struct ibv_device **list = VERB(ibv_get_device_list)(NULL);
    struct ibv_device_attr attr;
    struct ibv_context *ctx;
    struct ibv_pd *pd;

    CHECK(list && list[0]);
    CHECK(strcmp(VERB(ibv_get_device_name)(list[0]), "softhca0") == 0);
    ctx = VERB(ibv_open_device)(list[0]);
    CHECK(ctx);
    VERB(ibv_free_device_list)(list);
    CHECK(VERB(ibv_query_device)(ctx, &attr) == 0 && attr.phys_port_cnt == 1);
    pd = VERB(ibv_alloc_pd)(ctx);
    CHECK(pd);
    CHECK(VERB(ibv_dealloc_pd)(pd) == 0);
    CHECK(VERB(ibv_close_device)(ctx) == 0);
}

/* The old interface has other structures: only the host's library implements it. */
static void old(void)
{
    CHECK(function("ibv_open_device", "IBVERBS_1.0") != function("ibv_open_device", "IBVERBS_1.1"));
    CHECK(function("ibv_reg_mr", "IBVERBS_1.0") != function("ibv_reg_mr", "IBVERBS_1.1"));
    CHECK(dlsym(library, "ibv_open_device") == function("ibv_open_device", "IBVERBS_1.1"));
}

/* Functions that we do not implement reach the host's, with their arguments and results; the second
 * call of each takes another path than the first. */
static void forwarded(void)
{
    int (*mult)(enum ibv_rate) = function("ibv_rate_to_mult", "IBVERBS_1.0");
    enum ibv_rate (*rate)(int) = function("mbps_to_ibv_rate", "IBVERBS_1.1");

    for (int i = 0; i < 2; i++) {
        CHECK(strcmp(VERB(ibv_wc_status_str)(IBV_WC_SUCCESS), "success") == 0);
        CHECK(mult(IBV_RATE_20_GBPS) == 8);
        CHECK(rate(10312) == IBV_RATE_10_GBPS || rate(10000) == IBV_RATE_10_GBPS);
        CHECK(VERB(ibv_fork_init)() == 0);
    }
}

/* Without the host's library each fails as its kind of function does; softhca names statuses
 * itself. */
static void absent(void)
{
    int (*mult)(enum ibv_rate) = function("ibv_rate_to_mult", "IBVERBS_1.0");
    const char *(*sysfs)(void) = function("ibv_get_sysfs_path", "IBVERBS_1.0");
    void *(*old_list)(int *) = function("ibv_get_device_list", "IBVERBS_1.0");
    int n;

    for (int i = 0; i < 2; i++) {
        CHECK(strcmp(VERB(ibv_wc_status_str)(IBV_WC_SUCCESS), "success") == 0);
        CHECK(strcmp(VERB(ibv_wc_status_str)(IBV_WC_TM_RNDV_INCOMPLETE + 1), "unknown status") ==
              0);
        CHECK(mult(IBV_RATE_20_GBPS) == -1);
        CHECK(VERB(ibv_fork_init)() == ENOSYS);
        errno = 0;
        CHECK(sysfs() == NULL && errno == ENOSYS);
        CHECK(old_list(&n) == NULL);
    }
}

int main(int argc, char **argv)
{
    library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    own();
    old();
    if (argc > 1 && strcmp(argv[1], "absent") == 0)
        absent();
    else
        forwarded();
    /* The helper thread runs on, so the code must stay. */
    CHECK(dlclose(library) == 0);
    CHECK(dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL);
    return 0;
}
