/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The argument forms of active messages: for each of the ten calls one inline function per argument
 * count (0..16), and the form without a number, which counts its arguments. All end in one of ten
 * library functions that take the arguments as an array, or, for Shorts with few arguments, in one
 * of two that take them as an integer. Included by gasnetex.h. Owns nothing, locks nothing.
 *
 * The interface documents these calls; in short: they return 0, or non-zero when GEX_FLAG_IMMEDIATE
 * was given and nothing was sent. Requests without it may block and run handlers; replies are legal
 * once, in request handlers only. In PAR any thread may call. */
#ifndef TRUNKLINE_AM_H
#define TRUNKLINE_AM_H

int trunkline_am_request_short(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                               gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args);
/* With 0, 1 or 2 arguments; the second one is in the upper half of args. `args` is the third
 * parameter because it is the third of the function called in the end: it stays in its register.
 * `tag` encodes the number of arguments, in the form that transports need. */
#define TRUNKLINE_AM_TAG(nargs) (0x8000u | (nargs) << 8)
int trunkline_am_request_small(gex_TM_t tm, gex_Rank_t rank, uint64_t args, gex_Flags_t flags,
                               gex_AM_Index_t handler, unsigned tag);
int trunkline_am_reply_small(gex_Token_t token, gex_AM_Index_t handler, uint64_t args,
                             gex_Flags_t flags, unsigned nargs);

int trunkline_am_request_medium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                const void *src, size_t nbytes, gex_Event_t *lc_opt,
                                gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args);
int trunkline_am_request_long(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src,
                              size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                              unsigned nargs, const gex_AM_Arg_t *args);
int trunkline_am_reply_short(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
                             unsigned nargs, const gex_AM_Arg_t *args);
int trunkline_am_reply_medium(gex_Token_t token, gex_AM_Index_t handler, const void *src,
                              size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned nargs,
                              const gex_AM_Arg_t *args);
int trunkline_am_reply_long(gex_Token_t token, gex_AM_Index_t handler, const void *src,
                            size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                            unsigned nargs, const gex_AM_Arg_t *args);

void trunkline_am_commit_request_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        unsigned nargs, const gex_AM_Arg_t *args);
void trunkline_am_commit_request_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                      void *dest, unsigned nargs, const gex_AM_Arg_t *args);
void trunkline_am_commit_reply_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                      unsigned nargs, const gex_AM_Arg_t *args);
void trunkline_am_commit_reply_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                    void *dest, unsigned nargs, const gex_AM_Arg_t *args);

/* The same with commit flags: with GEX_FLAG_IMMEDIATE they do not poll, and return non-zero if they
 * sent nothing; the descriptor then stays valid. */
int trunkline_am_commit_request_medium_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                          size_t nbytes, gex_Flags_t flags, unsigned nargs,
                                          const gex_AM_Arg_t *args);
int trunkline_am_commit_request_long_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        void *dest, gex_Flags_t flags, unsigned nargs,
                                        const gex_AM_Arg_t *args);
int trunkline_am_commit_reply_medium_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        gex_Flags_t flags, unsigned nargs,
                                        const gex_AM_Arg_t *args);
int trunkline_am_commit_reply_long_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                      void *dest, gex_Flags_t flags, unsigned nargs,
                                      const gex_AM_Arg_t *args);

/* For each count M: ", parameters", and the array of their values */
/* clang-format off: tables read better than wrapped lines */
#define TRUNKLINE_P0
#define TRUNKLINE_P1  , gex_AM_Arg_t a0
#define TRUNKLINE_P2  TRUNKLINE_P1, gex_AM_Arg_t a1
#define TRUNKLINE_P3  TRUNKLINE_P2, gex_AM_Arg_t a2
#define TRUNKLINE_P4  TRUNKLINE_P3, gex_AM_Arg_t a3
#define TRUNKLINE_P5  TRUNKLINE_P4, gex_AM_Arg_t a4
#define TRUNKLINE_P6  TRUNKLINE_P5, gex_AM_Arg_t a5
#define TRUNKLINE_P7  TRUNKLINE_P6, gex_AM_Arg_t a6
#define TRUNKLINE_P8  TRUNKLINE_P7, gex_AM_Arg_t a7
#define TRUNKLINE_P9  TRUNKLINE_P8, gex_AM_Arg_t a8
#define TRUNKLINE_P10 TRUNKLINE_P9, gex_AM_Arg_t a9
#define TRUNKLINE_P11 TRUNKLINE_P10, gex_AM_Arg_t a10
#define TRUNKLINE_P12 TRUNKLINE_P11, gex_AM_Arg_t a11
#define TRUNKLINE_P13 TRUNKLINE_P12, gex_AM_Arg_t a12
#define TRUNKLINE_P14 TRUNKLINE_P13, gex_AM_Arg_t a13
#define TRUNKLINE_P15 TRUNKLINE_P14, gex_AM_Arg_t a14
#define TRUNKLINE_P16 TRUNKLINE_P15, gex_AM_Arg_t a15

