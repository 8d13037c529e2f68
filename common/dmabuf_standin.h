/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The agreement between contrib/softgpu, which exports memory of its devices, and contrib/softhca,
 * which registers it, in place of the kernel's dma-buf and peer memory. A stand-in for a dma-buf is
 * a descriptor of the allocation's memfd, opened for reading and writing for this export alone: its
 * file position is where the exported range begins. */
#ifndef TK_DMABUF_STANDIN_H
#define TK_DMABUF_STANDIN_H

#include <stddef.h>
#include <sys/types.h>

/* What /proc/self/fd/N of such a descriptor points to begins with this. */
#define TK_DMABUF_STANDIN_LINK "/memfd:softgpu-dmabuf"

/* The name for memfd_create(). */
#define TK_DMABUF_STANDIN_MEMFD "softgpu-dmabuf"

/* A function of this name in the vendor's library stands in for a peer memory client: a descriptor
 * as above for [addr, addr + size), to be closed by the caller. 0, or an errno. */
#define TK_PEER_MEMORY_STANDIN "softgpu_export"
typedef int tk_peer_memory_standin(const void *addr, size_t size, int *fd);

#endif
