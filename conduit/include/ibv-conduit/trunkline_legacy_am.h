/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages of GASNet-1: for each of the seven calls one inline function per argument count
 * (0..16), and the form without a number, which takes the count before the arguments. Each is the
 * EX call of the same name to the team of all processes, with the source reusable on return. All
 * return GASNET_OK. Replies are legal once, in request handlers only. Included by gasnet.h. Owns
 * nothing, locks nothing. */
#ifndef TRUNKLINE_LEGACY_AM_H
#define TRUNKLINE_LEGACY_AM_H

/* Limits; all [handler]. */

TRUNKLINE_INLINE size_t gasnet_AMMaxArgs(void)
{
    return gex_AM_MaxArgs();
}

/* Applies to requests and replies. */
TRUNKLINE_INLINE size_t gasnet_AMMaxMedium(void)
{
    size_t request = gex_AM_LUBRequestMedium(), reply = gex_AM_LUBReplyMedium();
    return request < reply ? request : reply;
}

TRUNKLINE_INLINE size_t gasnet_AMMaxLongRequest(void)
{
    return gex_AM_LUBRequestLong();
}

TRUNKLINE_INLINE size_t gasnet_AMMaxLongReply(void)
{
    return gex_AM_LUBReplyLong();
}

/* The sender of the message that a handler runs for. [handler] only */
TRUNKLINE_INLINE int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *srcindex)
{
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    *srcindex = info.gex_srcrank;
    return GASNET_OK;
}

/* Ends the job: `numargs` of `call` differs from the number of arguments given. */
void trunkline_wrong_count(const char *call, int numargs, int given) __attribute__((__noreturn__));

TRUNKLINE_INLINE void trunkline_check_count(const char *call, int numargs, int given)
{
    if (numargs != given)
        trunkline_wrong_count(call, numargs, given);
}

/* clang-format off: tables read better than wrapped lines */

/* For each count M: ", values". The parameters are those of trunkline_am.h. */
#define TRUNKLINE_A0
#define TRUNKLINE_A1  , a0
#define TRUNKLINE_A2  TRUNKLINE_A1, a1
#define TRUNKLINE_A3  TRUNKLINE_A2, a2
#define TRUNKLINE_A4  TRUNKLINE_A3, a3
#define TRUNKLINE_A5  TRUNKLINE_A4, a4
#define TRUNKLINE_A6  TRUNKLINE_A5, a5
#define TRUNKLINE_A7  TRUNKLINE_A6, a6
#define TRUNKLINE_A8  TRUNKLINE_A7, a7
#define TRUNKLINE_A9  TRUNKLINE_A8, a8
#define TRUNKLINE_A10 TRUNKLINE_A9, a9
#define TRUNKLINE_A11 TRUNKLINE_A10, a10
#define TRUNKLINE_A12 TRUNKLINE_A11, a11
#define TRUNKLINE_A13 TRUNKLINE_A12, a12
#define TRUNKLINE_A14 TRUNKLINE_A13, a13
#define TRUNKLINE_A15 TRUNKLINE_A14, a14
#define TRUNKLINE_A16 TRUNKLINE_A15, a15

