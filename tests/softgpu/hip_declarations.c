/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What softgpu believes of HIP: compiled with softgpu's header and with AMD's by declarations.sh.
 * Each function is assigned to a pointer of the type that softgpu implements. */
#include <stddef.h>
#include <hip/hip_runtime_api.h>

#define SAME(number, name) _Static_assert((long long)(name) == (number), #name)
#define TYPE(function, ...)                                                                        \
    extern hipError_t (*check_##function)(__VA_ARGS__);                                            \
    hipError_t (*check_##function)(__VA_ARGS__) = function

SAME(0, hipSuccess);
SAME(1, hipErrorInvalidValue);
SAME(2, hipErrorOutOfMemory);
SAME(3, hipErrorNotInitialized);
SAME(4, hipErrorDeinitialized);
SAME(100, hipErrorNoDevice);
SAME(101, hipErrorInvalidDevice);
SAME(201, hipErrorInvalidContext);
SAME(205, hipErrorMapFailed);
SAME(214, hipErrorECCNotCorrectable);
SAME(217, hipErrorPeerAccessUnsupported);
SAME(400, hipErrorInvalidHandle);
SAME(500, hipErrorNotFound);
SAME(600, hipErrorNotReady);
SAME(700, hipErrorIllegalAddress);
SAME(704, hipErrorPeerAccessAlreadyEnabled);
SAME(705, hipErrorPeerAccessNotEnabled);
SAME(709, hipErrorContextIsDestroyed);
SAME(712, hipErrorHostMemoryAlreadyRegistered);
SAME(713, hipErrorHostMemoryNotRegistered);
SAME(719, hipErrorLaunchFailure);
SAME(801, hipErrorNotSupported);
SAME(999, hipErrorUnknown);
SAME(0, hipMemcpyHostToHost);
SAME(1, hipMemcpyHostToDevice);
SAME(2, hipMemcpyDeviceToHost);
SAME(3, hipMemcpyDeviceToDevice);
SAME(4, hipMemcpyDefault);
SAME(0, hipMemoryTypeHost);
SAME(1, hipMemoryTypeDevice);
SAME(2, hipDeviceAttributeAsyncEngineCount);
SAME(3, hipDeviceAttributeCanMapHostMemory);
SAME(16, hipDeviceAttributeIntegrated);
SAME(63, hipDeviceAttributeMultiprocessorCount);
SAME(67, hipDeviceAttributePciBusId);
SAME(68, hipDeviceAttributePciDeviceId);
SAME(69, hipDeviceAttributePciDomainID);
SAME(85, hipDeviceAttributeUnifiedAddressing);
SAME(87, hipDeviceAttributeWarpSize);
SAME(10011, hipDeviceAttributeIsLargeBar);
SAME(1, hipStreamNonBlocking);
SAME(1, hipEventBlockingSync);
SAME(2, hipEventDisableTiming);
SAME(4, hipEventInterprocess);
SAME(0, hipIpcMemLazyEnablePeerAccess);
SAME(4, hipHostRegisterIoMemory);
SAME(64, sizeof(hipIpcMemHandle_t));
SAME(32, sizeof(hipPointerAttribute_t));
SAME(0, offsetof(hipPointerAttribute_t, memoryType));
SAME(4, offsetof(hipPointerAttribute_t, device));
SAME(8, offsetof(hipPointerAttribute_t, devicePointer));
SAME(16, offsetof(hipPointerAttribute_t, hostPointer));
SAME(24, offsetof(hipPointerAttribute_t, isManaged));
SAME(28, offsetof(hipPointerAttribute_t, allocationFlags));

TYPE(hipInit, unsigned);
TYPE(hipDriverGetVersion, int *);
TYPE(hipGetLastError, void);
TYPE(hipGetDeviceCount, int *);
TYPE(hipSetDevice, int);
TYPE(hipGetDevice, int *);
TYPE(hipDeviceGet, int *, int);
TYPE(hipDeviceGetName, char *, int, int);
TYPE(hipDeviceGetUuid, hipUUID *, int);
TYPE(hipDeviceGetPCIBusId, char *, int, int);
TYPE(hipDeviceGetByPCIBusId, int *, const char *);
TYPE(hipDeviceTotalMem, size_t *, int);
TYPE(hipDeviceGetAttribute, int *, hipDeviceAttribute_t, int);
TYPE(hipDeviceSynchronize, void);
TYPE(hipDeviceCanAccessPeer, int *, int, int);
TYPE(hipDeviceEnablePeerAccess, int, unsigned);
TYPE(hipDevicePrimaryCtxRetain, hipCtx_t *, int);
TYPE(hipDevicePrimaryCtxRelease, int);
TYPE(hipDevicePrimaryCtxGetState, int, unsigned *, int *);
TYPE(hipCtxGetCurrent, hipCtx_t *);
TYPE(hipCtxSetCurrent, hipCtx_t);
TYPE(hipCtxPushCurrent, hipCtx_t);
TYPE(hipCtxPopCurrent, hipCtx_t *);
TYPE(hipMemGetInfo, size_t *, size_t *);
TYPE(hipMalloc, void **, size_t);
TYPE(hipFree, void *);
TYPE(hipHostMalloc, void **, size_t, unsigned);
TYPE(hipHostFree, void *);
TYPE(hipHostRegister, void *, size_t, unsigned);
TYPE(hipHostUnregister, void *);
TYPE(hipHostGetDevicePointer, void **, void *, unsigned);
TYPE(hipPointerGetAttributes, hipPointerAttribute_t *, const void *);
TYPE(hipMemGetAddressRange, void **, size_t *, void *);
TYPE(hipIpcGetMemHandle, hipIpcMemHandle_t *, void *);
TYPE(hipIpcOpenMemHandle, void **, hipIpcMemHandle_t, unsigned);
TYPE(hipIpcCloseMemHandle, void *);
TYPE(hipMemcpy, void *, const void *, size_t, hipMemcpyKind);
TYPE(hipMemcpyWithStream, void *, const void *, size_t, hipMemcpyKind, hipStream_t);
TYPE(hipMemcpyAsync, void *, const void *, size_t, hipMemcpyKind, hipStream_t);
TYPE(hipMemcpyHtoD, void *, void *, size_t);
TYPE(hipMemcpyDtoH, void *, void *, size_t);
TYPE(hipMemcpyDtoD, void *, void *, size_t);
TYPE(hipMemcpyHtoDAsync, void *, void *, size_t, hipStream_t);
TYPE(hipMemcpyDtoHAsync, void *, void *, size_t, hipStream_t);
TYPE(hipMemcpyDtoDAsync, void *, void *, size_t, hipStream_t);
TYPE(hipMemcpyPeer, void *, int, const void *, int, size_t);
TYPE(hipMemcpy2DAsync, void *, size_t, const void *, size_t, size_t, size_t, hipMemcpyKind,
     hipStream_t);
TYPE(hipMemcpyPeerAsync, void *, int, const void *, int, size_t, hipStream_t);
TYPE(hipMemset, void *, int, size_t);
TYPE(hipMemsetD8, void *, unsigned char, size_t);
TYPE(hipMemsetD32, void *, int, size_t);
TYPE(hipMemsetAsync, void *, int, size_t, hipStream_t);
TYPE(hipMemsetD8Async, void *, unsigned char, size_t, hipStream_t);
TYPE(hipMemsetD32Async, void *, int, size_t, hipStream_t);
TYPE(hipStreamCreate, hipStream_t *);
TYPE(hipStreamCreateWithFlags, hipStream_t *, unsigned);
TYPE(hipStreamDestroy, hipStream_t);
TYPE(hipStreamQuery, hipStream_t);
TYPE(hipStreamSynchronize, hipStream_t);
TYPE(hipStreamWaitEvent, hipStream_t, hipEvent_t, unsigned);
TYPE(hipStreamGetFlags, hipStream_t, unsigned *);
TYPE(hipStreamAddCallback, hipStream_t, hipStreamCallback_t, void *, unsigned);
TYPE(hipEventCreate, hipEvent_t *);
TYPE(hipEventCreateWithFlags, hipEvent_t *, unsigned);
TYPE(hipEventRecord, hipEvent_t, hipStream_t);
TYPE(hipEventQuery, hipEvent_t);
TYPE(hipEventSynchronize, hipEvent_t);
TYPE(hipEventElapsedTime, float *, hipEvent_t, hipEvent_t);
TYPE(hipEventDestroy, hipEvent_t);
