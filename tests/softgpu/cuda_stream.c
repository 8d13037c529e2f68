/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams and events: what is asynchronous is so, and what is ordered is so. Copies are slowed down
 * by delay=, so that a program that does not wait sees the old bytes. */
#include <pthread.h>

#include "cuda_start.h"

enum { SIZE = 4096 };

static void *pinned_memory(int value)
{
    void *p;

    GOOD(cuMemAllocHost(&p, SIZE));
    memset(p, value, SIZE);
    return p;
}

static int all(const void *p, int value)
{
    for (int i = 0; i < SIZE; i++)
        if (((const unsigned char *)p)[i] != value)
            return 0;
    return 1;
}

/* A pinned copy returns before it is done, a pageable one is done. */
static void asynchronous(void)
{
    static char pageable[SIZE];
    unsigned char *host;
    CUdeviceptr p;
    CUstream s;

    cuda_start(0);
    host = pinned_memory(0);
    p = cuda_alloc(SIZE);
    GOOD(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    GOOD(cuMemsetD8(p, 5, SIZE));
    GOOD(cuCtxSynchronize());
    GOOD(cuMemcpyDtoHAsync(host, p, SIZE, s));
    CHECK(all(host, 0));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    GOOD(cuStreamSynchronize(s));
    GOOD(cuStreamQuery(s));
    CHECK(all(host, 5));
    GOOD(cuMemcpyDtoHAsync(pageable, p, SIZE, s));
    CHECK(all(pageable, 5));
    /* The source of a pageable copy may be used again at once, that of a pinned one may not. */
    memset(pageable, 6, SIZE);
    GOOD(cuMemcpyHtoDAsync(p, pageable, SIZE, s));
    memset(pageable, 7, SIZE);
    GOOD(cuStreamSynchronize(s));
    GOOD(cuMemcpyDtoH(pageable, p, SIZE));
    CHECK(all(pageable, 6));
    GOOD(cuMemcpyHtoDAsync(p, host, SIZE, s));
    memset(host, 8, SIZE);
    GOOD(cuStreamSynchronize(s));
    GOOD(cuMemcpyDtoH(pageable, p, SIZE));
    CHECK(all(pageable, 8));
}

/* Copies within a device and fills return early even in their synchronous form. */
static void device_copies(void)
{
    unsigned char *host;
    CUdeviceptr p, q;

    cuda_start(0);
    host = pinned_memory(1);
    p = cuda_alloc(SIZE);
    q = cuda_alloc(SIZE);
    GOOD(cuMemcpyHtoD(p, host, SIZE));
    GOOD(cuMemcpyDtoD(q, p, SIZE));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    GOOD(cuMemcpyDtoH(host, q, SIZE)); /* in order behind it */
    CHECK(all(host, 1));
    GOOD(cuMemsetD8(p, 2, SIZE));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    GOOD(cuMemFree(p)); /* waits */
    GOOD(cuStreamQuery(NULL));
}

/* Rows are copied; bytes between them do not change. */
static void two_dimensions(void)
{
    enum { WIDTH = 100, HEIGHT = 50, DEVICE_PITCH = 300, HOST_PITCH = 110 };
    static unsigned char plain[HEIGHT * HOST_PITCH], back[HEIGHT * DEVICE_PITCH];
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = plain,
                          .srcPitch = HOST_PITCH,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstPitch = DEVICE_PITCH,
                          .dstXInBytes = 7,
                          .dstY = 1,
                          .WidthInBytes = WIDTH,
                          .Height = HEIGHT - 1};
    CUdeviceptr p;

    cuda_start(0);
    for (int i = 0; i < HEIGHT * HOST_PITCH; i++)
        plain[i] = (unsigned char)(i % 251);
    p = copy.dstDevice = cuda_alloc(sizeof back);
    GOOD(cuMemsetD8(p, 9, sizeof back));
    GOOD(cuMemcpy2DAsync(&copy, NULL));
    GOOD(cuMemcpyDtoH(back, p, sizeof back));
    for (int i = 0; i < HEIGHT * DEVICE_PITCH; i++) {
        int y = i / DEVICE_PITCH - 1, x = i % DEVICE_PITCH - 7;
        CHECK(back[i] == (y >= 0 && x >= 0 && x < WIDTH ? plain[y * HOST_PITCH + x] : 9));
    }
    copy.dstY = 2; /* one row too many */
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&copy, NULL));
    copy.dstY = 0;
    copy.dstPitch = WIDTH - 1;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&copy, NULL));
    copy.dstPitch = 0x80000000;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&copy, NULL));
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstPitch = WIDTH;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync(&copy, NULL));
}