#define TRUNKLINE_LEGACY_FORMS(M)                                                                  \
    TRUNKLINE_INLINE int gasnet_AMRequestShort##M(gasnet_node_t dest,                              \
                                                  gasnet_handler_t handler TRUNKLINE_P##M)         \
    {                                                                                              \
        return gex_AM_RequestShort##M(TRUNKLINE_WORLD("gasnet_AMRequestShort"), dest, handler,     \
                                      0 TRUNKLINE_A##M);                                           \
    }                                                                                              \
    TRUNKLINE_INLINE int trunkline_counted_RequestShort##M(                                        \
        gasnet_node_t dest, gasnet_handler_t handler, int numargs TRUNKLINE_P##M)                  \
    {                                                                                              \
        trunkline_check_count("gasnet_AMRequestShort", numargs, M);                                \
        return gasnet_AMRequestShort##M(dest, handler TRUNKLINE_A##M);                             \
    }                                                                                              \
    TRUNKLINE_INLINE int gasnet_AMRequestMedium##M(gasnet_node_t dest, gasnet_handler_t handler,   \
                                                   void *src, size_t nbytes TRUNKLINE_P##M)        \
    {                                                                                              \
        return gex_AM_RequestMedium##M(TRUNKLINE_WORLD("gasnet_AMRequestMedium"), dest, handler,   \
                                       src, nbytes, GEX_EVENT_NOW, 0 TRUNKLINE_A##M);              \
    }                                                                                              \
    TRUNKLINE_INLINE int trunkline_counted_RequestMedium##M(                                       \
        gasnet_node_t dest, gasnet_handler_t handler, void *src, size_t nbytes,                    \
        int numargs TRUNKLINE_P##M)                                                                \
    {                                                                                              \
        trunkline_check_count("gasnet_AMRequestMedium", numargs, M);                               \
        return gasnet_AMRequestMedium##M(dest, handler, src, nbytes TRUNKLINE_A##M);               \
    }                                                                                              \
    TRUNKLINE_INLINE int gasnet_AMRequestLong##M(gasnet_node_t dest, gasnet_handler_t handler,     \
                                                 void *src, size_t nbytes,                         \
                                                 void *dest_addr TRUNKLINE_P##M)                   \
    {                                                                                              \
        return gex_AM_RequestLong##M(TRUNKLINE_WORLD("gasnet_AMRequestLong"), dest, handler, src,  \
                                     nbytes, dest_addr, GEX_EVENT_NOW, 0 TRUNKLINE_A##M);          \
    }                                                                                              \
    TRUNKLINE_INLINE int trunkline_counted_RequestLong##M(                                         \
        gasnet_node_t dest, gasnet_handler_t handler, void *src, size_t nbytes, void *dest_addr,   \
        int numargs TRUNKLINE_P##M)                                                                \
    {                                                                                              \
        trunkline_check_count("gasnet_AMRequestLong", numargs, M);                                 \
        return gasnet_AMRequestLong##M(dest, handler, src, nbytes, dest_addr TRUNKLINE_A##M);      \
    }                                                                                              \
    TRUNKLINE_INLINE int gasnet_AMRequestLongAsync##M(                                             \
        gasnet_node_t dest, gasnet_handler_t handler, void *src, size_t nbytes,                    \
        void *dest_addr TRUNKLINE_P##M)                                                            \
    {                                                                                              \
        return gex_AM_RequestLong##M(TRUNKLINE_WORLD("gasnet_AMRequestLongAsync"), dest, handler,  \
                                     src, nbytes, dest_addr, GEX_EVENT_NOW, 0 TRUNKLINE_A##M);     \
    }                                                                                              \
    TRUNKLINE_INLINE int trunkline_counted_RequestLongAsync##M(                                    \
        gasnet_node_t dest, gasnet_handler_t handler, void *src, size_t nbytes, void *dest_addr,   \
        int numargs TRUNKLINE_P##M)                                                                \
    {                                                                                              \
        trunkline_check_count("gasnet_AMRequestLongAsync", numargs, M);                            \
        return gasnet_AMRequestLongAsync##M(dest, handler, src, nbytes, dest_addr TRUNKLINE_A##M); \
    }                                                                                              \
    TRUNKLINE_INLINE int gasnet_AMReplyShort##M(gasnet_token_t token,                              \
                                                gasnet_handler_t handler TRUNKLINE_P##M)           \
    {                                                                                              \
        return gex_AM_ReplyShort##M(token, handler, 0 TRUNKLINE_A##M);                             \
    }                                                                                              \
    TRUNKLINE_INLINE int trunkline_counted_ReplyShort##M(                                          \
        gasnet_token_t token, gasnet_handler_t handler, int numargs TRUNKLINE_P##M)                \
    {                                                                                              \
        trunkline_check_count("gasnet_AMReplyShort", numargs, M);                                  \
        return gasnet_AMReplyShort##M(token, handler TRUNKLINE_A##M);                              \
    }                                                                                              \
    TRUNKLINE_INLINE int gasnet_AMReplyMedium##M(gasnet_token_t token, gasnet_handler_t handler,   \
                                                 void *src, size_t nbytes TRUNKLINE_P##M)          \
    {                                                                                              \
        return gex_AM_ReplyMedium##M(token, handler, src, nbytes, GEX_EVENT_NOW,                   \
                                     0 TRUNKLINE_A##M);                                            \
    }                                                                                              \
    TRUNKLINE_INLINE int trunkline_counted_ReplyMedium##M(                                         \
        gasnet_token_t token, gasnet_handler_t handler, void *src, size_t nbytes,                  \
        int numargs TRUNKLINE_P##M)                                                                \
    {                                                                                              \
        trunkline_check_count("gasnet_AMReplyMedium", numargs, M);                                 \
        return gasnet_AMReplyMedium##M(token, handler, src, nbytes TRUNKLINE_A##M);                \
    }                                                                                              \
    TRUNKLINE_INLINE int gasnet_AMReplyLong##M(gasnet_token_t token, gasnet_handler_t handler,     \
                                               void *src, size_t nbytes,                           \
                                               void *dest_addr TRUNKLINE_P##M)                     \
    {                                                                                              \
        return gex_AM_ReplyLong##M(token, handler, src, nbytes, dest_addr, GEX_EVENT_NOW,          \
                                   0 TRUNKLINE_A##M);                                              \
    }                                                                                              \
    TRUNKLINE_INLINE int trunkline_counted_ReplyLong##M(                                           \
        gasnet_token_t token, gasnet_handler_t handler, void *src, size_t nbytes, void *dest_addr, \
        int numargs TRUNKLINE_P##M)                                                                \
    {                                                                                              \
        trunkline_check_count("gasnet_AMReplyLong", numargs, M);                                   \
        return gasnet_AMReplyLong##M(token, handler, src, nbytes, dest_addr TRUNKLINE_A##M);       \
    }

