/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compiler annotations: attributes, predictions, linkage. A client enables or disables each by
 * defining GASNETT_USE_* to 1 or 0 before it includes gasnet_tools.h. Owns nothing. */
#ifndef GASNET_TOOLS_ANNOTATE_H
#define GASNET_TOOLS_ANNOTATE_H

/* ---- Selection ---- */

#if defined(__GNUC__) &&                                                                           \
    !(defined(GASNETT_COMPILER_FORCE_MISMATCH) && GASNETT_COMPILER_FORCE_MISMATCH)
#    define TRUNKLINE_GNU 1
#else
#    define TRUNKLINE_GNU 0
#endif
#if defined(__clang__) && TRUNKLINE_GNU
#    define TRUNKLINE_CLANG 1
#else
#    define TRUNKLINE_CLANG 0
#endif

#ifndef GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#    define GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_COLD
#    define GASNETT_USE_GCC_ATTRIBUTE_COLD TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_CONST
#    define GASNETT_USE_GCC_ATTRIBUTE_CONST TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#    define GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH
#    define GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#    define GASNETT_USE_GCC_ATTRIBUTE_FORMAT TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#    define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG
#    define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_HOT
#    define GASNETT_USE_GCC_ATTRIBUTE_HOT TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#    define GASNETT_USE_GCC_ATTRIBUTE_MALLOC TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS
#    define GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#    define GASNETT_USE_GCC_ATTRIBUTE_NOINLINE TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#    define GASNETT_USE_GCC_ATTRIBUTE_NORETURN TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_PURE
#    define GASNETT_USE_GCC_ATTRIBUTE_PURE TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_USED
#    define GASNETT_USE_GCC_ATTRIBUTE_USED TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#    define GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_CXX11_ATTRIBUTE_FALLTHROUGH
#    define GASNETT_USE_CXX11_ATTRIBUTE_FALLTHROUGH 0
#endif
#ifndef GASNETT_USE_CXX11_ATTRIBUTE_CLANG__FALLTHROUGH
#    define GASNETT_USE_CXX11_ATTRIBUTE_CLANG__FALLTHROUGH 0
#endif
#ifndef GASNETT_USE_BUILTIN_ASSUME
#    define GASNETT_USE_BUILTIN_ASSUME TRUNKLINE_CLANG
#endif
#ifndef GASNETT_USE_ASSUME
#    define GASNETT_USE_ASSUME 1
#endif
#ifndef GASNETT_USE_BUILTIN_CONSTANT_P
#    define GASNETT_USE_BUILTIN_CONSTANT_P TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_BUILTIN_EXPECT
#    define GASNETT_USE_BUILTIN_EXPECT TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_BUILTIN_PREFETCH
#    define GASNETT_USE_BUILTIN_PREFETCH TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_BUILTIN_UNREACHABLE
#    define GASNETT_USE_BUILTIN_UNREACHABLE TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC
#    define GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC TRUNKLINE_GNU
#endif
#ifndef GASNETT_USE_CTYPE_WRAPPERS
#    define GASNETT_USE_CTYPE_WRAPPERS 1
#endif
/* 0, 1 or a keyword of the client's compiler. This library's compilers need none on typedefs. */
#ifndef GASNETT_USE_RESTRICT
#    define GASNETT_USE_RESTRICT __restrict__
#endif
#ifndef GASNETT_USE_RESTRICT_ON_TYPEDEFS
#    define GASNETT_USE_RESTRICT_ON_TYPEDEFS 1
#endif

/* ---- Linkage ---- */

#if defined(__cplusplus)
#    define GASNETT_EXTERNC extern "C"
/* clang-format off: BEGIN opens the brace that END closes */
#    define GASNETT_BEGIN_EXTERNC extern "C" {
#    define GASNETT_END_EXTERNC   }
/* clang-format on */
#else
#    define GASNETT_EXTERNC extern
#    define GASNETT_BEGIN_EXTERNC
#    define GASNETT_END_EXTERNC
#endif

/* ---- Functions ---- */

/* Small functions of these headers: a client need not use them all. */
#define TRUNKLINE_TOOLS_INLINE static __inline__ __attribute__((__unused__))

#if GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#    define GASNETT_INLINE(fnname)                                                                 \
        static __inline__ __attribute__((__unused__)) __attribute__((__always_inline__))
#else
#    define GASNETT_INLINE(fnname) static __inline__
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#    define GASNETT_NEVER_INLINE(fnname, declarator) __attribute__((__noinline__)) declarator
#else
#    define GASNETT_NEVER_INLINE(fnname, declarator) declarator
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#    define GASNETT_NORETURN __attribute__((__noreturn__))
#else
#    define GASNETT_NORETURN
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#    define GASNETT_MALLOC __attribute__((__malloc__))
#else
#    define GASNETT_MALLOC
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_PURE
#    define GASNETT_PURE __attribute__((__pure__))
#else
#    define GASNETT_PURE
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_CONST
#    define GASNETT_CONST __attribute__((__const__))
#else
#    define GASNETT_CONST
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_HOT
#    define GASNETT_HOT __attribute__((__hot__))
#else
#    define GASNETT_HOT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_COLD
#    define GASNETT_COLD __attribute__((__cold__))
#else
#    define GASNETT_COLD
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#    define GASNETT_DEPRECATED __attribute__((__deprecated__))
#else
#    define GASNETT_DEPRECATED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#    define GASNETT_WARN_UNUSED_RESULT __attribute__((__warn_unused_result__))
#else
#    define GASNETT_WARN_UNUSED_RESULT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_USED
#    define GASNETT_USED __attribute__((__used__))
#else
#    define GASNETT_USED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#    define GASNETT_FORMAT_PRINTF(fnname, fmtarg, firstvararg, declarator)                         \
        __attribute__((__format__(__printf__, fmtarg, firstvararg))) declarator
