/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of reductions on arrays of built-in types: a table of loops that a compiler can
 * vectorise. No state. */
#include "config.h"

#include "collective/coll.h"

/* Integers are added and multiplied as unsigned ones: they wrap. */
#define KERNEL(NAME, TYPE, RESULT)                                                                 \
    static void NAME(const void *arg1, void *arg2_and_out, size_t count, const void *cdata)        \
    {                                                                                              \
        const TYPE *restrict x = arg1;                                                             \
        TYPE *restrict y = arg2_and_out;                                                           \
        (void)cdata;                                                                               \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = (RESULT);                                                                       \
    }

#define ARITHMETIC(SUFFIX, TYPE)                                                                   \
    KERNEL(add_##SUFFIX, TYPE, x[i] + y[i])                                                        \
    KERNEL(mult_##SUFFIX, TYPE, x[i] * y[i])
#define ORDER(SUFFIX, TYPE)                                                                        \
    KERNEL(min_##SUFFIX, TYPE, y[i] < x[i] ? y[i] : x[i])                                          \
    KERNEL(max_##SUFFIX, TYPE, y[i] > x[i] ? y[i] : x[i])
#define BITS(SUFFIX, TYPE)                                                                         \
    KERNEL(and_##SUFFIX, TYPE, x[i] & y[i])                                                        \
    KERNEL(or_##SUFFIX, TYPE, x[i] | y[i])                                                         \
    KERNEL(xor_##SUFFIX, TYPE, x[i] ^ y[i])

ARITHMETIC(32, uint32_t)
ARITHMETIC(64, uint64_t)
ARITHMETIC(flt, float)
ARITHMETIC(dbl, double)
ORDER(i32, int32_t)
ORDER(u32, uint32_t)
ORDER(i64, int64_t)
ORDER(u64, uint64_t)
ORDER(flt, float)
ORDER(dbl, double)
BITS(32, uint32_t)
BITS(64, uint64_t)

enum { ops = 7, types = 6 };

/* In the order of the bits of types and of `op_bits`. */
static const gex_Coll_ReduceFn_t kernels[types][ops] = {
    {add_32, mult_32, min_i32, max_i32, and_32, or_32, xor_32},
    {add_32, mult_32, min_u32, max_u32, and_32, or_32, xor_32},
    {add_64, mult_64, min_i64, max_i64, and_64, or_64, xor_64},
    {add_64, mult_64, min_u64, max_u64, and_64, or_64, xor_64},
    {add_flt, mult_flt, min_flt, max_flt, NULL, NULL, NULL},
    {add_dbl, mult_dbl, min_dbl, max_dbl, NULL, NULL, NULL},
};
static const gex_DT_t type_bits[types] = {GEX_DT_I32, GEX_DT_U32, GEX_DT_I64,
                                          GEX_DT_U64, GEX_DT_FLT, GEX_DT_DBL};
static const gex_OP_t op_bits[ops] = {GEX_OP_ADD, GEX_OP_MULT, GEX_OP_MIN, GEX_OP_MAX,
                                      GEX_OP_AND, GEX_OP_OR,   GEX_OP_XOR};

gex_Coll_ReduceFn_t tk_coll_kernel(gex_DT_t dt, gex_OP_t op)
{
    int t = 0, o = 0;
    while (t < types && type_bits[t] != dt)
        t++;
    while (o < ops && op_bits[o] != op)
        o++;
    return t < types && o < ops ? kernels[t][o] : NULL;
}

size_t tk_coll_type_size(gex_DT_t dt)
{
    return dt == GEX_DT_I32 || dt == GEX_DT_U32 || dt == GEX_DT_FLT ? 4 : 8;
}
