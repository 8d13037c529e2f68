/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What softgpu exports in place of a dma-buf, and how softhca registers it.
 *
 * The descriptor refers to a memfd of the name below: /proc/self/fd/N links to "/memfd:" that name.
 * It is a file description of its own, whose position is the offset of the exported range in the
 * memfd: lseek(fd, 0, SEEK_CUR). Offset X of the dma-buf is byte position + X of the memfd. A
 * description carries nothing else, and the importer must not move the position.
 *
 * Peer memory, where a device address is registered without a dma-buf, is a function that the
 * stand-ins for libcuda.so.1 and libamdhip64.so.5 export: TK_PEERMEM_FUNCTION of type
 * tk_peermem_export. It returns 0 and a descriptor as above, which the caller closes, with its
 * position in *offset; EINVAL for an address that is not device memory of this library or a range
 * that leaves its allocation; ENOMEM if the BAR is full; ENOTSUP without peer memory.
 *
 * The device counts the range against its BAR while the file description is open or mapped. */
#ifndef TK_DMABUF_STANDIN_H
#define TK_DMABUF_STANDIN_H

#include <stddef.h>
#include <sys/types.h>

#define TK_DMABUF_NAME      "softgpu-dmabuf"
#define TK_DMABUF_LINK      "/memfd:" TK_DMABUF_NAME
#define TK_PEERMEM_FUNCTION "softgpu_export"

typedef int (*tk_peermem_export)(const void *address, size_t length, int *fd, off_t *offset);

#endif
