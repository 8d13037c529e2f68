/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The compiler, system and processor, as PLATFORM_* macros that are 1 or undefined. Other projects
 * have files of their own with the same names, so each definition yields to an existing one.
 * Compilers and systems that this library is not built for are never reported. Owns nothing, locks
 * nothing. */
#ifndef GASNET_PORTABLE_PLATFORM_H
#define GASNET_PORTABLE_PLATFORM_H

#ifndef PLATFORM_STRINGIFY
#    define PLATFORM_STRINGIFY_HELPER(x) #    x
#    define PLATFORM_STRINGIFY(x)        PLATFORM_STRINGIFY_HELPER(x)
#endif

/* ---- Compiler ---- */

/* Comparable numbers. The patch level has enough digits for date-like ones. */
#ifndef PLATFORM_COMPILER_VERSION_INT
#    define PLATFORM_COMPILER_VERSION_INT(maj, min, pat) (((maj) << 24) | ((min) << 16) | (pat))
#endif

/* Compilers that also define the macros of the compiler they derive from, so the first match
 * counts. */
#if !defined(PLATFORM_COMPILER_FAMILYNAME)
#    if defined(__INTEL_LLVM_COMPILER) || defined(__INTEL_COMPILER)
#        define PLATFORM_COMPILER_INTEL      1
#        define PLATFORM_COMPILER_FAMILYNAME INTEL
#        define PLATFORM_COMPILER_FAMILYID   2
#    elif defined(__NVCOMPILER)
#        define PLATFORM_COMPILER_NVHPC      1
#        define PLATFORM_COMPILER_FAMILYNAME NVHPC
#        define PLATFORM_COMPILER_FAMILYID   20
#    elif defined(_CRAYC)
#        define PLATFORM_COMPILER_CRAY       1
#        define PLATFORM_COMPILER_FAMILYNAME CRAY
#        define PLATFORM_COMPILER_FAMILYID   10
#    elif defined(__clang__)
#        define PLATFORM_COMPILER_CLANG      1
#        define PLATFORM_COMPILER_FAMILYNAME CLANG
#        define PLATFORM_COMPILER_FAMILYID   19
#    elif defined(__GNUC__)
#        define PLATFORM_COMPILER_GNU        1
#        define PLATFORM_COMPILER_FAMILYNAME GNU
#        define PLATFORM_COMPILER_FAMILYID   1
#    else
#        define PLATFORM_COMPILER_UNKNOWN    1
#        define PLATFORM_COMPILER_FAMILYNAME UNKNOWN
#        define PLATFORM_COMPILER_FAMILYID   0
#    endif
#endif
#ifndef PLATFORM_COMPILER_FAMILYID
#    define PLATFORM_COMPILER_FAMILYID 0
#endif

