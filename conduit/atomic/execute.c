/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes an operation on memory of this process, for ourselves and for others, with the functions
 * that clients inline. No state, no lock. */
#include "config.h"

#include "atomic/atomic_private.h"
#include "base/report.h"

uint64_t tk_atomic_execute(gex_DT_t dt, gex_OP_t opcode, void *at, uint64_t a, uint64_t b)
{
    const uint32_t a32 = (uint32_t)a, b32 = (uint32_t)b;
    switch (dt) {
    case GEX_DT_I32:
        return (uint32_t)trunkline_ad_do_I32(at, opcode, (int32_t)a32, (int32_t)b32);
    case GEX_DT_U32:
        return trunkline_ad_do_U32(at, opcode, a32, b32);
    case GEX_DT_I64:
        return (uint64_t)trunkline_ad_do_I64(at, opcode, (int64_t)a, (int64_t)b);
    case GEX_DT_U64:
        return trunkline_ad_do_U64(at, opcode, a, b);
    case GEX_DT_FLT:
        return trunkline_ad_bits_float(trunkline_ad_do_FLT(
            at, opcode, trunkline_ad_value_float(a32), trunkline_ad_value_float(b32)));
    case GEX_DT_DBL:
        return trunkline_ad_bits_double(trunkline_ad_do_DBL(
            at, opcode, trunkline_ad_value_double(a), trunkline_ad_value_double(b)));
    default:
        tk_panic("an atomic operation of type 0x%x", dt);
    }
}
