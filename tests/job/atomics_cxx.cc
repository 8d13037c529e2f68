// SPDX-License-Identifier: BSD-3-Clause
// Remote atomics from C++17: every type, every operation that it has, as a constant and as a variable. Each rank has a
// word of its own in the segment of the next one.
#include <gasnet_ratomic.h>

#include <cstdint>
#include <cstdio>

namespace
{
gex_TM_t team;
gex_Rank_t peer;
char *there;

[[noreturn]] void fail(const char *what)
{
    std::fprintf(stderr, "FAILED: %s\n", what);
    gasnet_exit(1);
}

template <typename T, typename Op> void expect(Op op, T wanted, const char *what)
{
    T result = 0;
    gex_Event_Wait(op(&result));
    if (result != wanted)
        fail(what);
}

void start(int *argc, char ***argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;
    void *owner = nullptr;
    std::uintptr_t size = 0;
    if (gex_Client_Init(&client, &ep, &team, "CXX", argc, argv, 0) ||
        gex_Segment_Attach(&segment, team, GASNET_PAGESIZE))
        fail("start");
    peer = (gex_TM_QueryRank(team) + 1) % gex_TM_QuerySize(team);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, peer, &owner, nullptr, &size, 0));
    there = static_cast<char *>(owner);
}
} // namespace

// The value before is 6 each time.
#define ONE(DT, type, op, a, b)                                                                                                            \
    expect<type>([&](type *r) { return gex_AD_OpNB_##DT(ad, r, peer, there, GEX_OP_SET, 6, 0, 0); }, 0, #DT " SET");                       \
    expect<type>([&](type *r) { return gex_AD_OpNB_##DT(ad, r, peer, there, GEX_OP_##op, a, b, 0); },                                      \
                 type(GEX_OP_##op >= GEX_OP_FAND ? 6 : 0), #DT " " #op)
#define BOTH(DT, type, op, fetching, a, b, after)                                                                                          \
    ONE(DT, type, op, a, b);                                                                                                               \
    expect<type>([&](type *r) { return gex_AD_OpNB_##DT(ad, r, peer, there, GEX_OP_GET, 0, 0, 0); }, type(after), #DT " after " #op);      \
    ONE(DT, type, fetching, a, b);                                                                                                         \
    if (type r = 0; gex_AD_OpNBI_##DT(ad, &r, peer, there, get, 0, 0, 0) || (gex_NBI_Wait(GEX_EC_GET, 0), r != type(after)))               \
    fail(#DT " after " #fetching)
#define ARITHMETIC(DT, type)                                                                                                               \
    BOTH(DT, type, ADD, FADD, 3, 0, 9);                                                                                                    \
    BOTH(DT, type, SUB, FSUB, 2, 0, 4);                                                                                                    \
    BOTH(DT, type, MULT, FMULT, 5, 0, 30);                                                                                                 \
    BOTH(DT, type, MIN, FMIN, 1, 0, 1);                                                                                                    \
    BOTH(DT, type, MAX, FMAX, 8, 0, 8);                                                                                                    \
    BOTH(DT, type, INC, FINC, 0, 0, 7);                                                                                                    \
    BOTH(DT, type, DEC, FDEC, 0, 0, 5);                                                                                                    \
    BOTH(DT, type, SET, SWAP, 11, 0, 11);                                                                                                  \
    BOTH(DT, type, CAS, FCAS, 6, 12, 12)
#define BITWISE(DT, type)                                                                                                                  \
    BOTH(DT, type, AND, FAND, 3, 0, 2);                                                                                                    \
    BOTH(DT, type, OR, FOR, 1, 0, 7);                                                                                                      \
    BOTH(DT, type, XOR, FXOR, 7, 0, 1)
#define REALS                                                                                                                              \
    (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX | GEX_OP_INC | GEX_OP_DEC | GEX_OP_SET | GEX_OP_CAS)
#define INTEGERS (REALS | GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR)
#define TYPE(DT, type, ops, ...)                                                                                                           \
    do {                                                                                                                                   \
        volatile gex_OP_t get = GEX_OP_GET;                                                                                                \
        gex_AD_t ad = GEX_AD_INVALID;                                                                                                      \
        gex_AD_Create(&ad, team, GEX_DT_##DT, (ops) | GEX_OP_TO_FETCHING(ops) | GEX_OP_GET, 0);                                            \
        gex_AD_SetCData(ad, there);                                                                                                        \
        if (gex_AD_QueryCData(ad) != there || gex_AD_QueryTM(ad) != team || gex_AD_QueryDT(ad) != GEX_DT_##DT ||                           \
            !(gex_AD_QueryOps(ad) & GEX_OP_GET) || gex_AD_QueryFlags(ad) != 0)                                                             \
            fail("queries");                                                                                                               \
        __VA_ARGS__;                                                                                                                       \
        gex_AD_Destroy(ad);                                                                                                                \
    } while (0)

int main(int argc, char **argv)
{
    start(&argc, &argv);
    TYPE(I32, std::int32_t, INTEGERS, ARITHMETIC(I32, std::int32_t); BITWISE(I32, std::int32_t));
    TYPE(U32, std::uint32_t, INTEGERS, ARITHMETIC(U32, std::uint32_t); BITWISE(U32, std::uint32_t));
    TYPE(I64, std::int64_t, INTEGERS, ARITHMETIC(I64, std::int64_t); BITWISE(I64, std::int64_t));
    TYPE(U64, std::uint64_t, INTEGERS, ARITHMETIC(U64, std::uint64_t); BITWISE(U64, std::uint64_t));
    TYPE(FLT, float, REALS, ARITHMETIC(FLT, float));
    TYPE(DBL, double, REALS, ARITHMETIC(DBL, double));
    gasnet_exit(0);
}
