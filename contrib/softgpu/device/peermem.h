/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that the stand-ins export beside the vendor's: TK_PEERMEM_FUNCTION for a software HCA,
 * and for the stand-in for libhsa-runtime64.so.1 a dma-buf of the allocation that holds an address,
 * with the offset of the address in it. */
#ifndef SGPU_PEERMEM_H
#define SGPU_PEERMEM_H

#include <stddef.h>
#include <sys/types.h>

__attribute__((visibility("default"))) int softgpu_export(const void *address, size_t length,
                                                          int *fd, off_t *offset);
__attribute__((visibility("default"))) int softgpu_export_dmabuf(const void *address, size_t length,
                                                                 int *fd, off_t *offset);

#endif
