/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which path a transfer with device memory takes, and the size of its pieces. Pure, owns nothing:
 * facts go in, a path comes out. It must not look at a peer, a device or a setting. */
#ifndef TK_KIND_PATH_H
#define TK_KIND_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/transport.h"

enum tk_kind_path {
    TK_KIND_BY_COPY,   /* both ends are addresses here: one copy by a device */
    TK_KIND_BY_IPC,    /* the same with a neighbour's memory that the vendor's IPC mapped here */
    TK_KIND_BY_HCA,    /* RDMA from and to where the data lies */
    TK_KIND_BY_SLOT,   /* device copy from or to a local slot, and a put or get by the transport */
    TK_KIND_BY_TARGET, /* through a slot of the target, whose CPU takes part by messages */
    tk_kind_paths
};

/* GASNET_MK_WAY: its part about HCAs took effect when segments were registered. */
enum tk_kind_way { TK_KIND_WAY_AUTO, TK_KIND_WAY_STAGED };

enum tk_kind_local {
    TK_KIND_LOCAL_HOST,
    TK_KIND_LOCAL_DEVICE,
    TK_KIND_LOCAL_REGISTERED /* a device's memory that the HCA reaches */
};

enum tk_kind_remote {
    TK_KIND_REMOTE_HOST,      /* reached by the transport's rma() */
    TK_KIND_REMOTE_ON_DEMAND, /* the same, but parts of it may travel in messages */
    TK_KIND_REMOTE_MAPPED,    /* host memory with an address in this process */
    TK_KIND_REMOTE_DEVICE,    /* only its owner reaches it */
    TK_KIND_REMOTE_IPC,       /* a device's memory that the vendor's IPC mapped here */
    TK_KIND_REMOTE_KEYS       /* a device's memory that the HCA reaches */
};

/* At least one end is a device's memory. */
struct tk_kind_ends {
    enum tk_reach reach;
    enum tk_kind_local local;
    enum tk_kind_remote remote; /* not of ourselves */
    enum tk_kind_way way;
    bool are_two_classes; /* two devices of different vendors: neither copies for both */
    bool is_put;
    size_t nbytes;
};

enum tk_kind_path tk_kind_path(const struct tk_kind_ends *ends);

/* The piece size of a staged transfer: at most `slot`. A transfer of a few slots is cut into more
 * pieces than necessary, so that the stages of two pieces overlap. */
size_t tk_kind_piece_size(size_t nbytes, size_t slot);

#endif