/* The same, with the language. */
#if defined(__cplusplus)
#    if defined(PLATFORM_COMPILER_CLANG) && !defined(PLATFORM_COMPILER_CLANG_CXX)
#        define PLATFORM_COMPILER_CLANG_CXX 1
#    elif defined(PLATFORM_COMPILER_GNU) && !defined(PLATFORM_COMPILER_GNU_CXX)
#        define PLATFORM_COMPILER_GNU_CXX 1
#    elif defined(PLATFORM_COMPILER_INTEL) && !defined(PLATFORM_COMPILER_INTEL_CXX)
#        define PLATFORM_COMPILER_INTEL_CXX 1
#    elif defined(PLATFORM_COMPILER_NVHPC) && !defined(PLATFORM_COMPILER_NVHPC_CXX)
#        define PLATFORM_COMPILER_NVHPC_CXX 1
#    elif defined(PLATFORM_COMPILER_CRAY) && !defined(PLATFORM_COMPILER_CRAY_CXX)
#        define PLATFORM_COMPILER_CRAY_CXX 1
#    endif
#    ifndef PLATFORM_COMPILER_CXX_LANGLVL
#        define PLATFORM_COMPILER_CXX_LANGLVL __cplusplus
#    endif
#    ifndef PLATFORM_COMPILER_ID
#        define PLATFORM_COMPILER_ID (PLATFORM_COMPILER_FAMILYID + 10000)
#    endif
#    define TRUNKLINE_LANGUAGE "C++"
#else
#    if defined(PLATFORM_COMPILER_CLANG) && !defined(PLATFORM_COMPILER_CLANG_C)
#        define PLATFORM_COMPILER_CLANG_C 1
#    elif defined(PLATFORM_COMPILER_GNU) && !defined(PLATFORM_COMPILER_GNU_C)
#        define PLATFORM_COMPILER_GNU_C 1
#    elif defined(PLATFORM_COMPILER_INTEL) && !defined(PLATFORM_COMPILER_INTEL_C)
#        define PLATFORM_COMPILER_INTEL_C 1
#    elif defined(PLATFORM_COMPILER_NVHPC) && !defined(PLATFORM_COMPILER_NVHPC_C)
#        define PLATFORM_COMPILER_NVHPC_C 1
#    elif defined(PLATFORM_COMPILER_CRAY) && !defined(PLATFORM_COMPILER_CRAY_C)
#        define PLATFORM_COMPILER_CRAY_C 1
#    endif
#    if defined(__STDC_VERSION__) && !defined(PLATFORM_COMPILER_C_LANGLVL)
#        define PLATFORM_COMPILER_C_LANGLVL __STDC_VERSION__
#    endif
#    ifndef PLATFORM_COMPILER_ID
#        define PLATFORM_COMPILER_ID PLATFORM_COMPILER_FAMILYID
#    endif
#    define TRUNKLINE_LANGUAGE "C"
#endif

#ifndef PLATFORM_COMPILER_VERSION
#    if defined(__INTEL_LLVM_COMPILER)
#        define PLATFORM_COMPILER_VERSION                                                          \
            PLATFORM_COMPILER_VERSION_INT(__INTEL_LLVM_COMPILER / 10000,                           \
                                          __INTEL_LLVM_COMPILER / 100 % 100,                       \
                                          __INTEL_LLVM_COMPILER % 100)
#    elif defined(__INTEL_COMPILER)
#        define PLATFORM_COMPILER_VERSION                                                          \
            PLATFORM_COMPILER_VERSION_INT(__INTEL_COMPILER / 100, __INTEL_COMPILER / 10 % 10, 0)
#    elif defined(__NVCOMPILER)
#        define PLATFORM_COMPILER_VERSION                                                          \
            PLATFORM_COMPILER_VERSION_INT(__NVCOMPILER_MAJOR__, __NVCOMPILER_MINOR__,              \
                                          __NVCOMPILER_PATCHLEVEL__)
#    elif defined(__clang__)
#        define PLATFORM_COMPILER_VERSION                                                          \
            PLATFORM_COMPILER_VERSION_INT(__clang_major__, __clang_minor__, __clang_patchlevel__)
#    elif defined(__GNUC__)
#        define PLATFORM_COMPILER_VERSION                                                          \
            PLATFORM_COMPILER_VERSION_INT(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__)
#    else
#        define PLATFORM_COMPILER_VERSION 0
#    endif
#endif