TRUNKLINE_LEGACY_FORMS(0)
TRUNKLINE_LEGACY_FORMS(1)
TRUNKLINE_LEGACY_FORMS(2)
TRUNKLINE_LEGACY_FORMS(3)
TRUNKLINE_LEGACY_FORMS(4)
TRUNKLINE_LEGACY_FORMS(5)
TRUNKLINE_LEGACY_FORMS(6)
TRUNKLINE_LEGACY_FORMS(7)
TRUNKLINE_LEGACY_FORMS(8)
TRUNKLINE_LEGACY_FORMS(9)
TRUNKLINE_LEGACY_FORMS(10)
TRUNKLINE_LEGACY_FORMS(11)
TRUNKLINE_LEGACY_FORMS(12)
TRUNKLINE_LEGACY_FORMS(13)
TRUNKLINE_LEGACY_FORMS(14)
TRUNKLINE_LEGACY_FORMS(15)
TRUNKLINE_LEGACY_FORMS(16)

/* The arguments of the numbered forms are cast, so wider integers and enumerations pass without a
 * warning. */
#ifdef __cplusplus
#    define TRUNKLINE_C1(a) gasnet_handlerarg_t(a)
#else
#    define TRUNKLINE_C1(a) ((gasnet_handlerarg_t)(a))
#endif
#define TRUNKLINE_C2(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C1(__VA_ARGS__)
#define TRUNKLINE_C3(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C2(__VA_ARGS__)
#define TRUNKLINE_C4(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C3(__VA_ARGS__)
#define TRUNKLINE_C5(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C4(__VA_ARGS__)
#define TRUNKLINE_C6(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C5(__VA_ARGS__)
#define TRUNKLINE_C7(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C6(__VA_ARGS__)
#define TRUNKLINE_C8(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C7(__VA_ARGS__)
#define TRUNKLINE_C9(a, ...)  TRUNKLINE_C1(a), TRUNKLINE_C8(__VA_ARGS__)
#define TRUNKLINE_C10(a, ...) TRUNKLINE_C1(a), TRUNKLINE_C9(__VA_ARGS__)
#define TRUNKLINE_C11(a, ...) TRUNKLINE_C1(a), TRUNKLINE_C10(__VA_ARGS__)
#define TRUNKLINE_C12(a, ...) TRUNKLINE_C1(a), TRUNKLINE_C11(__VA_ARGS__)
#define TRUNKLINE_C13(a, ...) TRUNKLINE_C1(a), TRUNKLINE_C12(__VA_ARGS__)
#define TRUNKLINE_C14(a, ...) TRUNKLINE_C1(a), TRUNKLINE_C13(__VA_ARGS__)
#define TRUNKLINE_C15(a, ...) TRUNKLINE_C1(a), TRUNKLINE_C14(__VA_ARGS__)
#define TRUNKLINE_C16(a, ...) TRUNKLINE_C1(a), TRUNKLINE_C15(__VA_ARGS__)