#define TRUNKLINE_V1  a0
#define TRUNKLINE_V2  TRUNKLINE_V1, a1
#define TRUNKLINE_V3  TRUNKLINE_V2, a2
#define TRUNKLINE_V4  TRUNKLINE_V3, a3
#define TRUNKLINE_V5  TRUNKLINE_V4, a4
#define TRUNKLINE_V6  TRUNKLINE_V5, a5
#define TRUNKLINE_V7  TRUNKLINE_V6, a6
#define TRUNKLINE_V8  TRUNKLINE_V7, a7
#define TRUNKLINE_V9  TRUNKLINE_V8, a8
#define TRUNKLINE_V10 TRUNKLINE_V9, a9
#define TRUNKLINE_V11 TRUNKLINE_V10, a10
#define TRUNKLINE_V12 TRUNKLINE_V11, a11
#define TRUNKLINE_V13 TRUNKLINE_V12, a12
#define TRUNKLINE_V14 TRUNKLINE_V13, a13
#define TRUNKLINE_V15 TRUNKLINE_V14, a14
#define TRUNKLINE_V16 TRUNKLINE_V15, a15

/* The array is never empty (ISO C), so count 0 carries one unused value. */
#define TRUNKLINE_ARRAY0                                                                           \
    {                                                                                              \
        0                                                                                          \
    }
#define TRUNKLINE_ARRAY1                                                                           \
    {                                                                                              \
        TRUNKLINE_V1                                                                               \
    }
#define TRUNKLINE_ARRAY2                                                                           \
    {                                                                                              \
        TRUNKLINE_V2                                                                               \
    }
#define TRUNKLINE_ARRAY3                                                                           \
    {                                                                                              \
        TRUNKLINE_V3                                                                               \
    }
#define TRUNKLINE_ARRAY4                                                                           \
    {                                                                                              \
        TRUNKLINE_V4                                                                               \
    }
#define TRUNKLINE_ARRAY5                                                                           \
    {                                                                                              \
        TRUNKLINE_V5                                                                               \
    }
#define TRUNKLINE_ARRAY6                                                                           \
    {                                                                                              \
        TRUNKLINE_V6                                                                               \
    }
#define TRUNKLINE_ARRAY7                                                                           \
    {                                                                                              \
        TRUNKLINE_V7                                                                               \
    }
#define TRUNKLINE_ARRAY8                                                                           \
    {                                                                                              \
        TRUNKLINE_V8                                                                               \
    }
#define TRUNKLINE_ARRAY9                                                                           \
    {                                                                                              \
        TRUNKLINE_V9                                                                               \
    }
#define TRUNKLINE_ARRAY10                                                                          \
    {                                                                                              \
        TRUNKLINE_V10                                                                              \
    }
#define TRUNKLINE_ARRAY11                                                                          \
    {                                                                                              \
        TRUNKLINE_V11                                                                              \
    }
#define TRUNKLINE_ARRAY12                                                                          \
    {                                                                                              \
        TRUNKLINE_V12                                                                              \
    }
#define TRUNKLINE_ARRAY13                                                                          \
    {                                                                                              \
        TRUNKLINE_V13                                                                              \
    }
#define TRUNKLINE_ARRAY14                                                                          \
    {                                                                                              \
        TRUNKLINE_V14                                                                              \
    }
#define TRUNKLINE_ARRAY15                                                                          \
    {                                                                                              \
        TRUNKLINE_V15                                                                              \
    }
