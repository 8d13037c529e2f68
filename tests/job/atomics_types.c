/* SPDX-License-Identifier: BSD-3-Clause */
/* Each operation of each type, on a word that this rank alone uses, against a serial model: as
 * event and implicit, by a variable (the library's function) and by a constant (inlined). */
#include "config.h"

#include "atomics.h"

#include <stdbool.h>
#include <string.h>

#define RUN 60 /* operations on a word */

static gex_Rank_t target;
static uint64_t seed;

/* The model: computes the new value. Arithmetic of signed types wraps around. */
#define MODEL_INTEGER(DT, type, unsigned_type)                                                     \
    static type model_##DT(gex_OP_t op, type was, type a, type b)                                  \
    {                                                                                              \
        unsigned_type u = (unsigned_type)was, v = (unsigned_type)a;                                \
        switch (op >= GEX_OP_FAND ? GEX_OP_TO_NONFETCHING(op) : op) {                              \
        case GEX_OP_AND:                                                                           \
            return (type)(u & v);                                                                  \
        case GEX_OP_OR:                                                                            \
            return (type)(u | v);                                                                  \
        case GEX_OP_XOR:                                                                           \
            return (type)(u ^ v);                                                                  \
        case GEX_OP_ADD:                                                                           \
            return (type)(u + v);                                                                  \
        case GEX_OP_SUB:                                                                           \
            return (type)(u - v);                                                                  \
        case GEX_OP_MULT:                                                                          \
            return (type)(u * v);                                                                  \
        case GEX_OP_INC:                                                                           \
            return (type)(u + 1);                                                                  \
        case GEX_OP_DEC:                                                                           \
            return (type)(u - 1);                                                                  \
            MODEL_REST                                                                             \
        }                                                                                          \
    }

#define MODEL_REAL(DT, type)                                                                       \
    static type model_##DT(gex_OP_t op, type was, type a, type b)                                  \
    {                                                                                              \
        switch (op >= GEX_OP_FAND ? GEX_OP_TO_NONFETCHING(op) : op) {                              \
        case GEX_OP_ADD:                                                                           \
            return was + a;                                                                        \
        case GEX_OP_SUB:                                                                           \
            return was - a;                                                                        \
        case GEX_OP_MULT:                                                                          \
            return was * a;                                                                        \
        case GEX_OP_INC:                                                                           \
            return was + 1;                                                                        \
        case GEX_OP_DEC:                                                                           \
            return was - 1;                                                                        \
            MODEL_REST                                                                             \
        }                                                                                          \
    }

/* GET has no counterpart that does not fetch: its bit becomes no operation. */
#define MODEL_REST                                                                                 \
    case GEX_OP_MIN:                                                                               \
        return a < was ? a : was;                                                                  \
    case GEX_OP_MAX:                                                                               \
        return a > was ? a : was;                                                                  \
    case GEX_OP_SET:                                                                               \
        return a;                                                                                  \
    case GEX_OP_CAS:                                                                               \
        return !memcmp(&was, &a, sizeof a) ? b : was;                                              \
    default:                                                                                       \
        CHECK(op == GEX_OP_GET);                                                                   \
        return was;

/* Each operation as a constant. */
#define EACH_ARITHMETIC(X)                                                                         \
    X(ADD)                                                                                         \
    X(SUB)                                                                                         \
    X(MULT)                                                                                        \
    X(MIN)                                                                                         \
    X(MAX)                                                                                         \
    X(INC)                                                                                         \
    X(DEC)                                                                                         \
    X(FADD) X(FSUB) X(FMULT) X(FMIN) X(FMAX) X(FINC) X(FDEC) X(SET) X(SWAP) X(CAS) X(FCAS) X(GET)
#define EACH_BITWISE(X) X(AND) X(OR) X(XOR) X(FAND) X(FOR) X(FXOR)
#define OR_IT(NAME)     | GEX_OP_##NAME
#define LIST_IT(NAME)   GEX_OP_##NAME,