/* Two steps, so that argument lists which are macros themselves are expanded first. */
#define TRUNKLINE_CALL2(call, cast, a, b, ...) (TRUNKLINE_NOTE(call)(call)(a, b, cast(__VA_ARGS__)))
#define TRUNKLINE_CALL4(call, cast, a, b, c, d, ...)                                               \
    (TRUNKLINE_NOTE(call)(call)(a, b, c, d, cast(__VA_ARGS__)))
#define TRUNKLINE_CALL5(call, cast, a, b, c, d, e, ...)                                            \
    (TRUNKLINE_NOTE(call)(call)(a, b, c, d, e, cast(__VA_ARGS__)))

#define gasnet_AMRequestShort1(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort1, TRUNKLINE_C1, __VA_ARGS__)
#define gasnet_AMRequestShort2(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort2, TRUNKLINE_C2, __VA_ARGS__)
#define gasnet_AMRequestShort3(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort3, TRUNKLINE_C3, __VA_ARGS__)
#define gasnet_AMRequestShort4(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort4, TRUNKLINE_C4, __VA_ARGS__)
#define gasnet_AMRequestShort5(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort5, TRUNKLINE_C5, __VA_ARGS__)
#define gasnet_AMRequestShort6(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort6, TRUNKLINE_C6, __VA_ARGS__)
#define gasnet_AMRequestShort7(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort7, TRUNKLINE_C7, __VA_ARGS__)
#define gasnet_AMRequestShort8(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort8, TRUNKLINE_C8, __VA_ARGS__)
#define gasnet_AMRequestShort9(...)                                                                \
    TRUNKLINE_CALL2(gasnet_AMRequestShort9, TRUNKLINE_C9, __VA_ARGS__)
#define gasnet_AMRequestShort10(...)                                                               \
    TRUNKLINE_CALL2(gasnet_AMRequestShort10, TRUNKLINE_C10, __VA_ARGS__)
#define gasnet_AMRequestShort11(...)                                                               \
    TRUNKLINE_CALL2(gasnet_AMRequestShort11, TRUNKLINE_C11, __VA_ARGS__)
#define gasnet_AMRequestShort12(...)                                                               \
    TRUNKLINE_CALL2(gasnet_AMRequestShort12, TRUNKLINE_C12, __VA_ARGS__)
#define gasnet_AMRequestShort13(...)                                                               \
    TRUNKLINE_CALL2(gasnet_AMRequestShort13, TRUNKLINE_C13, __VA_ARGS__)
#define gasnet_AMRequestShort14(...)                                                               \
    TRUNKLINE_CALL2(gasnet_AMRequestShort14, TRUNKLINE_C14, __VA_ARGS__)
#define gasnet_AMRequestShort15(...)                                                               \
    TRUNKLINE_CALL2(gasnet_AMRequestShort15, TRUNKLINE_C15, __VA_ARGS__)
#define gasnet_AMRequestShort16(...)                                                               \
    TRUNKLINE_CALL2(gasnet_AMRequestShort16, TRUNKLINE_C16, __VA_ARGS__)

#define gasnet_AMRequestMedium1(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium1, TRUNKLINE_C1, __VA_ARGS__)
#define gasnet_AMRequestMedium2(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium2, TRUNKLINE_C2, __VA_ARGS__)
#define gasnet_AMRequestMedium3(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium3, TRUNKLINE_C3, __VA_ARGS__)
#define gasnet_AMRequestMedium4(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium4, TRUNKLINE_C4, __VA_ARGS__)
#define gasnet_AMRequestMedium5(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium5, TRUNKLINE_C5, __VA_ARGS__)
#define gasnet_AMRequestMedium6(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium6, TRUNKLINE_C6, __VA_ARGS__)
#define gasnet_AMRequestMedium7(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium7, TRUNKLINE_C7, __VA_ARGS__)
#define gasnet_AMRequestMedium8(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium8, TRUNKLINE_C8, __VA_ARGS__)
#define gasnet_AMRequestMedium9(...)                                                               \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium9, TRUNKLINE_C9, __VA_ARGS__)
#define gasnet_AMRequestMedium10(...)                                                              \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium10, TRUNKLINE_C10, __VA_ARGS__)
#define gasnet_AMRequestMedium11(...)                                                              \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium11, TRUNKLINE_C11, __VA_ARGS__)
#define gasnet_AMRequestMedium12(...)                                                              \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium12, TRUNKLINE_C12, __VA_ARGS__)
#define gasnet_AMRequestMedium13(...)                                                              \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium13, TRUNKLINE_C13, __VA_ARGS__)
#define gasnet_AMRequestMedium14(...)                                                              \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium14, TRUNKLINE_C14, __VA_ARGS__)
#define gasnet_AMRequestMedium15(...)                                                              \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium15, TRUNKLINE_C15, __VA_ARGS__)
#define gasnet_AMRequestMedium16(...)                                                              \
    TRUNKLINE_CALL4(gasnet_AMRequestMedium16, TRUNKLINE_C16, __VA_ARGS__)