/* An event orders two streams: 0, then 1, then 2. */
static void events(void)
{
    unsigned char *one, *two, *out;
    CUstream a, b;
    CUevent e, f;
    CUdeviceptr p;
    float ms;

    cuda_start(0);
    one = pinned_memory(1);
    two = pinned_memory(2);
    out = pinned_memory(9);
    p = cuda_alloc(SIZE);
    GOOD(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    GOOD(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    GOOD(cuEventCreate(&e, 0));
    GOOD(cuEventCreate(&f, 0));
    GOOD(cuEventQuery(e)); /* not recorded */
    for (int i = 0; i < 20; i++) {
        GOOD(cuMemcpyHtoDAsync(p, one, SIZE, a));
        GOOD(cuEventRecord(e, a));
        GOOD(cuStreamWaitEvent(b, e, 0));
        GOOD(cuMemcpyHtoDAsync(p, two, SIZE, b));
        GOOD(cuMemcpyDtoHAsync(out, p, SIZE, b));
        GOOD(cuEventRecord(f, b));
        GOOD(cuEventSynchronize(f));
        GOOD(cuEventQuery(e));
        CHECK(all(out, 2));
    }
    GOOD(cuEventElapsedTime(&ms, e, f));
    CHECK(ms >= 0);
    GOOD(cuEventRecord(e, a));
    GOOD(cuEventDestroy(e));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(e));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuEventCreate(&e, CU_EVENT_INTERPROCESS | 2));
    GOOD(cuStreamDestroy(a));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(a));
}

/* The NULL stream orders blocking streams, and does not affect the others. */
static void null_stream(void)
{
    unsigned char *one, *out;
    CUstream s, apart;
    CUdeviceptr p;

    cuda_start(0);
    one = pinned_memory(1);
    out = pinned_memory(9);
    p = cuda_alloc(SIZE);
    GOOD(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    GOOD(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 10; i++) {
        GOOD(cuMemcpyHtoDAsync(p, one, SIZE, s));
        GOOD(cuMemcpyDtoHAsync(out, p, SIZE, NULL));
        GOOD(cuStreamSynchronize(NULL));
        CHECK(all(out, 1));
        GOOD(cuMemsetD8Async(p, (unsigned char)(i + 50), SIZE, NULL));
        GOOD(cuMemcpyDtoHAsync(out, p, SIZE, s));
        GOOD(cuStreamSynchronize(s));
        CHECK(all(out, i + 50));
    }
    GOOD(cuMemcpyHtoDAsync(p, one, SIZE, apart));
    GOOD(cuStreamSynchronize(NULL));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(apart));
    GOOD(cuCtxSynchronize());
    GOOD(cuStreamQuery(apart));
}

struct seen {
    int order, result;
    unsigned char *host;
};

static void look(void *p)
{
    struct seen *s = p;
    CUdeviceptr d;

    s->order = all(s->host, 1);
    s->result = (int)cuMemAlloc(&d, 1);
}

static void host_functions(void)
{
    struct seen s = {0, 0, NULL};
    CUstream stream;
    CUdeviceptr p;

    cuda_start(0);
    s.host = pinned_memory(9);
    p = cuda_alloc(SIZE);
    GOOD(cuStreamCreate(&stream, 0));
    GOOD(cuMemsetD8Async(p, 1, SIZE, stream));
    GOOD(cuMemcpyDtoHAsync(s.host, p, SIZE, stream));
    GOOD(cuLaunchHostFunc(stream, look, &s));
    GOOD(cuStreamSynchronize(stream));
    CHECK(s.order == 1 && s.result == CUDA_ERROR_NOT_PERMITTED);
}