#define TRUNKLINE_ARRAY16                                                                          \
    {                                                                                              \
        TRUNKLINE_V16                                                                              \
    }
/* clang-format on */

#define TRUNKLINE_PAIR0 0
#define TRUNKLINE_PAIR1 (uint32_t) a0
#define TRUNKLINE_PAIR2 ((uint64_t)(uint32_t)a1 << 32 | (uint32_t)a0)

#define TRUNKLINE_AM_SMALL_FORMS(M)                                                                \
    TRUNKLINE_INLINE int gex_AM_RequestShort##M(                                                   \
        gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags TRUNKLINE_P##M)    \
    {                                                                                              \
        return trunkline_am_request_small(tm, rank, TRUNKLINE_PAIR##M, flags, handler,             \
                                          TRUNKLINE_AM_TAG(M));                                    \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_ReplyShort##M(gex_Token_t token, gex_AM_Index_t handler,           \
                                              gex_Flags_t flags TRUNKLINE_P##M)                    \
    {                                                                                              \
        return trunkline_am_reply_small(token, handler, TRUNKLINE_PAIR##M, flags, M);              \
    }

#define TRUNKLINE_AM_SHORT_FORMS(M)                                                                \
    TRUNKLINE_INLINE int gex_AM_RequestShort##M(                                                   \
        gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags TRUNKLINE_P##M)    \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_request_short(tm, rank, handler, flags, M, args);                      \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_ReplyShort##M(gex_Token_t token, gex_AM_Index_t handler,           \
                                              gex_Flags_t flags TRUNKLINE_P##M)                    \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_reply_short(token, handler, flags, M, args);                           \
    }

#define TRUNKLINE_AM_FORMS(M)                                                                      \
    TRUNKLINE_INLINE int gex_AM_RequestMedium##M(                                                  \
        gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src, size_t nbytes,      \
        gex_Event_t *lc_opt, gex_Flags_t flags TRUNKLINE_P##M)                                     \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_request_medium(tm, rank, handler, src, nbytes, lc_opt, flags, M,       \
                                           args);                                                  \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_RequestLong##M(                                                    \
        gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src, size_t nbytes,      \
        void *dest, gex_Event_t *lc_opt, gex_Flags_t flags TRUNKLINE_P##M)                         \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_request_long(tm, rank, handler, src, nbytes, dest, lc_opt, flags, M,   \
                                         args);                                                    \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_ReplyMedium##M(                                                    \
        gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t nbytes,                 \
        gex_Event_t *lc_opt, gex_Flags_t flags TRUNKLINE_P##M)                                     \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_reply_medium(token, handler, src, nbytes, lc_opt, flags, M, args);     \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_ReplyLong##M(                                                      \
        gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t nbytes, void *dest,     \
        gex_Event_t *lc_opt, gex_Flags_t flags TRUNKLINE_P##M)                                     \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_reply_long(token, handler, src, nbytes, dest, lc_opt, flags, M, args); \
    }                                                                                              \
    TRUNKLINE_INLINE void gex_AM_CommitRequestMedium##M(                                           \
        gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes TRUNKLINE_P##M)                 \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        trunkline_am_commit_request_medium(sd, handler, nbytes, M, args);                          \
    }                                                                                              \
    TRUNKLINE_INLINE void gex_AM_CommitRequestLong##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, \
                                                      size_t nbytes, void *dest TRUNKLINE_P##M)    \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        trunkline_am_commit_request_long(sd, handler, nbytes, dest, M, args);                      \
    }                                                                                              \
    TRUNKLINE_INLINE void gex_AM_CommitReplyMedium##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, \
                                                      size_t nbytes TRUNKLINE_P##M)                \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        trunkline_am_commit_reply_medium(sd, handler, nbytes, M, args);                            \
    }                                                                                              \
    TRUNKLINE_INLINE void gex_AM_CommitReplyLong##M(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,   \
                                                    size_t nbytes, void *dest TRUNKLINE_P##M)      \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        trunkline_am_commit_reply_long(sd, handler, nbytes, dest, M, args);                        \
    }