#define gasnet_AMRequestLong1(...) TRUNKLINE_CALL5(gasnet_AMRequestLong1, TRUNKLINE_C1, __VA_ARGS__)
#define gasnet_AMRequestLong2(...) TRUNKLINE_CALL5(gasnet_AMRequestLong2, TRUNKLINE_C2, __VA_ARGS__)
#define gasnet_AMRequestLong3(...) TRUNKLINE_CALL5(gasnet_AMRequestLong3, TRUNKLINE_C3, __VA_ARGS__)
#define gasnet_AMRequestLong4(...) TRUNKLINE_CALL5(gasnet_AMRequestLong4, TRUNKLINE_C4, __VA_ARGS__)
#define gasnet_AMRequestLong5(...) TRUNKLINE_CALL5(gasnet_AMRequestLong5, TRUNKLINE_C5, __VA_ARGS__)
#define gasnet_AMRequestLong6(...) TRUNKLINE_CALL5(gasnet_AMRequestLong6, TRUNKLINE_C6, __VA_ARGS__)
#define gasnet_AMRequestLong7(...) TRUNKLINE_CALL5(gasnet_AMRequestLong7, TRUNKLINE_C7, __VA_ARGS__)
#define gasnet_AMRequestLong8(...) TRUNKLINE_CALL5(gasnet_AMRequestLong8, TRUNKLINE_C8, __VA_ARGS__)
#define gasnet_AMRequestLong9(...) TRUNKLINE_CALL5(gasnet_AMRequestLong9, TRUNKLINE_C9, __VA_ARGS__)
#define gasnet_AMRequestLong10(...)                                                                \
    TRUNKLINE_CALL5(gasnet_AMRequestLong10, TRUNKLINE_C10, __VA_ARGS__)
#define gasnet_AMRequestLong11(...)                                                                \
    TRUNKLINE_CALL5(gasnet_AMRequestLong11, TRUNKLINE_C11, __VA_ARGS__)
#define gasnet_AMRequestLong12(...)                                                                \
    TRUNKLINE_CALL5(gasnet_AMRequestLong12, TRUNKLINE_C12, __VA_ARGS__)
#define gasnet_AMRequestLong13(...)                                                                \
    TRUNKLINE_CALL5(gasnet_AMRequestLong13, TRUNKLINE_C13, __VA_ARGS__)
#define gasnet_AMRequestLong14(...)                                                                \
    TRUNKLINE_CALL5(gasnet_AMRequestLong14, TRUNKLINE_C14, __VA_ARGS__)
#define gasnet_AMRequestLong15(...)                                                                \
    TRUNKLINE_CALL5(gasnet_AMRequestLong15, TRUNKLINE_C15, __VA_ARGS__)
#define gasnet_AMRequestLong16(...)                                                                \
    TRUNKLINE_CALL5(gasnet_AMRequestLong16, TRUNKLINE_C16, __VA_ARGS__)

