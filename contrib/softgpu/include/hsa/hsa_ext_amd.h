/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of AMD's HSA runtime that softgpu has: dma-bufs of HIP's memory (ROCm 5.3 and later,
 * which Debian 12 does not have). Signatures from the public documentation. */
#ifndef SGPU_HSA_H
#define SGPU_HSA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum {
    HSA_STATUS_SUCCESS = 0x0,
    HSA_STATUS_ERROR = 0x1000,
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
    HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003,
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
    HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B
} hsa_status_t;

hsa_status_t hsa_init(void);
hsa_status_t hsa_shut_down(void);
/* *offset is where ptr is in the dma-buf. */
hsa_status_t hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *dmabuf,
                                            uint64_t *offset);
hsa_status_t hsa_amd_portable_close_dmabuf(int dmabuf);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
