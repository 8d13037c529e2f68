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
    return !e->is_put && is_device_here(e) && e->nbytes <= tk_rma_scattered_max;
}

/* The HCA reaches the remote end without its owner's CPU. */
static enum tk_kind_path by_hca(const struct tk_kind_ends *e)
{
    bool is_staged = e->local == TK_KIND_LOCAL_DEVICE || may_scatter(e);
    return is_staged ? TK_KIND_BY_SLOT : TK_KIND_BY_HCA;
}

/* The remote end is an address here: host memory, or memory of a device of this process. */
static enum tk_kind_path by_copy(const struct tk_kind_ends *e)
{
    bool is_forced = e->way == TK_KIND_WAY_STAGED && is_device_here(e);
    return e->are_two_classes || is_forced ? TK_KIND_BY_SLOT : TK_KIND_BY_COPY;
}

static enum tk_kind_path to_host(const struct tk_kind_ends *e)
{
    bool is_direct = e->reach == TK_REACH_NETWORK && e->remote == TK_KIND_REMOTE_HOST &&
                     e->way != TK_KIND_WAY_STAGED;
    return is_direct ? by_hca(e) : TK_KIND_BY_SLOT;
}

static enum tk_kind_path to_device(const struct tk_kind_ends *e)
{
    if (e->way == TK_KIND_WAY_STAGED)
        return TK_KIND_BY_TARGET;
    if (e->remote == TK_KIND_REMOTE_IPC && !e->are_two_classes)
        return TK_KIND_BY_IPC;
    return e->remote == TK_KIND_REMOTE_KEYS ? by_hca(e) : TK_KIND_BY_TARGET;
}

enum tk_kind_path tk_kind_path(const struct tk_kind_ends *e)
{
    if (e->reach == TK_REACH_SELF || e->remote == TK_KIND_REMOTE_MAPPED)
        return by_copy(e);
    if (e->remote == TK_KIND_REMOTE_HOST || e->remote == TK_KIND_REMOTE_ON_DEMAND)
        return to_host(e);
    return to_device(e);
}

size_t tk_kind_piece_size(size_t nbytes, size_t slot)
{
    enum { overlapped = 4, least = 32 << 10 };
    size_t cut = tk_align_up(nbytes / overlapped + 1, 4096);
    return tk_min(slot, tk_max(cut, least));
}
