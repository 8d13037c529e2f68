/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the library calls of AMD's HIP runtime (libamdhip64.so) and of its HSA runtime, declared
 * from AMD's public reference, so that their headers are not needed to build.
 * tests/unit/kind/hip_headers.c compares with them where they are installed. */
#ifndef TK_KIND_HIP_API_H
#define TK_KIND_HIP_API_H

#include <stddef.h>
#include <stdint.h>

typedef int tk_hip_error;
typedef struct ihipStream_t *tk_hip_stream;
typedef struct ihipEvent_t *tk_hip_event;

typedef struct {
    char bytes[16];
} tk_hip_uuid;

typedef struct {
    char reserved[64];
} tk_hip_ipc_handle;

/* hipPointerAttribute_t. ROCm 6 renumbered the values of `type`. */
typedef struct {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int is_managed;
    unsigned flags;
} tk_hip_pointer;

/* hipError_t */
enum { TK_HIP_SUCCESS = 0, TK_HIP_OUT_OF_MEMORY = 2, TK_HIP_NOT_READY = 600 };

/* hipMemoryTypeDevice */
enum { TK_HIP_MEMORY_DEVICE_OF_5 = 1, TK_HIP_MEMORY_DEVICE_OF_6 = 2 };

/* hipMemcpyKind */
enum { TK_HIP_COPY_TO_DEVICE = 1, TK_HIP_COPY_TO_HOST = 2, TK_HIP_COPY_INSIDE = 3 };

enum { TK_HIP_STREAM_NON_BLOCKING = 1 };
enum { TK_HIP_CAPTURE_RELAXED = 2 }; /* hipStreamCaptureMode, an int */
enum { TK_HIP_EVENT_DISABLE_TIMING = 2 };
enum { TK_HIP_HOST_REGISTER_PORTABLE = 1 };
/* hipIpcMemLazyEnablePeerAccess: the only value that hipIpcOpenMemHandle() accepts */
enum { TK_HIP_IPC_FLAGS_OF_5 = 0, TK_HIP_IPC_FLAGS_OF_6 = 1 };

/* f(member, symbol, is_optional, parameters): all return hipError_t. */
/* clang-format off */
#define TK_FUNCTIONS_OF_HIP(f)                                                                   \
    f(init, hipInit, false, (unsigned flags))                                                    \
    f(get_version, hipRuntimeGetVersion, true, (int *version))                                   \
    f(exchange_capture, hipThreadExchangeStreamCaptureMode, true, (int *mode))                   \
    f(get_last_error, hipGetLastError, true, (void))                                             \
    f(get_device_count, hipGetDeviceCount, false, (int *count))                                  \
    f(get_device, hipGetDevice, false, (int *device))                                            \
    f(set_device, hipSetDevice, false, (int device))                                             \
    f(device_get_name, hipDeviceGetName, true, (char *name, int size, int device))               \
    f(device_get_uuid, hipDeviceGetUuid, true, (tk_hip_uuid *uuid, int device))                  \
    f(device_get_pci, hipDeviceGetPCIBusId, true, (char *text, int size, int device))            \
    f(mem_alloc, hipMalloc, false, (void **address, size_t size))                                \
    f(mem_get_info, hipMemGetInfo, true, (size_t *free_bytes, size_t *total)) \
    f(mem_free, hipFree, false, (void *address))                                                 \
    f(pointer_get_attributes, hipPointerGetAttributes, false,                                    \
      (tk_hip_pointer *pointer, const void *address))                                            \
    f(mem_get_address_range, hipMemGetAddressRange, false,                                       \
      (void **base, size_t *size, void *address))                                                \
    f(stream_create, hipStreamCreateWithFlags, false, (tk_hip_stream *stream, unsigned flags))   \
    f(stream_destroy, hipStreamDestroy, false, (tk_hip_stream stream))                           \
    f(stream_synchronize, hipStreamSynchronize, false, (tk_hip_stream stream))                   \
    f(event_create, hipEventCreateWithFlags, false, (tk_hip_event *event, unsigned flags))       \
    f(event_destroy, hipEventDestroy, false, (tk_hip_event event))                               \
    f(event_record, hipEventRecord, false, (tk_hip_event event, tk_hip_stream stream))           \
    f(event_query, hipEventQuery, false, (tk_hip_event event))                                   \
    f(copy_async, hipMemcpyAsync, false,                                                         \
      (void *to, const void *from, size_t size, int kind, tk_hip_stream stream))                 \
    f(copy_between, hipMemcpyPeerAsync, false,                                                   \
      (void *to, int to_device, const void *from, int from_device, size_t size,                  \
       tk_hip_stream stream))                                                                    \
    f(copy_2d, hipMemcpy2DAsync, true,                                                           \
      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,             \
       size_t height, int kind, tk_hip_stream stream))                                           \
    f(ipc_get, hipIpcGetMemHandle, true, (tk_hip_ipc_handle *handle, void *address))             \
    f(ipc_open, hipIpcOpenMemHandle, true,                                                       \
      (void **address, tk_hip_ipc_handle handle, unsigned flags))                                \
    f(ipc_close, hipIpcCloseMemHandle, true, (void *address))                                    \
    f(host_register, hipHostRegister, true, (void *base, size_t size, unsigned flags))           \
    f(host_unregister, hipHostUnregister, true, (void *base))
/* clang-format on */

/* Optional: hipGetErrorString(); hsa_amd_portable_export_dmabuf() of libhsa-runtime64.so.1, since
 * ROCm 5.3, which returns 0 (HSA_STATUS_SUCCESS). */
typedef const char *tk_hip_error_string(tk_hip_error error);
typedef int tk_hsa_export_dmabuf(const void *address, size_t size, int *fd, uint64_t *offset);

#endif
