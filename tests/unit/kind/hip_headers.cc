// SPDX-License-Identifier: BSD-3-Clause
//
// conduit/kind/hip_api.h beside AMD's own headers, by the compiler; C++ because C can't look at the
// parameters of a function. Compiled by headers.sh where the headers are installed.
#define __HIP_PLATFORM_AMD__          1
#define __HIP_PLATFORM_HCC__          1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1
#include <hip/hip_runtime_api.h>

#include "kind/hip_api.h"
#include "same.h"

#define COMPARE(member, symbol, is_optional, parameters)                                           \
    static_assert(same<tk_hip_error parameters, decltype(symbol)>::value, #symbol);
TK_FUNCTIONS_OF_HIP(COMPARE)
static_assert(same<tk_hip_error_string, decltype(hipGetErrorString)>::value, "hipGetErrorString");

static_assert(sizeof(tk_hip_uuid) == sizeof(hipUUID), "hipUUID");
static_assert(sizeof(tk_hip_ipc_handle) == sizeof(hipIpcMemHandle_t), "hipIpcMemHandle_t");
static_assert(sizeof(tk_hip_pointer) == sizeof(hipPointerAttribute_t), "hipPointerAttribute_t");
static_assert(SAME_PLACE(tk_hip_pointer, device, hipPointerAttribute_t, device), "device");
static_assert(SAME_PLACE(tk_hip_pointer, is_managed, hipPointerAttribute_t, isManaged), "managed");
static_assert(offsetof(tk_hip_pointer, type) == 0, "type, which ROCm 6 renamed");

static_assert(TK_HIP_SUCCESS == (int)hipSuccess, "hipSuccess");
static_assert(TK_HIP_OUT_OF_MEMORY == (int)hipErrorOutOfMemory, "hipErrorOutOfMemory");
static_assert(TK_HIP_NOT_READY == (int)hipErrorNotReady, "hipErrorNotReady");
static_assert(TK_HIP_COPY_TO_DEVICE == (int)hipMemcpyHostToDevice, "hipMemcpyHostToDevice");
static_assert(TK_HIP_COPY_TO_HOST == (int)hipMemcpyDeviceToHost, "hipMemcpyDeviceToHost");
static_assert(TK_HIP_COPY_INSIDE == (int)hipMemcpyDeviceToDevice, "hipMemcpyDeviceToDevice");
static_assert(TK_HIP_STREAM_NON_BLOCKING == hipStreamNonBlocking, "hipStreamNonBlocking");
static_assert(TK_HIP_CAPTURE_RELAXED == (int)hipStreamCaptureModeRelaxed, "CaptureModeRelaxed");
static_assert(sizeof(hipStreamCaptureMode) == sizeof(int), "hipStreamCaptureMode");
static_assert(TK_HIP_EVENT_DISABLE_TIMING == hipEventDisableTiming, "hipEventDisableTiming");
static_assert(TK_HIP_HOST_REGISTER_PORTABLE == hipHostRegisterPortable, "hipHostRegisterPortable");

// Values that differ in ROCm 6
static_assert((int)hipMemoryTypeDevice ==
                  (HIP_VERSION_MAJOR < 6 ? TK_HIP_MEMORY_DEVICE_OF_5 : TK_HIP_MEMORY_DEVICE_OF_6),
              "hipMemoryTypeDevice");
static_assert(hipIpcMemLazyEnablePeerAccess ==
                  (HIP_VERSION_MAJOR < 6 ? TK_HIP_IPC_FLAGS_OF_5 : TK_HIP_IPC_FLAGS_OF_6),
              "hipIpcMemLazyEnablePeerAccess");
