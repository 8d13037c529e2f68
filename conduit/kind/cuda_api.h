/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the library calls of CUDA's driver (libcuda.so.1), declared from NVIDIA's public "CUDA
 * Driver API" reference: its headers are not needed to build. A name with a version is that of the
 * symbol, which a header maps the plain name to. */
#ifndef TK_KIND_CUDA_API_H
#define TK_KIND_CUDA_API_H

#include <stddef.h>

typedef int tk_cu_result;
typedef int tk_cu_device;
typedef unsigned long long tk_cu_pointer; /* CUdeviceptr of 64-bit systems */
typedef struct CUctx_st *tk_cu_context;
typedef struct CUstream_st *tk_cu_stream;
typedef struct CUevent_st *tk_cu_event;

typedef struct {
    char bytes[16];
} tk_cu_uuid;

typedef struct {
    char reserved[64];
} tk_cu_ipc_handle;

/* CUDA_MEMCPY2D_v2 */
typedef struct {
    size_t from_x, from_y;
    int from_type; /* CUmemorytype */
    const void *from_host;
    tk_cu_pointer from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    void *to_host;
    tk_cu_pointer to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
} tk_cu_copy_2d;

/* CUresult */
enum { TK_CU_SUCCESS = 0, TK_CU_INVALID_VALUE = 1, TK_CU_OUT_OF_MEMORY = 2, TK_CU_NOT_READY = 600 };

/* CUdevice_attribute */
enum {
    TK_CU_DEVICE_PCI_BUS_ID = 33,
    TK_CU_DEVICE_PCI_DEVICE_ID = 34,
    TK_CU_DEVICE_UNIFIED_ADDRESSING = 41,
    TK_CU_DEVICE_PCI_DOMAIN_ID = 50,
    TK_CU_DEVICE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117, /* bits */
    TK_CU_DEVICE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
    TK_CU_DEVICE_DMA_BUF_SUPPORTED = 124
};

/* CUGPUDirectRDMAWritesOrdering: who can consume a remote write without a flush */
enum { TK_CU_ORDERING_NONE = 0, TK_CU_ORDERING_OWNER = 100, TK_CU_ORDERING_ALL_DEVICES = 200 };

/* cuFlushGPUDirectRDMAWrites() works; its target and its scope */
enum { TK_CU_FLUSH_OPTION_HOST = 1 };
enum { TK_CU_FLUSH_TARGET_CURRENT_CTX = 0 };
enum { TK_CU_FLUSH_TO_OWNER = 100 };

/* CUpointer_attribute */
enum {
    TK_CU_POINTER_MEMORY_TYPE = 2,       /* unsigned */
    TK_CU_POINTER_SYNC_MEMOPS = 6,       /* unsigned */
    TK_CU_POINTER_BUFFER_ID = 7,         /* unsigned long long */
    TK_CU_POINTER_IS_MANAGED = 8,        /* unsigned */
    TK_CU_POINTER_DEVICE_ORDINAL = 9,    /* int */
    TK_CU_POINTER_RANGE_START_ADDR = 11, /* void * */
    TK_CU_POINTER_RANGE_SIZE = 12        /* size_t */
};

enum { TK_CU_MEMORYTYPE_HOST = 1, TK_CU_MEMORYTYPE_DEVICE = 2 };
enum { TK_CU_STREAM_NON_BLOCKING = 1 };
enum { TK_CU_CAPTURE_RELAXED = 2 }; /* CUstreamCaptureMode, an int */
enum { TK_CU_EVENT_DISABLE_TIMING = 2 };
enum { TK_CU_MEMHOSTREGISTER_PORTABLE = 1 };
enum { TK_CU_IPC_LAZY_ENABLE_PEER_ACCESS = 1 };
enum { TK_CU_RANGE_HANDLE_DMA_BUF_FD = 1 };

/* f(member, symbol, is_optional, parameters): all return CUresult. A function is optional if it
 * came with CUDA 11.7 (cuMemGetHandleForAddressRange) or if the library works without it. */