#define gasnet_AMRequestLongAsync1(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync1, TRUNKLINE_C1, __VA_ARGS__)
#define gasnet_AMRequestLongAsync2(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync2, TRUNKLINE_C2, __VA_ARGS__)
#define gasnet_AMRequestLongAsync3(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync3, TRUNKLINE_C3, __VA_ARGS__)
#define gasnet_AMRequestLongAsync4(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync4, TRUNKLINE_C4, __VA_ARGS__)
#define gasnet_AMRequestLongAsync5(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync5, TRUNKLINE_C5, __VA_ARGS__)
#define gasnet_AMRequestLongAsync6(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync6, TRUNKLINE_C6, __VA_ARGS__)
#define gasnet_AMRequestLongAsync7(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync7, TRUNKLINE_C7, __VA_ARGS__)
#define gasnet_AMRequestLongAsync8(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync8, TRUNKLINE_C8, __VA_ARGS__)
#define gasnet_AMRequestLongAsync9(...)                                                            \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync9, TRUNKLINE_C9, __VA_ARGS__)
#define gasnet_AMRequestLongAsync10(...)                                                           \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync10, TRUNKLINE_C10, __VA_ARGS__)
#define gasnet_AMRequestLongAsync11(...)                                                           \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync11, TRUNKLINE_C11, __VA_ARGS__)
#define gasnet_AMRequestLongAsync12(...)                                                           \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync12, TRUNKLINE_C12, __VA_ARGS__)
#define gasnet_AMRequestLongAsync13(...)                                                           \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync13, TRUNKLINE_C13, __VA_ARGS__)
#define gasnet_AMRequestLongAsync14(...)                                                           \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync14, TRUNKLINE_C14, __VA_ARGS__)
#define gasnet_AMRequestLongAsync15(...)                                                           \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync15, TRUNKLINE_C15, __VA_ARGS__)
#define gasnet_AMRequestLongAsync16(...)                                                           \
    TRUNKLINE_CALL5(gasnet_AMRequestLongAsync16, TRUNKLINE_C16, __VA_ARGS__)

#define gasnet_AMReplyShort1(...) TRUNKLINE_CALL2(gasnet_AMReplyShort1, TRUNKLINE_C1, __VA_ARGS__)
#define gasnet_AMReplyShort2(...) TRUNKLINE_CALL2(gasnet_AMReplyShort2, TRUNKLINE_C2, __VA_ARGS__)
#define gasnet_AMReplyShort3(...) TRUNKLINE_CALL2(gasnet_AMReplyShort3, TRUNKLINE_C3, __VA_ARGS__)
#define gasnet_AMReplyShort4(...) TRUNKLINE_CALL2(gasnet_AMReplyShort4, TRUNKLINE_C4, __VA_ARGS__)
#define gasnet_AMReplyShort5(...) TRUNKLINE_CALL2(gasnet_AMReplyShort5, TRUNKLINE_C5, __VA_ARGS__)
#define gasnet_AMReplyShort6(...) TRUNKLINE_CALL2(gasnet_AMReplyShort6, TRUNKLINE_C6, __VA_ARGS__)
#define gasnet_AMReplyShort7(...) TRUNKLINE_CALL2(gasnet_AMReplyShort7, TRUNKLINE_C7, __VA_ARGS__)
#define gasnet_AMReplyShort8(...) TRUNKLINE_CALL2(gasnet_AMReplyShort8, TRUNKLINE_C8, __VA_ARGS__)
#define gasnet_AMReplyShort9(...) TRUNKLINE_CALL2(gasnet_AMReplyShort9, TRUNKLINE_C9, __VA_ARGS__)
#define gasnet_AMReplyShort10(...)                                                                 \
    TRUNKLINE_CALL2(gasnet_AMReplyShort10, TRUNKLINE_C10, __VA_ARGS__)
#define gasnet_AMReplyShort11(...)                                                                 \
    TRUNKLINE_CALL2(gasnet_AMReplyShort11, TRUNKLINE_C11, __VA_ARGS__)
#define gasnet_AMReplyShort12(...)                                                                 \
    TRUNKLINE_CALL2(gasnet_AMReplyShort12, TRUNKLINE_C12, __VA_ARGS__)
#define gasnet_AMReplyShort13(...)                                                                 \
    TRUNKLINE_CALL2(gasnet_AMReplyShort13, TRUNKLINE_C13, __VA_ARGS__)
#define gasnet_AMReplyShort14(...)                                                                 \
    TRUNKLINE_CALL2(gasnet_AMReplyShort14, TRUNKLINE_C14, __VA_ARGS__)
#define gasnet_AMReplyShort15(...)                                                                 \
    TRUNKLINE_CALL2(gasnet_AMReplyShort15, TRUNKLINE_C15, __VA_ARGS__)