#define TRUNKLINE_AM_COMMIT_FORMS(M)                                                               \
    TRUNKLINE_INLINE int gex_AM_CommitRequestMedium##M##_v2(                                       \
        gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,                                \
        gex_Flags_t commit_flags TRUNKLINE_P##M)                                                   \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_commit_request_medium_v2(sd, handler, nbytes, commit_flags, M, args);  \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_CommitRequestLong##M##_v2(                                         \
        gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, void *dest,                    \
        gex_Flags_t commit_flags TRUNKLINE_P##M)                                                   \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_commit_request_long_v2(sd, handler, nbytes, dest, commit_flags, M,     \
                                                   args);                                          \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_CommitReplyMedium##M##_v2(gex_AM_SrcDesc_t sd,                     \
                                                          gex_AM_Index_t handler, size_t nbytes,   \
                                                          gex_Flags_t commit_flags TRUNKLINE_P##M) \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_commit_reply_medium_v2(sd, handler, nbytes, commit_flags, M, args);    \
    }                                                                                              \
    TRUNKLINE_INLINE int gex_AM_CommitReplyLong##M##_v2(                                           \
        gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, void *dest,                    \
        gex_Flags_t commit_flags TRUNKLINE_P##M)                                                   \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        return trunkline_am_commit_reply_long_v2(sd, handler, nbytes, dest, commit_flags, M,       \
                                                 args);                                            \
    }

TRUNKLINE_AM_SMALL_FORMS(0)
TRUNKLINE_AM_SMALL_FORMS(1)
TRUNKLINE_AM_SMALL_FORMS(2)
TRUNKLINE_AM_SHORT_FORMS(3)
TRUNKLINE_AM_SHORT_FORMS(4)
TRUNKLINE_AM_SHORT_FORMS(5)
TRUNKLINE_AM_SHORT_FORMS(6)
TRUNKLINE_AM_SHORT_FORMS(7)
TRUNKLINE_AM_SHORT_FORMS(8)
TRUNKLINE_AM_SHORT_FORMS(9)
TRUNKLINE_AM_SHORT_FORMS(10)
TRUNKLINE_AM_SHORT_FORMS(11)
TRUNKLINE_AM_SHORT_FORMS(12)
TRUNKLINE_AM_SHORT_FORMS(13)
TRUNKLINE_AM_SHORT_FORMS(14)
TRUNKLINE_AM_SHORT_FORMS(15)
TRUNKLINE_AM_SHORT_FORMS(16)

TRUNKLINE_AM_FORMS(0)
TRUNKLINE_AM_FORMS(1)
TRUNKLINE_AM_FORMS(2)
TRUNKLINE_AM_FORMS(3)
TRUNKLINE_AM_FORMS(4)
TRUNKLINE_AM_FORMS(5)
TRUNKLINE_AM_FORMS(6)
TRUNKLINE_AM_FORMS(7)
TRUNKLINE_AM_FORMS(8)
TRUNKLINE_AM_FORMS(9)
TRUNKLINE_AM_FORMS(10)
TRUNKLINE_AM_FORMS(11)
TRUNKLINE_AM_FORMS(12)
TRUNKLINE_AM_FORMS(13)
TRUNKLINE_AM_FORMS(14)
TRUNKLINE_AM_FORMS(15)
TRUNKLINE_AM_FORMS(16)

TRUNKLINE_AM_COMMIT_FORMS(0)
TRUNKLINE_AM_COMMIT_FORMS(1)
TRUNKLINE_AM_COMMIT_FORMS(2)
TRUNKLINE_AM_COMMIT_FORMS(3)
TRUNKLINE_AM_COMMIT_FORMS(4)
TRUNKLINE_AM_COMMIT_FORMS(5)
TRUNKLINE_AM_COMMIT_FORMS(6)
TRUNKLINE_AM_COMMIT_FORMS(7)
TRUNKLINE_AM_COMMIT_FORMS(8)
TRUNKLINE_AM_COMMIT_FORMS(9)
TRUNKLINE_AM_COMMIT_FORMS(10)
TRUNKLINE_AM_COMMIT_FORMS(11)
TRUNKLINE_AM_COMMIT_FORMS(12)
TRUNKLINE_AM_COMMIT_FORMS(13)
TRUNKLINE_AM_COMMIT_FORMS(14)
TRUNKLINE_AM_COMMIT_FORMS(15)
TRUNKLINE_AM_COMMIT_FORMS(16)

