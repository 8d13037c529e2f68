/* SPDX-License-Identifier: BSD-3-Clause */
/* What compiler, system and processor this is compiled for, as PLATFORM_* macros that are 1 or
 * undefined. Other projects carry files of their own with the same names, so each definition yields
 * to one that exists. Owns nothing, locks nothing. */
#ifndef GASNET_PORTABLE_PLATFORM_H
#define GASNET_PORTABLE_PLATFORM_H

/* Compiler. Clang says it is GNU too, so it comes first. */
#if defined(__clang__)
#    ifndef PLATFORM_COMPILER_CLANG
#        define PLATFORM_COMPILER_CLANG 1
#    endif
#    ifndef PLATFORM_COMPILER_FAMILYNAME
#        define PLATFORM_COMPILER_FAMILYNAME CLANG
#    endif
#elif defined(__GNUC__)
#    ifndef PLATFORM_COMPILER_GNU
#        define PLATFORM_COMPILER_GNU 1
#    endif
#    ifndef PLATFORM_COMPILER_FAMILYNAME
#        define PLATFORM_COMPILER_FAMILYNAME GNU
#    endif
#endif

#if defined(__VERSION__) && !defined(PLATFORM_COMPILER_VERSION_STR)
#    define PLATFORM_COMPILER_VERSION_STR __VERSION__
#endif

/* System */
#if defined(__linux__) && !defined(PLATFORM_OS_LINUX)
#    define PLATFORM_OS_LINUX 1
#endif
#if defined(__linux__) && !defined(PLATFORM_OS_FAMILYNAME)
#    define PLATFORM_OS_FAMILYNAME LINUX
#endif

/* Processor */
#if defined(__x86_64__) && !defined(PLATFORM_ARCH_X86_64)
#    define PLATFORM_ARCH_X86_64 1
#endif
#if defined(__aarch64__) && !defined(PLATFORM_ARCH_AARCH64)
#    define PLATFORM_ARCH_AARCH64 1
#endif
#if defined(__powerpc64__) && !defined(PLATFORM_ARCH_POWERPC)
#    define PLATFORM_ARCH_POWERPC 1
#endif

#if defined(__LP64__) && !defined(PLATFORM_ARCH_64)
#    define PLATFORM_ARCH_64 1
#endif
#if !defined(__LP64__) && !defined(PLATFORM_ARCH_32)
#    define PLATFORM_ARCH_32 1
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&                        \
    !defined(PLATFORM_ARCH_LITTLE_ENDIAN)
#    define PLATFORM_ARCH_LITTLE_ENDIAN 1
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ &&                           \
    !defined(PLATFORM_ARCH_BIG_ENDIAN)
#    define PLATFORM_ARCH_BIG_ENDIAN 1
#endif

#endif