#define gasnet_AMReplyShort16(...)                                                                 \
    TRUNKLINE_CALL2(gasnet_AMReplyShort16, TRUNKLINE_C16, __VA_ARGS__)

#define gasnet_AMReplyMedium1(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium1, TRUNKLINE_C1, __VA_ARGS__)
#define gasnet_AMReplyMedium2(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium2, TRUNKLINE_C2, __VA_ARGS__)
#define gasnet_AMReplyMedium3(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium3, TRUNKLINE_C3, __VA_ARGS__)
#define gasnet_AMReplyMedium4(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium4, TRUNKLINE_C4, __VA_ARGS__)
#define gasnet_AMReplyMedium5(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium5, TRUNKLINE_C5, __VA_ARGS__)
#define gasnet_AMReplyMedium6(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium6, TRUNKLINE_C6, __VA_ARGS__)
#define gasnet_AMReplyMedium7(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium7, TRUNKLINE_C7, __VA_ARGS__)
#define gasnet_AMReplyMedium8(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium8, TRUNKLINE_C8, __VA_ARGS__)
#define gasnet_AMReplyMedium9(...) TRUNKLINE_CALL4(gasnet_AMReplyMedium9, TRUNKLINE_C9, __VA_ARGS__)
#define gasnet_AMReplyMedium10(...)                                                                \
    TRUNKLINE_CALL4(gasnet_AMReplyMedium10, TRUNKLINE_C10, __VA_ARGS__)
#define gasnet_AMReplyMedium11(...)                                                                \
    TRUNKLINE_CALL4(gasnet_AMReplyMedium11, TRUNKLINE_C11, __VA_ARGS__)
#define gasnet_AMReplyMedium12(...)                                                                \
    TRUNKLINE_CALL4(gasnet_AMReplyMedium12, TRUNKLINE_C12, __VA_ARGS__)
#define gasnet_AMReplyMedium13(...)                                                                \
    TRUNKLINE_CALL4(gasnet_AMReplyMedium13, TRUNKLINE_C13, __VA_ARGS__)
#define gasnet_AMReplyMedium14(...)                                                                \
    TRUNKLINE_CALL4(gasnet_AMReplyMedium14, TRUNKLINE_C14, __VA_ARGS__)
#define gasnet_AMReplyMedium15(...)                                                                \
    TRUNKLINE_CALL4(gasnet_AMReplyMedium15, TRUNKLINE_C15, __VA_ARGS__)
#define gasnet_AMReplyMedium16(...)                                                                \
    TRUNKLINE_CALL4(gasnet_AMReplyMedium16, TRUNKLINE_C16, __VA_ARGS__)

#define gasnet_AMReplyLong1(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong1, TRUNKLINE_C1, __VA_ARGS__)
#define gasnet_AMReplyLong2(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong2, TRUNKLINE_C2, __VA_ARGS__)
#define gasnet_AMReplyLong3(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong3, TRUNKLINE_C3, __VA_ARGS__)
#define gasnet_AMReplyLong4(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong4, TRUNKLINE_C4, __VA_ARGS__)
#define gasnet_AMReplyLong5(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong5, TRUNKLINE_C5, __VA_ARGS__)
#define gasnet_AMReplyLong6(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong6, TRUNKLINE_C6, __VA_ARGS__)
#define gasnet_AMReplyLong7(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong7, TRUNKLINE_C7, __VA_ARGS__)
#define gasnet_AMReplyLong8(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong8, TRUNKLINE_C8, __VA_ARGS__)
#define gasnet_AMReplyLong9(...)  TRUNKLINE_CALL5(gasnet_AMReplyLong9, TRUNKLINE_C9, __VA_ARGS__)
#define gasnet_AMReplyLong10(...) TRUNKLINE_CALL5(gasnet_AMReplyLong10, TRUNKLINE_C10, __VA_ARGS__)
#define gasnet_AMReplyLong11(...) TRUNKLINE_CALL5(gasnet_AMReplyLong11, TRUNKLINE_C11, __VA_ARGS__)
#define gasnet_AMReplyLong12(...) TRUNKLINE_CALL5(gasnet_AMReplyLong12, TRUNKLINE_C12, __VA_ARGS__)
#define gasnet_AMReplyLong13(...) TRUNKLINE_CALL5(gasnet_AMReplyLong13, TRUNKLINE_C13, __VA_ARGS__)
#define gasnet_AMReplyLong14(...) TRUNKLINE_CALL5(gasnet_AMReplyLong14, TRUNKLINE_C14, __VA_ARGS__)
#define gasnet_AMReplyLong15(...) TRUNKLINE_CALL5(gasnet_AMReplyLong15, TRUNKLINE_C15, __VA_ARGS__)
#define gasnet_AMReplyLong16(...) TRUNKLINE_CALL5(gasnet_AMReplyLong16, TRUNKLINE_C16, __VA_ARGS__)

