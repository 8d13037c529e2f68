/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See choose.h. No state of its own. */
#include "config.h"

#include "settings/settings.h"
#include "vector/choose.h"

/* One piece is an ordinary put or get. With several pieces the cost is packing if they are small,
 * which needs the target's CPU too, and posting if they are large. */
enum tk_vector_path tk_vector_choose(const struct tk_vector_facts *facts)
{
    if (facts->pieces < 2)
        return TK_VECTOR_BY_PIECES;
    size_t piece = facts->nbytes / facts->pieces;
    if (facts->is_remote_whole && facts->may_list && tk_settings.vis_remotecontig &&
        piece >= tk_settings.vis_list_min)
        return TK_VECTOR_BY_LISTS;
    if (facts->is_remote_whole && facts->may_stage && tk_settings.vis_remotecontig &&
        piece <= tk_settings.vis_gather_max)
        return TK_VECTOR_BY_STAGES;
    if (facts->may_pack && tk_settings.vis_ampipe &&
        (facts->is_slow || (piece <= tk_settings.vis_pack_max)))
        return TK_VECTOR_BY_MESSAGES;
    return TK_VECTOR_BY_PIECES;
}
