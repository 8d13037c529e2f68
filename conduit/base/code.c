/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The extents of the library's code, as code_extent.h recorded them. Constant data. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "base/code.h"
#include "base/first_use.h"

/* Two for each extent: its begin and its end, each relative to the address of the number itself.
 * Weak: a build without code_extent.h does not define them. */
extern const int32_t __start_trunkline_code[] __attribute__((weak, visibility("hidden")));
extern const int32_t __stop_trunkline_code[] __attribute__((weak, visibility("hidden")));

#if defined(__x86_64__)
static uintptr_t address_of_fault(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}
#elif defined(__aarch64__)
static uintptr_t address_of_fault(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.pc;
}
#else
static uintptr_t address_of_fault(const ucontext_t *context)
{
    return 0;
}
#endif

static uintptr_t target(const int32_t *offset)
{
    return (uintptr_t)offset + (uintptr_t)(intptr_t)*offset;
}

bool tk_code_faulted(const void *context)
{
    uintptr_t at = address_of_fault(context);
    for (const int32_t *extent = __start_trunkline_code; extent < __stop_trunkline_code;
         extent += 2)
        if (at >= target(extent) && at < target(extent + 1))
            return true;
    return &__start_trunkline_code[0] < &__stop_trunkline_code[0] && /* there is a twin */
           at >= (uintptr_t)__start_trunkline_first_use &&
           at < (uintptr_t)__stop_trunkline_first_use;
}