/* The number of arguments after the count. Everything is taken as variable arguments, so that the
 * list is never an empty "...", and shorter calls are padded in front to what TRUNKLINE_COUNT
 * expects. */
#define gasnet_AMRequestShort(...)                                                                 \
    (TRUNKLINE_NOTE(gasnet_AMRequestShort) TRUNKLINE_PASTE(                                        \
        trunkline_counted_RequestShort, TRUNKLINE_COUNT(0, 0, 0, 0, 0, __VA_ARGS__))(__VA_ARGS__))
#define gasnet_AMRequestMedium(...)                                                                \
    (TRUNKLINE_NOTE(gasnet_AMRequestMedium) TRUNKLINE_PASTE(                                       \
        trunkline_counted_RequestMedium, TRUNKLINE_COUNT(0, 0, 0, __VA_ARGS__))(__VA_ARGS__))
#define gasnet_AMRequestLong(...)                                                                  \
    (TRUNKLINE_NOTE(gasnet_AMRequestLong) TRUNKLINE_PASTE(                                         \
        trunkline_counted_RequestLong, TRUNKLINE_COUNT(0, 0, __VA_ARGS__))(__VA_ARGS__))
#define gasnet_AMRequestLongAsync(...)                                                             \
    (TRUNKLINE_NOTE(gasnet_AMRequestLongAsync) TRUNKLINE_PASTE(                                    \
        trunkline_counted_RequestLongAsync, TRUNKLINE_COUNT(0, 0, __VA_ARGS__))(__VA_ARGS__))
#define gasnet_AMReplyShort(...)                                                                   \
    (TRUNKLINE_NOTE(gasnet_AMReplyShort) TRUNKLINE_PASTE(                                          \
        trunkline_counted_ReplyShort, TRUNKLINE_COUNT(0, 0, 0, 0, 0, __VA_ARGS__))(__VA_ARGS__))
#define gasnet_AMReplyMedium(...)                                                                  \
    (TRUNKLINE_NOTE(gasnet_AMReplyMedium) TRUNKLINE_PASTE(                                         \
        trunkline_counted_ReplyMedium, TRUNKLINE_COUNT(0, 0, 0, __VA_ARGS__))(__VA_ARGS__))
#define gasnet_AMReplyLong(...)                                                                    \
    (TRUNKLINE_NOTE(gasnet_AMReplyLong) TRUNKLINE_PASTE(                                           \
        trunkline_counted_ReplyLong, TRUNKLINE_COUNT(0, 0, __VA_ARGS__))(__VA_ARGS__))
/* clang-format on */

#if TRUNKLINE_HAS_LINES
#    define gasnet_AMGetMsgSource(...)      TRUNKLINE_AT(gasnet_AMGetMsgSource, __VA_ARGS__)
#    define gasnet_AMRequestShort0(...)     TRUNKLINE_AT(gasnet_AMRequestShort0, __VA_ARGS__)
#    define gasnet_AMRequestMedium0(...)    TRUNKLINE_AT(gasnet_AMRequestMedium0, __VA_ARGS__)
#    define gasnet_AMRequestLong0(...)      TRUNKLINE_AT(gasnet_AMRequestLong0, __VA_ARGS__)
#    define gasnet_AMRequestLongAsync0(...) TRUNKLINE_AT(gasnet_AMRequestLongAsync0, __VA_ARGS__)
#    define gasnet_AMReplyShort0(...)       TRUNKLINE_AT(gasnet_AMReplyShort0, __VA_ARGS__)
#    define gasnet_AMReplyMedium0(...)      TRUNKLINE_AT(gasnet_AMReplyMedium0, __VA_ARGS__)
#    define gasnet_AMReplyLong0(...)        TRUNKLINE_AT(gasnet_AMReplyLong0, __VA_ARGS__)
#endif

#endif