/* Work in a stream completes even if the stream is destroyed. */
static void destroyed_stream(void)
{
    unsigned char *out;
    CUstream s;
    CUdeviceptr p;

    cuda_start(0);
    out = pinned_memory(9);
    p = cuda_alloc(SIZE);
    GOOD(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    GOOD(cuMemsetD8Async(p, 4, SIZE, s));
    GOOD(cuMemcpyDtoHAsync(out, p, SIZE, s));
    GOOD(cuStreamDestroy(s));
    for (int i = 0; i < 1000 && !all(out, 4); i++)
        sleep_ms(10);
    CHECK(all(out, 4));
}

/* Without ordered-streams, two streams run concurrently; with it, operations run in call order. */
static void two_streams(int *second_first)
{
    unsigned char *out;
    CUstream a, b;
    CUdeviceptr p;

    cuda_start(0);
    out = pinned_memory(0);
    p = cuda_alloc(SIZE);
    GOOD(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    GOOD(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 8; i++)
        GOOD(cuMemsetD8Async(p, 1, SIZE, a));
    GOOD(cuMemcpyDtoHAsync(out, p, SIZE, b));
    GOOD(cuStreamSynchronize(b));
    *second_first = cuStreamQuery(a) == CUDA_ERROR_NOT_READY;
}

static void concurrent(void)
{
    int second_first;

    two_streams(&second_first);
    CHECK(second_first);
}

static void in_order(void)
{
    int second_first;

    two_streams(&second_first);
    CHECK(!second_first);
}

static void bandwidth(void)
{
    struct timespec begin, end;
    static char host[2000000];
    CUdeviceptr p;

    cuda_start(0);
    p = cuda_alloc(sizeof host);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    GOOD(cuMemcpyHtoD(p, host, sizeof host));
    clock_gettime(CLOCK_MONOTONIC, &end);
    /* 2 MB at 20 MB/s */
    CHECK((double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9 >
          0.099);
}

static CUcontext shared_context;

static void *work(void *argument)
{
    unsigned char *host, *out;
    int value = (int)(intptr_t)argument;
    CUstream s;
    CUdeviceptr p;

    GOOD(cuCtxSetCurrent(shared_context));
    host = pinned_memory(value);
    out = pinned_memory(0);
    for (int i = 0; i < 100; i++) {
        p = cuda_alloc(SIZE);
        GOOD(cuStreamCreate(&s, (unsigned)i & 1));
        GOOD(cuMemcpyHtoDAsync(p, host, SIZE, s));
        GOOD(cuMemcpyDtoHAsync(out, p, SIZE, s));
        GOOD(cuStreamSynchronize(s));
        CHECK(all(out, value));
        memset(out, 0, SIZE);
        GOOD(cuMemcpyDtoH(out, p, SIZE));
        CHECK(all(out, value));
        GOOD(cuStreamDestroy(s));
        GOOD(cuMemFree(p));
    }
    return NULL;
}

static void many_threads(void)
{
    pthread_t t[4];

    shared_context = cuda_start(0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&t[i], NULL, work, (void *)(intptr_t)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

static const struct gpu_case cases[] = {
    {"asynchronous", asynchronous, NULL, "copy:ms=100", 0},
    {"copies of a device", device_copies, NULL, "copy:ms=100", 0},
    {"two dimensions", two_dimensions, "delay=500", NULL, 0},
    {"events", events, "delay=500", NULL, 0},
    {"NULL stream", null_stream, NULL, "copy:ms=5;copy:nth=31,ms=200", 0},
    {"functions of the host", host_functions, "delay=2000", NULL, 0},
    {"destroyed stream", destroyed_stream, "delay=20000", NULL, 0},
    {"concurrent", concurrent, NULL, "copy:ms=50", 0},
    {"ordered-streams", in_order, "ordered-streams", "copy:ms=50", 0},
    {"bandwidth", bandwidth, "bandwidth=20", NULL, 0},
    {"threads", many_threads, "delay=50", NULL, 0},
    {"threads, ordered", many_threads, "delay=50,ordered-streams", NULL, 0},
};

int main(void)
{
    return RUN_CASES(cases);
}
