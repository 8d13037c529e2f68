/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Thread-specific pointers, initially NULL: variables with thread storage, so there is nothing to
 * initialise. Owns nothing. */
#ifndef GASNET_TOOLS_KEY_H
#define GASNET_TOOLS_KEY_H

/* Per thread in the single-threaded mode too: a client may have threads that do not call the
 * tools. */
#define GASNETT_THREADKEY_DECLARE(key) GASNETT_EXTERNC __thread void *trunkline_threadkey_##key

/* Once at file scope. The declaration in front gives the name its linkage in C++. */
#define GASNETT_THREADKEY_DEFINE(key)                                                              \
    GASNETT_THREADKEY_DECLARE(key);                                                                \
    __thread void *trunkline_threadkey_##key

#define gasnett_threadkey_init(key)                 ((void)&trunkline_threadkey_##key)
#define gasnett_threadkey_get(key)                  (trunkline_threadkey_##key)
#define gasnett_threadkey_set(key, newvalue)        ((void)(trunkline_threadkey_##key = (newvalue)))
#define gasnett_threadkey_get_noinit(key)           gasnett_threadkey_get(key)
#define gasnett_threadkey_set_noinit(key, newvalue) gasnett_threadkey_set(key, newvalue)

GASNETT_BEGIN_EXTERNC

/* Does nothing. Statically linked clients refer to it to pull in the tools. */
void _gasneti_threadkey_init(void *key);

GASNETT_END_EXTERNC

#endif
