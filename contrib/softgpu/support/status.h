/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Results of calls. CUDA and HIP give the same numbers to the same errors (NVIDIA's documentation
 * of the driver API, AMD's of HIP), so one number serves both. No state. */
#ifndef SGPU_STATUS_H
#define SGPU_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#define SGPU_STATUSES(X)                                                                           \
    X(OK, 0, "SUCCESS", "Success", "no error")                                                     \
    X(INVALID_VALUE, 1, "INVALID_VALUE", "ErrorInvalidValue", "invalid argument")                  \
    X(OUT_OF_MEMORY, 2, "OUT_OF_MEMORY", "ErrorOutOfMemory", "out of memory")                      \
    X(NOT_INITIALIZED, 3, "NOT_INITIALIZED", "ErrorNotInitialized", "initialization error")        \
    X(DEINITIALIZED, 4, "DEINITIALIZED", "ErrorDeinitialized", "driver shutting down")             \
    X(NO_DEVICE, 100, "NO_DEVICE", "ErrorNoDevice", "no device is detected")                       \
    X(INVALID_DEVICE, 101, "INVALID_DEVICE", "ErrorInvalidDevice", "invalid device ordinal")       \
    X(INVALID_CONTEXT, 201, "INVALID_CONTEXT", "ErrorInvalidContext", "invalid device context")    \
    X(MAP_FAILED, 205, "MAP_FAILED", "ErrorMapFailed", "mapping of buffer object failed")          \
    X(ECC, 214, "ECC_UNCORRECTABLE", "ErrorECCNotCorrectable", "uncorrectable ECC error")          \
    X(PEER_UNSUPPORTED, 217, "PEER_ACCESS_UNSUPPORTED", "ErrorPeerAccessUnsupported",              \
      "peer access is not supported between these two devices")                                    \
    X(INVALID_HANDLE, 400, "INVALID_HANDLE", "ErrorInvalidHandle", "invalid resource handle")      \
    X(NOT_FOUND, 500, "NOT_FOUND", "ErrorNotFound", "named symbol not found")                      \
    X(NOT_READY, 600, "NOT_READY", "ErrorNotReady", "device not ready")                            \
    X(ILLEGAL_ADDRESS, 700, "ILLEGAL_ADDRESS", "ErrorIllegalAddress",                              \
      "an illegal memory access was encountered")                                                  \
    X(PEER_ENABLED, 704, "PEER_ACCESS_ALREADY_ENABLED", "ErrorPeerAccessAlreadyEnabled",           \
      "peer access is already enabled")                                                            \
    X(PEER_NOT_ENABLED, 705, "PEER_ACCESS_NOT_ENABLED", "ErrorPeerAccessNotEnabled",               \
      "peer access has not been enabled")                                                          \
    X(CONTEXT_DESTROYED, 709, "CONTEXT_IS_DESTROYED", "ErrorContextIsDestroyed",                   \
      "context is destroyed")                                                                      \
    X(HOST_REGISTERED, 712, "HOST_MEMORY_ALREADY_REGISTERED", "ErrorHostMemoryAlreadyRegistered",  \
      "part or all of the requested memory range is already mapped")                               \
    X(HOST_NOT_REGISTERED, 713, "HOST_MEMORY_NOT_REGISTERED", "ErrorHostMemoryNotRegistered",      \
      "pointer does not correspond to a registered memory region")                                 \
    X(LAUNCH_FAILED, 719, "LAUNCH_FAILED", "ErrorLaunchFailure", "unspecified launch failure")     \
    X(NOT_PERMITTED, 800, "NOT_PERMITTED", "ErrorNotPermitted", "operation not permitted")         \
    X(NOT_SUPPORTED, 801, "NOT_SUPPORTED", "ErrorNotSupported", "operation not supported")         \
    X(UNKNOWN, 999, "UNKNOWN", "ErrorUnknown", "unknown error")

enum sgpu_status {
#define SGPU_STATUS_NUMBER(name, number, cuda, hip, text) SGPU_##name = number,
    SGPU_STATUSES(SGPU_STATUS_NUMBER)
#undef SGPU_STATUS_NUMBER
};

struct sgpu_status_text {
    enum sgpu_status status;
    const char *cuda, *hip, *text; /* "CUDA_ERROR_UNKNOWN", "hipErrorUnknown", a sentence */
};

/* NULL: softgpu has no such error. */
const struct sgpu_status_text *sgpu_status_text(int status);
/* The error of a CUDA or HIP name; false: there is no such error, or it is success. */
bool sgpu_status_named(const char *name, enum sgpu_status *out);

#endif