/* clang-format off */
#define TK_FUNCTIONS_OF_CUDA(f)                                                                    \
    f(init, cuInit, false, (unsigned flags))                                                     \
    f(error_string, cuGetErrorString, false, (tk_cu_result error, const char **text))            \
    f(device_get_count, cuDeviceGetCount, false, (int *count))                                   \
    f(device_get, cuDeviceGet, false, (tk_cu_device *device, int ordinal))                       \
    f(device_get_name, cuDeviceGetName, false, (char *name, int size, tk_cu_device device))      \
    f(device_get_uuid, cuDeviceGetUuid, true, (tk_cu_uuid *uuid, tk_cu_device device))           \
    f(device_get_attribute, cuDeviceGetAttribute, false,                                         \
      (int *value, int attribute, tk_cu_device device))                                            \
    f(context_retain, cuDevicePrimaryCtxRetain, false,                                           \
      (tk_cu_context *context, tk_cu_device device))                                               \
    f(context_release, cuDevicePrimaryCtxRelease_v2, false, (tk_cu_device device))               \
    f(context_push, cuCtxPushCurrent_v2, false, (tk_cu_context context))                         \
    f(context_pop, cuCtxPopCurrent_v2, false, (tk_cu_context *context))                          \
    f(exchange_capture, cuThreadExchangeStreamCaptureMode, true, (int *mode))                    \
    f(mem_alloc, cuMemAlloc_v2, false, (tk_cu_pointer *address, size_t size))                    \
    f(mem_get_info, cuMemGetInfo_v2, true, (size_t *free_bytes, size_t *total)) \
    f(mem_free, cuMemFree_v2, false, (tk_cu_pointer address))                                    \
    f(mem_get_address_range, cuMemGetAddressRange_v2, false,                                     \
      (tk_cu_pointer *base, size_t *size, tk_cu_pointer address))                                  \
    f(pointer_get_attribute, cuPointerGetAttribute, false,                                       \
      (void *value, int attribute, tk_cu_pointer address))                                         \
    f(pointer_set_attribute, cuPointerSetAttribute, true,                                        \
      (const void *value, int attribute, tk_cu_pointer address))                                   \
    f(stream_create, cuStreamCreate, false, (tk_cu_stream *stream, unsigned flags))              \
    f(stream_destroy, cuStreamDestroy_v2, false, (tk_cu_stream stream))                          \
    f(stream_synchronize, cuStreamSynchronize, false, (tk_cu_stream stream))                     \
    f(event_create, cuEventCreate, false, (tk_cu_event *event, unsigned flags))                  \
    f(event_destroy, cuEventDestroy_v2, false, (tk_cu_event event))                              \
    f(event_record, cuEventRecord, false, (tk_cu_event event, tk_cu_stream stream))              \
    f(event_query, cuEventQuery, false, (tk_cu_event event))                                     \
    f(copy_to_device, cuMemcpyHtoDAsync_v2, false,                                               \
      (tk_cu_pointer to, const void *from, size_t size, tk_cu_stream stream))                      \
    f(copy_to_host, cuMemcpyDtoHAsync_v2, false,                                                 \
      (void *to, tk_cu_pointer from, size_t size, tk_cu_stream stream))                            \
    f(copy_inside, cuMemcpyDtoDAsync_v2, false,                                                  \
      (tk_cu_pointer to, tk_cu_pointer from, size_t size, tk_cu_stream stream))                    \
    f(copy_between, cuMemcpyPeerAsync, false,                                                    \
      (tk_cu_pointer to, tk_cu_context to_context, tk_cu_pointer from, tk_cu_context from_context, \
       size_t size, tk_cu_stream stream))                                                          \
    f(copy_2d, cuMemcpy2DAsync_v2, true, (const tk_cu_copy_2d *copy, tk_cu_stream stream))       \
    f(ipc_get, cuIpcGetMemHandle, true, (tk_cu_ipc_handle *handle, tk_cu_pointer address))       \
    f(ipc_open, cuIpcOpenMemHandle_v2, true,                                                     \
      (tk_cu_pointer *address, tk_cu_ipc_handle handle, unsigned flags))                           \
    f(ipc_close, cuIpcCloseMemHandle, true, (tk_cu_pointer address))                             \
    f(export_range, cuMemGetHandleForAddressRange, true,                                         \
      (void *handle, tk_cu_pointer address, size_t size, int type, unsigned long long flags))      \
    f(flush_writes, cuFlushGPUDirectRDMAWrites, true, (int target, int scope))                   \
    f(host_register, cuMemHostRegister_v2, true, (void *base, size_t size, unsigned flags))      \
    f(host_unregister, cuMemHostUnregister, true, (void *base))
/* clang-format on */

#endif