#ifndef PLATFORM_COMPILER_VERSION_GT
#    define PLATFORM_COMPILER_VERSION_GT(maj, min, pat)                                            \
        (PLATFORM_COMPILER_VERSION > PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#endif
#ifndef PLATFORM_COMPILER_VERSION_GE
#    define PLATFORM_COMPILER_VERSION_GE(maj, min, pat)                                            \
        (PLATFORM_COMPILER_VERSION >= PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#endif
#ifndef PLATFORM_COMPILER_VERSION_EQ
#    define PLATFORM_COMPILER_VERSION_EQ(maj, min, pat)                                            \
        (PLATFORM_COMPILER_VERSION == PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#endif
#ifndef PLATFORM_COMPILER_VERSION_LE
#    define PLATFORM_COMPILER_VERSION_LE(maj, min, pat)                                            \
        (PLATFORM_COMPILER_VERSION <= PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#endif
#ifndef PLATFORM_COMPILER_VERSION_LT
#    define PLATFORM_COMPILER_VERSION_LT(maj, min, pat)                                            \
        (PLATFORM_COMPILER_VERSION < PLATFORM_COMPILER_VERSION_INT(maj, min, pat))
#endif

#ifndef PLATFORM_COMPILER_VERSION_STR
#    if defined(__VERSION__)
#        define PLATFORM_COMPILER_VERSION_STR __VERSION__
#    else
#        define PLATFORM_COMPILER_VERSION_STR "unknown"
#    endif
#endif

/* Equal texts: objects of the same compiler and language. */
#ifndef PLATFORM_COMPILER_IDSTR
#    define PLATFORM_COMPILER_IDSTR                                                                \
        "|COMPILER_FAMILY:" PLATFORM_STRINGIFY(                                                    \
            PLATFORM_COMPILER_FAMILYNAME) "|COMPILER_VERSION:" PLATFORM_COMPILER_VERSION_STR       \
                                          "|LANGUAGE:" TRUNKLINE_LANGUAGE "|"
#endif

/* ---- System ---- */

#if !defined(PLATFORM_OS_FAMILYNAME)
#    if defined(__linux__)
#        define PLATFORM_OS_LINUX      1
#        define PLATFORM_OS_FAMILYNAME LINUX
#    elif defined(__FreeBSD__)
#        define PLATFORM_OS_FREEBSD    1
#        define PLATFORM_OS_FAMILYNAME FREEBSD
#    else
#        define PLATFORM_OS_UNKNOWN    1
#        define PLATFORM_OS_FAMILYNAME UNKNOWN
#    endif
#endif

/* ---- Processor ---- */

#if !defined(PLATFORM_ARCH_FAMILYNAME)
#    if defined(__x86_64__)
#        define PLATFORM_ARCH_X86_64     1
#        define PLATFORM_ARCH_FAMILYNAME X86_64
#    elif defined(__i386__)
#        define PLATFORM_ARCH_X86        1
#        define PLATFORM_ARCH_FAMILYNAME X86
#    elif defined(__aarch64__)
#        define PLATFORM_ARCH_AARCH64    1
#        define PLATFORM_ARCH_FAMILYNAME AARCH64
#    elif defined(__arm__)
#        define PLATFORM_ARCH_ARM        1
#        define PLATFORM_ARCH_FAMILYNAME ARM
#    elif defined(__powerpc__) || defined(__powerpc64__)
#        define PLATFORM_ARCH_POWERPC    1
#        define PLATFORM_ARCH_FAMILYNAME POWERPC
#    elif defined(__riscv)
#        define PLATFORM_ARCH_RISCV      1
#        define PLATFORM_ARCH_FAMILYNAME RISCV
#    elif defined(__s390x__)
#        define PLATFORM_ARCH_S390       1
#        define PLATFORM_ARCH_FAMILYNAME S390
#    elif defined(__mips__)
#        define PLATFORM_ARCH_MIPS       1
#        define PLATFORM_ARCH_FAMILYNAME MIPS
#    elif defined(__sparc__)
#        define PLATFORM_ARCH_SPARC      1
#        define PLATFORM_ARCH_FAMILYNAME SPARC
#    else
#        define PLATFORM_ARCH_UNKNOWN    1
#        define PLATFORM_ARCH_FAMILYNAME UNKNOWN
#    endif
#endif

#if !defined(PLATFORM_ARCH_64) && !defined(PLATFORM_ARCH_32)
#    if defined(__LP64__)
#        define PLATFORM_ARCH_64 1
#    else
#        define PLATFORM_ARCH_32 1
#    endif
#endif

#if defined(__BYTE_ORDER__) && !defined(PLATFORM_ARCH_LITTLE_ENDIAN) &&                            \
    !defined(PLATFORM_ARCH_BIG_ENDIAN)
#    if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#        define PLATFORM_ARCH_LITTLE_ENDIAN 1
#    elif __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#        define PLATFORM_ARCH_BIG_ENDIAN 1
#    endif
#endif

#endif