/* The counting forms take everything as variable arguments, so that the list is never an empty
 * "..." (which ISO C99 and C++11 forbid). TRUNKLINE_COUNT yields the number of arguments after the
 * first 8; shorter calls are padded in front to 8. */
#define TRUNKLINE_25TH(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, \
                       p18, p19, p20, p21, p22, p23, p24, p25, ...)                                \
    p25
#define TRUNKLINE_COUNT(...)                                                                       \
    TRUNKLINE_25TH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define TRUNKLINE_PASTE_(a, b) a##b
#define TRUNKLINE_PASTE(a, b)  TRUNKLINE_PASTE_(a, b)

#define gex_AM_RequestShort(...)                                                                   \
    TRUNKLINE_PASTE(gex_AM_RequestShort, TRUNKLINE_COUNT(0, 0, 0, 0, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestMedium(...)                                                                  \
    TRUNKLINE_PASTE(gex_AM_RequestMedium, TRUNKLINE_COUNT(0, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_RequestLong(...)                                                                    \
    TRUNKLINE_PASTE(gex_AM_RequestLong, TRUNKLINE_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyShort(...)                                                                     \
    TRUNKLINE_PASTE(gex_AM_ReplyShort, TRUNKLINE_COUNT(0, 0, 0, 0, 0, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyMedium(...)                                                                    \
    TRUNKLINE_PASTE(gex_AM_ReplyMedium, TRUNKLINE_COUNT(0, 0, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_ReplyLong(...)                                                                      \
    TRUNKLINE_PASTE(gex_AM_ReplyLong, TRUNKLINE_COUNT(0, __VA_ARGS__))(__VA_ARGS__)

#define gex_AM_CommitRequestMedium(...)                                                            \
    TRUNKLINE_PASTE(gex_AM_CommitRequestMedium, TRUNKLINE_COUNT(0, 0, 0, 0, 0, __VA_ARGS__))       \
    (__VA_ARGS__)
#define gex_AM_CommitRequestLong(...)                                                              \
    TRUNKLINE_PASTE(gex_AM_CommitRequestLong, TRUNKLINE_COUNT(0, 0, 0, 0, __VA_ARGS__))(__VA_ARGS__)
#define gex_AM_CommitReplyMedium(...)                                                              \
    TRUNKLINE_PASTE(gex_AM_CommitReplyMedium, TRUNKLINE_COUNT(0, 0, 0, 0, 0, __VA_ARGS__))         \
    (__VA_ARGS__)
#define gex_AM_CommitReplyLong(...)                                                                \
    TRUNKLINE_PASTE(gex_AM_CommitReplyLong, TRUNKLINE_COUNT(0, 0, 0, 0, __VA_ARGS__))(__VA_ARGS__)

#define TRUNKLINE_PASTE3_(a, b, c) a##b##c
#define TRUNKLINE_PASTE3(a, b, c)  TRUNKLINE_PASTE3_(a, b, c)

#define gex_AM_CommitRequestMedium_v2(...)                                                         \
    TRUNKLINE_PASTE3(gex_AM_CommitRequestMedium, TRUNKLINE_COUNT(0, 0, 0, 0, __VA_ARGS__), _v2)    \
    (__VA_ARGS__)
#define gex_AM_CommitRequestLong_v2(...)                                                           \
    TRUNKLINE_PASTE3(gex_AM_CommitRequestLong, TRUNKLINE_COUNT(0, 0, 0, __VA_ARGS__), _v2)         \
    (__VA_ARGS__)
#define gex_AM_CommitReplyMedium_v2(...)                                                           \
    TRUNKLINE_PASTE3(gex_AM_CommitReplyMedium, TRUNKLINE_COUNT(0, 0, 0, 0, __VA_ARGS__), _v2)      \
    (__VA_ARGS__)
#define gex_AM_CommitReplyLong_v2(...)                                                             \
    TRUNKLINE_PASTE3(gex_AM_CommitReplyLong, TRUNKLINE_COUNT(0, 0, 0, __VA_ARGS__), _v2)           \
    (__VA_ARGS__)

#endif
