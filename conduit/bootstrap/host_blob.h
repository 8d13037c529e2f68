/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The blobs of all ranks of a host in one: what they have in common is in it once. Ranks of a host
 * describe the same host, ports and settings, and differ in a few words. Pure functions, no state.
 * A blob comes from another process, so its reader checks it.
 *
 * In it, in native byte order: struct tk_host_blob; its runs of ranks, ascending; the blob of the
 * first rank. With two ranks and more: a bit for each word of four bytes in which any other blob of
 * that size differs from it; then for each other rank these words of its blob, in order of rank. If
 * there are blobs of other sizes, a table of sizes of all ranks precedes, and these blobs are there
 * as they are. */
#ifndef TK_HOST_BLOB_H
#define TK_HOST_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/bootstrap.h"

enum { tk_host_word = 4, tk_host_blob_version = 1 };

struct tk_host_blob {
    uint32_t version;
    uint32_t ranks, runs;
    uint32_t size;  /* of the first rank's blob */
    uint32_t words; /* that differ */
    uint32_t odd;   /* blobs of other sizes, */
    uint64_t extra; /* and their bytes */
};

/* Ranks first, first + stride, ... */
struct tk_host_run {
    uint32_t first, count, stride;
};

/* The bytes of a host's blob; `head` is complete. Of equally large blobs only. */
size_t tk_host_blob_bytes(const struct tk_host_blob *head);

/* Packs `blobs`, in the order of `ranks`, which ascends; to be freed. NULL: out of memory. */
void *tk_host_pack(const uint32_t *ranks, const struct tk_bootstrap_blob *blobs, uint32_t count,
                   size_t *size);

/* Sets sizes[rank] for each rank of a host's blob, if it is sound and each of its ranks is below
 * `ranks` and has no size yet (tk_host_no_size). */
#define tk_host_no_size UINT64_MAX
bool tk_host_read_sizes(const struct tk_bootstrap_blob *packed, uint64_t *sizes, uint32_t ranks);

/* Writes the blob of each of its ranks to where place(rank, table) says. After
 * tk_host_read_sizes(). */
void tk_host_unpack(const struct tk_bootstrap_blob *packed, void *(*place)(uint32_t, void *),
                    void *table);

#endif
