/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of open devices, used by several threads at once: the driver of fake_cuda.c fails when a
 * device that is open is opened again. */
#include "config.h"

#include <pthread.h>

#include "fake_cuda.h"
#include "kind/kind.h"
#include "unit.h"

enum { threads = 4, rounds = 2000 };

static pthread_barrier_t begin;

static void *use(void *failures)
{
    static const unsigned char uuid[16] = "aaaaaaaaaaaaaaa";
    const struct tk_kind_args args = {.gex_class = TK_KIND_CUDA_UVA, .ordinal = 0};
    struct tk_kind_why why;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < rounds; i++) {
        struct tk_kind_device *device = tk_kind_device_get(&args, &why);
        *(int *)failures += !device || tk_kind_device_like(TK_KIND_CUDA_UVA, uuid) != device;
        tk_kind_device_hold(device);
        tk_kind_device_put(device);
        tk_kind_device_put(device);
    }
    return NULL;
}

static void a_device_is_open_once_for_all_threads(void **state)
{
    pthread_t running[threads];
    int failures[threads] = {0};
    pthread_barrier_init(&begin, NULL, threads);
    fake_cuda.count = 2;
    fake_cuda.stack[fake_cuda.depth++] = 7;
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&running[i], NULL, use, &failures[i]), 0);
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
        assert_int_equal(failures[i], 0);
    }
    assert_int_equal(fake_cuda.retained[0], 0);
    assert_int_equal(fake_cuda.streams, 0);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(a_device_is_open_once_for_all_threads)};

UNIT_MAIN(tests)
