/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See kind_path.h. Owns nothing; no lock; must depend only on its arguments. */
#include "config.h"

#include "base/bits.h"
#include "kind_rma/kind_path.h"

static bool is_device_here(const struct tk_kind_ends *e)
{
    return e->local != TK_KIND_LOCAL_HOST;
}

static bool may_scatter(const struct tk_kind_ends *e)
{
    return !e->is_put && is_device_here(e) && e->nbytes <= tk_kind_scattered_max;
}

/* The remote end is reached by the HCA without its owner's CPU. */
static enum tk_kind_path by_hca(const struct tk_kind_ends *e)
{
    bool is_staged = e->local == TK_KIND_LOCAL_DEVICE || may_scatter(e);
    return is_staged ? TK_KIND_LOCAL_STAGED : TK_KIND_RDMA;
}

/* An address here: of host memory, or of another device of this process. */
static enum tk_kind_path by_copy(const struct tk_kind_ends *e)
{
    bool is_forced = e->way == TK_KIND_WAY_STAGED && is_device_here(e);
    return e->are_two_classes || is_forced ? TK_KIND_LOCAL_STAGED : TK_KIND_COPY;
}

static enum tk_kind_path to_host(const struct tk_kind_ends *e)
{
    bool is_direct = e->reach == TK_KIND_NETWORK && e->remote == TK_KIND_REMOTE_HOST &&
                     e->way != TK_KIND_WAY_STAGED;
    return is_direct ? by_hca(e) : TK_KIND_LOCAL_STAGED;
}

static enum tk_kind_path to_device(const struct tk_kind_ends *e)
{
    bool is_staged = e->way == TK_KIND_WAY_STAGED || e->are_two_classes;
    if (e->remote == TK_KIND_REMOTE_IPC && !is_staged)
        return TK_KIND_IPC;
    if (e->remote == TK_KIND_REMOTE_KEYS && e->way != TK_KIND_WAY_STAGED)
        return by_hca(e);
    return TK_KIND_STAGED;
}

enum tk_kind_path tk_kind_path(const struct tk_kind_ends *e)
{
    if (e->reach == TK_KIND_OURSELVES || e->remote == TK_KIND_REMOTE_MAPPED)
        return by_copy(e);
    if (e->remote == TK_KIND_REMOTE_HOST || e->remote == TK_KIND_REMOTE_ON_DEMAND)
        return to_host(e);
    return to_device(e);
}

size_t tk_kind_piece_size(size_t nbytes, size_t slot)
{
    enum { overlapped = 4, least = 32 << 10 };
    size_t cut = tk_align_up((nbytes + overlapped - 1) / overlapped, 4096);
    return tk_min(slot, tk_max(cut, least));
}