#else
#    define GASNETT_FORMAT_PRINTF(fnname, fmtarg, firstvararg, declarator) declarator
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#    define GASNETT_FORMAT_PRINTF_FUNCPTR(fnname, fmtarg, firstvararg, declarator)                 \
        __attribute__((__format__(__printf__, fmtarg, firstvararg))) declarator
#else
#    define GASNETT_FORMAT_PRINTF_FUNCPTR(fnname, fmtarg, firstvararg, declarator) declarator
#endif

/* For compilers that need a pragma instead; none of ours does. */
#define GASNETT_NORETURNP(fnname)
#define GASNETT_MALLOCP(fnname)
#define GASNETT_PUREP(fnname)
#define GASNETT_CONSTP(fnname)

#if GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS
#    define TRUNKLINE_MAY_ALIAS __attribute__((__may_alias__))
#else
#    define TRUNKLINE_MAY_ALIAS
#endif

/* The macro's value selects the keyword. */
#define TRUNKLINE_RESTRICT_0
#define TRUNKLINE_RESTRICT_1            __restrict__
#define TRUNKLINE_RESTRICT___restrict__ __restrict__
#define TRUNKLINE_RESTRICT___restrict   __restrict
#define TRUNKLINE_RESTRICT_restrict     restrict
#define TRUNKLINE_RESTRICT_PASTE(word)  TRUNKLINE_RESTRICT_##word
#define TRUNKLINE_RESTRICT_OF(word)     TRUNKLINE_RESTRICT_PASTE(word)
#define GASNETT_RESTRICT                TRUNKLINE_RESTRICT_OF(GASNETT_USE_RESTRICT)

/* ---- Expressions and statements ---- */

#if GASNETT_USE_BUILTIN_EXPECT
#    define GASNETT_PREDICT_TRUE(expr)  __builtin_expect(!!(expr), 1)
#    define GASNETT_PREDICT_FALSE(expr) __builtin_expect(!!(expr), 0)
#else
#    define GASNETT_PREDICT_TRUE(expr)  (expr)
#    define GASNETT_PREDICT_FALSE(expr) (expr)
#endif
#define if_pf(cond) if (GASNETT_PREDICT_FALSE(cond))
#define if_pt(cond) if (GASNETT_PREDICT_TRUE(cond))

#if GASNETT_USE_BUILTIN_CONSTANT_P
#    define gasnett_constant_p(expr) __builtin_constant_p(expr)
#else
#    define gasnett_constant_p(expr) 0
#endif
#if GASNETT_USE_BUILTIN_UNREACHABLE
#    define gasnett_unreachable() __builtin_unreachable()
#else
#    define gasnett_unreachable() ((void)0)
#endif
/* The condition must have no effects: some compilers do not evaluate it. */
#if GASNETT_USE_ASSUME && GASNETT_USE_BUILTIN_ASSUME
#    define gasnett_assume(cond) __builtin_assume(cond)
#elif GASNETT_USE_ASSUME
#    define gasnett_assume(cond) ((cond) ? (void)0 : gasnett_unreachable())
#else
#    define gasnett_assume(cond) ((void)0)
#endif

/* A complete statement; takes no semicolon. */
#if defined(__cplusplus) && GASNETT_USE_CXX11_ATTRIBUTE_CLANG__FALLTHROUGH
#    define GASNETT_FALLTHROUGH [[clang::fallthrough]];
#elif defined(__cplusplus) && GASNETT_USE_CXX11_ATTRIBUTE_FALLTHROUGH
#    define GASNETT_FALLTHROUGH [[fallthrough]];
#elif GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH
#    define GASNETT_FALLTHROUGH __attribute__((__fallthrough__));
#else
#    define GASNETT_FALLTHROUGH
#endif

#define GASNETT_UNUSED_ARGS1(a1)                 ((void)(a1))
#define GASNETT_UNUSED_ARGS2(a1, a2)             ((void)(a1), (void)(a2))
#define GASNETT_UNUSED_ARGS3(a1, a2, a3)         (GASNETT_UNUSED_ARGS2(a1, a2), (void)(a3))
#define GASNETT_UNUSED_ARGS4(a1, a2, a3, a4)     (GASNETT_UNUSED_ARGS3(a1, a2, a3), (void)(a4))
#define GASNETT_UNUSED_ARGS5(a1, a2, a3, a4, a5) (GASNETT_UNUSED_ARGS4(a1, a2, a3, a4), (void)(a5))
#define GASNETT_UNUSED_ARGS6(a1, a2, a3, a4, a5, a6)                                               \
    (GASNETT_UNUSED_ARGS5(a1, a2, a3, a4, a5), (void)(a6))
#define GASNETT_UNUSED_ARGS7(a1, a2, a3, a4, a5, a6, a7)                                           \
    (GASNETT_UNUSED_ARGS6(a1, a2, a3, a4, a5, a6), (void)(a7))
#define GASNETT_UNUSED_ARGS8(a1, a2, a3, a4, a5, a6, a7, a8)                                       \
    (GASNETT_UNUSED_ARGS7(a1, a2, a3, a4, a5, a6, a7), (void)(a8))

/* At file scope, followed by a semicolon: keeps the text in the object for `ident` and similar
 * tools. */
#define GASNETT_IDENT(identName, identText)                                                        \
    static const char identName[] __attribute__((__used__)) = identText

#define GASNETT_CURRENT_FUNCTION __func__

#endif