#define DO_BY(DT, type, EACH)                                                                      \
    static gex_Event_t do_##DT(gex_AD_t ad, bool is_event, bool is_constant, gex_OP_t op,          \
                               type *result, void *at, type a, type b)                             \
    {                                                                                              \
        switch (is_constant ? op : 0) {                                                            \
            EACH(CONSTANTLY_##DT)                                                                  \
        default:                                                                                   \
            if (is_event)                                                                          \
                return gex_AD_OpNB_##DT(ad, result, target, at, op, a, b, 0);                      \
            CHECK(gex_AD_OpNBI_##DT(ad, result, target, at, op, a, b, 0) == 0);                    \
            return GEX_EVENT_INVALID;                                                              \
        }                                                                                          \
    }
#define CONSTANT(DT, NAME)                                                                         \
    case GEX_OP_##NAME:                                                                            \
        if (is_event)                                                                              \
            return gex_AD_OpNB_##DT(ad, result, target, at, GEX_OP_##NAME, a, b, 0);               \
        CHECK(gex_AD_OpNBI_##DT(ad, result, target, at, GEX_OP_##NAME, a, b, 0) == 0);             \
        return GEX_EVENT_INVALID;
#define CONSTANTLY_I32(NAME) CONSTANT(I32, NAME)
#define CONSTANTLY_U32(NAME) CONSTANT(U32, NAME)
#define CONSTANTLY_I64(NAME) CONSTANT(I64, NAME)
#define CONSTANTLY_U64(NAME) CONSTANT(U64, NAME)
#define CONSTANTLY_FLT(NAME) CONSTANT(FLT, NAME)
#define CONSTANTLY_DBL(NAME) CONSTANT(DBL, NAME)

#define EACH_INTEGER(X) EACH_ARITHMETIC(X) EACH_BITWISE(X)

static gex_EC_t category_of(gex_OP_t op)
{
    return op == GEX_OP_SET ? GEX_EC_PUT : op == GEX_OP_GET ? GEX_EC_GET : GEX_EC_RMW;
}

/* At first operands that often equal the present value, and are small enough for floats to be
 * exact; then any number. */
#define RUN_OF(DT, type, EACH, set)                                                                \
    static type operand_##DT(type was)                                                             \
    {                                                                                              \
        uint64_t random = job_random(&seed);                                                       \
        if (random % 3 == 0)                                                                       \
            return was;                                                                            \
        if (random % 3 == 1)                                                                       \
            return (type)((int64_t)(random >> 8) % 1000 - 500);                                    \
        return (type)(int64_t)(random >> 2);                                                       \
    }                                                                                              \
    static void run_##DT(gex_OP_t ops)                                                             \
    {                                                                                              \
        static const gex_OP_t all[] = {EACH(LIST_IT)};                                             \
        void *at = job_remote(target, CELLS + CELL_SIZE * job.rank);                               \
        type is = 0, result, was;                                                                  \
        gex_AD_t ad;                                                                               \
        gex_AD_Create(&ad, job.tm, GEX_DT_##DT, ops, 0);                                           \
        job_phase(#DT ", operations 0x%x", ops);                                                   \
        CHECK(gex_RMA_PutBlocking(job.tm, target, at, &is, sizeof is, 0) == 0);                    \
        job_barrier();                                                                             \
        for (unsigned i = 0; i < RUN || i % (sizeof all / sizeof all[0]); i++) {                   \
            gex_OP_t op = all[i % (sizeof all / sizeof all[0])];                                   \
            type a = operand_##DT(is), b = operand_##DT(is);                                       \
            bool is_event = i & 2, is_constant = i & 4;                                            \
            if (!(op & ops))                                                                       \
                continue;                                                                          \
            memset(&result, 0x5a, sizeof result);                                                  \
            was = result;                                                                          \
            gex_Event_t event = do_##DT(ad, is_event, is_constant, op, &result, at, a, b);         \
            if (is_event)                                                                          \
                gex_Event_Wait(event);                                                             \
            else                                                                                   \
                gex_NBI_Wait(category_of(op), 0);                                                  \
            if (op >= GEX_OP_FAND)                                                                 \
                was = is;                                                                          \
            CHECK(!memcmp(&result, &was, sizeof was),                                              \
                  #DT ": operation 0x%x number %u: result %g, not %g", op, i, (double)result,      \
                  (double)was);                                                                    \
            is = model_##DT(op, is, a, b);                                                         \
            CHECK(gex_RMA_GetBlocking(job.tm, &result, target, at, sizeof result, 0) == 0);        \
            CHECK(!memcmp(&result, &is, sizeof is),                                                \
                  #DT ": operation 0x%x number %u on %g, %g leaves %g, not %g", op, i, (double)a,  \
                  (double)b, (double)result, (double)is);                                          \
        }                                                                                          \
        gex_AD_Destroy(ad);                                                                        \
    }                                                                                              \
    static void types_##DT(void)                                                                   \
    {                                                                                              \
        run_##DT(0 EACH(OR_IT));                                                                   \
        run_##DT(set);                                                                             \
    }

MODEL_INTEGER(I32, int32_t, uint32_t)
MODEL_INTEGER(U32, uint32_t, uint32_t)
MODEL_INTEGER(I64, int64_t, uint64_t)
MODEL_INTEGER(U64, uint64_t, uint64_t)
MODEL_REAL(FLT, float)
MODEL_REAL(DBL, double)
DO_BY(I32, int32_t, EACH_INTEGER)
DO_BY(U32, uint32_t, EACH_INTEGER)
DO_BY(I64, int64_t, EACH_INTEGER)
DO_BY(U64, uint64_t, EACH_INTEGER)
DO_BY(FLT, float, EACH_ARITHMETIC)
DO_BY(DBL, double, EACH_ARITHMETIC)
RUN_OF(I32, int32_t, EACH_INTEGER, DEVICE_OPS)
RUN_OF(U32, uint32_t, EACH_INTEGER, DEVICE_OPS)
RUN_OF(I64, int64_t, EACH_INTEGER, DEVICE_OPS)
RUN_OF(U64, uint64_t, EACH_INTEGER, DEVICE_OPS)
RUN_OF(FLT, float, EACH_ARITHMETIC, DEVICE_OPS)
RUN_OF(DBL, double, EACH_ARITHMETIC, GEX_OP_CAS | GEX_OP_FCAS | GEX_OP_GET)

/* Targets: this rank, neighbours, others. */
void check_types(void)
{
    for (gex_Rank_t shift = 0; shift < job.size && shift < 4; shift++) {
        target = (job.rank + shift) % job.size;
        seed = 1000 * shift + job.rank + 1;
        types_I32();
        types_U32();
        types_I64();
        types_U64();
        types_FLT();
        types_DBL();
    }
}
