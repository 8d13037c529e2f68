/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names of data types, operations and token fields; sets as names with | between. No state. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "gasnetex.h"
#include "gasnet_tools.h"

struct bit {
    uint32_t value;
    const char *name;
};

#define DT(name)                                                                                   \
    {                                                                                              \
        GEX_DT_##name, "GEX_DT_" #name                                                             \
    }
#define OP(name)                                                                                   \
    {                                                                                              \
        GEX_OP_##name, "GEX_OP_" #name                                                             \
    }
#define TI(name)                                                                                   \
    {                                                                                              \
        GEX_TI_##name, "GEX_TI_" #name                                                             \
    }

static const struct bit data_types[] = {
    DT(I32), DT(U32), DT(I64), DT(U64), DT(FLT), DT(DBL), DT(USER), {0, NULL},
};

static const struct bit operations[] = {
    OP(AND),  OP(OR),   OP(XOR),  OP(ADD),   OP(SUB),  OP(MULT),    OP(MIN),
    OP(MAX),  OP(INC),  OP(DEC),  OP(SET),   OP(CAS),  OP(FAND),    OP(FOR),
    OP(FXOR), OP(FADD), OP(FSUB), OP(FMULT), OP(FMIN), OP(FMAX),    OP(FINC),
    OP(FDEC), OP(SWAP), OP(FCAS), OP(GET),   OP(USER), OP(USER_NC), {0, NULL},
};

static const struct bit token_fields[] = {
    TI(SRCRANK), TI(ENTRY), TI(IS_REQ), TI(IS_LONG), TI(EP), {0, NULL},
};

/* Appends to `buf`; NULL: only counts. */
static size_t format_append(char *buf, size_t at, const char *text)
{
    if (buf)
        strcpy(buf + at, text);
    return at + strlen(text);
}

static size_t names(char *buf, const struct bit *bits, uint32_t set)
{
    char rest[16];
    size_t at = format_append(buf, 0, "");
    for (; bits->name; bits++) {
        if (!(set & bits->value))
            continue;
        at = format_append(buf, format_append(buf, at, at ? "|" : ""), bits->name);
        set &= ~bits->value;
    }
    if (set || !at) {
        snprintf(rest, sizeof(rest), "0x%x", set);
        at = format_append(buf, format_append(buf, at, at ? "|" : ""), rest);
    }
    return at + 1;
}

size_t gasnett_format_dt(char *buf, gex_DT_t dt)
{
    return names(buf, data_types, dt);
}

size_t gasnett_format_op(char *buf, gex_OP_t op)
{
    return names(buf, operations, op);
}

size_t gasnett_format_ti(char *buf, gex_TI_t ti)
{
    return names(buf, token_fields, ti);
}
