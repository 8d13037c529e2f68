/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory barriers. On x86-64 loads are ordered among themselves and so are stores, so only the full
 * barrier is an instruction: a locked one, which is faster than mfence. Owns nothing. */
#ifndef GASNET_TOOLS_FENCE_H
#define GASNET_TOOLS_FENCE_H

#define TRUNKLINE_COMPILER_FENCE() __asm__ __volatile__("" : : : "memory")

#if defined(PLATFORM_ARCH_X86_64)
#    define TRUNKLINE_FENCE_WRITE() TRUNKLINE_COMPILER_FENCE()
#    define TRUNKLINE_FENCE_READ()  TRUNKLINE_COMPILER_FENCE()
#    define TRUNKLINE_FENCE_FULL()                                                                 \
        __asm__ __volatile__("lock; orl $0, (%%rsp)" : : : "memory", "cc")
#    define TRUNKLINE_SPIN_PAUSE() __asm__ __volatile__("pause" : : : "memory")
#elif defined(PLATFORM_ARCH_AARCH64)
#    define TRUNKLINE_FENCE_WRITE() __asm__ __volatile__("dmb ishst" : : : "memory")
#    define TRUNKLINE_FENCE_READ()  __asm__ __volatile__("dmb ishld" : : : "memory")
#    define TRUNKLINE_FENCE_FULL()  __asm__ __volatile__("dmb ish" : : : "memory")
#    define TRUNKLINE_SPIN_PAUSE()  __asm__ __volatile__("yield" : : : "memory")
#else
#    define TRUNKLINE_FENCE_WRITE() __atomic_thread_fence(__ATOMIC_RELEASE)
#    define TRUNKLINE_FENCE_READ()  __atomic_thread_fence(__ATOMIC_ACQUIRE)
#    define TRUNKLINE_FENCE_FULL()  __atomic_thread_fence(__ATOMIC_SEQ_CST)
#    define TRUNKLINE_SPIN_PAUSE()  TRUNKLINE_COMPILER_FENCE()
#endif

TRUNKLINE_TOOLS_INLINE void gasnett_compiler_fence(void)
{
    TRUNKLINE_COMPILER_FENCE();
}

/* Stores before it become visible before stores after it. */
TRUNKLINE_TOOLS_INLINE void gasnett_local_wmb(void)
{
    TRUNKLINE_FENCE_WRITE();
}

/* Loads before it complete before loads after it. */
TRUNKLINE_TOOLS_INLINE void gasnett_local_rmb(void)
{
    TRUNKLINE_FENCE_READ();
}

TRUNKLINE_TOOLS_INLINE void gasnett_local_mb(void)
{
    TRUNKLINE_FENCE_FULL();
}

/* For each iteration of a loop that waits for another thread's store. */
TRUNKLINE_TOOLS_INLINE void gasnett_spinloop_hint(void)
{
    TRUNKLINE_SPIN_PAUSE();
}

/* Between threads of this process only: nothing to order if there is only one. */
#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNETT_THREAD_SINGLE)
#        define gasnett_weak_wmb() ((void)0)
#        define gasnett_weak_rmb() ((void)0)
#        define gasnett_weak_mb()  ((void)0)
#    else
#        define gasnett_weak_wmb() gasnett_local_wmb()
#        define gasnett_weak_rmb() gasnett_local_rmb()
#        define gasnett_weak_mb()  gasnett_local_mb()
#    endif
#endif

#endif
