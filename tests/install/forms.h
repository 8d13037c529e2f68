/* SPDX-License-Identifier: BSD-3-Clause */
/* Every form of every active message call, to see that each compiles and takes its arguments; not
 * to be run. */
#ifndef TEST_FORMS_H
#define TEST_FORMS_H

#include <gasnetex.h>
#include <trunkline_query.h>
#include <trunkline_rails.h>

#if GASNET_SUPPORTS_AM_CANCEL < 20240418L || GASNET_SUPPORTS_AM_COMMIT_V2 < 20240906L
#    error "these are the dates of gex_AM_Cancel and gex_AM_Commit with flags"
#endif

/* clang-format off: tables */
#define A0
#define A1  , 1
#define A2  A1, 2
#define A3  A2, 3
#define A4  A3, 4
#define A5  A4, 5
#define A6  A5, 6
#define A7  A6, 7
#define A8  A7, 8
#define A9  A8, 9
#define A10 A9, 10
#define A11 A10, 11
#define A12 A11, 12
#define A13 A12, 13
#define A14 A13, 14
#define A15 A14, 15
#define A16 A15, 16
/* clang-format on */

#define ALL_FORMS(M)                                                                               \
    bad |= gex_AM_RequestShort##M(tm, 0, 200, 0 A##M);                                             \
    bad |= gex_AM_RequestShort(tm, 0, 200, 0 A##M);                                                \
    bad |= gex_AM_RequestMedium##M(tm, 0, 200, data, 4, GEX_EVENT_NOW, 0 A##M);                    \
    bad |= gex_AM_RequestMedium(tm, 0, 200, data, 4, &event, 0 A##M);                              \
    bad |= gex_AM_RequestLong##M(tm, 0, 200, data, 4, dest, GEX_EVENT_NOW, 0 A##M);                \
    bad |= gex_AM_RequestLong(tm, 0, 200, data, 4, dest, &event, GEX_FLAG_IMMEDIATE A##M);         \
    bad |= gex_AM_ReplyShort##M(token, 200, 0 A##M);                                               \
    bad |= gex_AM_ReplyShort(token, 200, 0 A##M);                                                  \
    bad |= gex_AM_ReplyMedium##M(token, 200, data, 4, GEX_EVENT_NOW, 0 A##M);                      \
    bad |= gex_AM_ReplyMedium(token, 200, data, 4, GEX_EVENT_NOW, 0 A##M);                         \
    bad |= gex_AM_ReplyLong##M(token, 200, data, 4, dest, GEX_EVENT_NOW, 0 A##M);                  \
    bad |= gex_AM_ReplyLong(token, 200, data, 4, dest, GEX_EVENT_NOW, 0 A##M);                     \
    gex_AM_CommitRequestMedium##M(sd, 200, 4 A##M);                                                \
    gex_AM_CommitRequestMedium(sd, 200, 4 A##M);                                                   \
    bad |= gex_AM_CommitRequestMedium##M##_v2(sd, 200, 4, 0 A##M);                                 \
    bad |= gex_AM_CommitRequestMedium_v2(sd, 200, 4, GEX_FLAG_IMMEDIATE A##M);                     \
    gex_AM_CommitRequestLong##M(sd, 200, 4, dest A##M);                                            \
    gex_AM_CommitRequestLong(sd, 200, 4, dest A##M);                                               \
    bad |= gex_AM_CommitRequestLong##M##_v2(sd, 200, 4, dest, 0 A##M);                             \
    bad |= gex_AM_CommitRequestLong_v2(sd, 200, 4, dest, GEX_FLAG_IMMEDIATE A##M);                 \
    gex_AM_CommitReplyMedium##M(sd, 200, 4 A##M);                                                  \
    gex_AM_CommitReplyMedium(sd, 200, 4 A##M);                                                     \
    bad |= gex_AM_CommitReplyMedium##M##_v2(sd, 200, 4, 0 A##M);                                   \
    bad |= gex_AM_CommitReplyMedium_v2(sd, 200, 4, GEX_FLAG_IMMEDIATE A##M);                       \
    gex_AM_CommitReplyLong##M(sd, 200, 4, dest A##M);                                              \
    gex_AM_CommitReplyLong(sd, 200, 4, dest A##M);                                                 \
    bad |= gex_AM_CommitReplyLong##M##_v2(sd, 200, 4, dest, 0 A##M);                               \
    bad |= gex_AM_CommitReplyLong_v2(sd, 200, 4, dest, GEX_FLAG_IMMEDIATE A##M);

TRUNKLINE_INLINE int all_am_forms(gex_TM_t tm, gex_Token_t token, const void *data, void *dest)
{
    gex_Event_t event = GEX_EVENT_INVALID;
    gex_AM_SrcDesc_t sd = GEX_AM_SRCDESC_NO_OP;
    int bad = 0;
    ALL_FORMS(0)
    ALL_FORMS(1)
    ALL_FORMS(2)
    ALL_FORMS(3)
    ALL_FORMS(4)
    ALL_FORMS(5)
    ALL_FORMS(6)
    ALL_FORMS(7)
    ALL_FORMS(8)
    ALL_FORMS(9)
    ALL_FORMS(10)
    ALL_FORMS(11)
    ALL_FORMS(12)
    ALL_FORMS(13)
    ALL_FORMS(14)
    ALL_FORMS(15)
    ALL_FORMS(16)
    bad |= gex_AM_CancelRequestMedium(sd, 0) | gex_AM_CancelRequestLong(sd, 0);
    bad |= gex_AM_CancelReplyMedium(sd, 0) | gex_AM_CancelReplyLong(sd, 0);
    return bad;
}

#endif
