/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See thread_own.h. One mapping for each thread, divided on request: nothing here takes the heap's
 * lock, because a thread may leave the job, and wait for that, in a signal handler. With one client
 * thread the memory is never released: another thread may continue in its place. */
#include "config.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/client_mode.h"
#include "base/report.h"
#include "base/thread_own.h"

/* Pages that are not touched take no memory; some objects are aligned to cache lines. */
enum { own_bytes = 8192, own_alignment = 64 };

struct own {
    void *at[tk_owns]; /* NULL: not requested yet */
    size_t used;
    _Alignas(own_alignment) char memory[];
};

static TK_PER_CLIENT_THREAD struct own *own; /* NULL: nothing yet */
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void give_back(void *mapping)
{
    own = NULL; /* later destructors of this thread may still call the library */
    munmap(mapping, own_bytes);
}

static void make_key(void)
{
    pthread_key_create(&thread_end, give_back);
}

static struct own *begin_thread(void)
{
    struct own *mapping =
        mmap(NULL, own_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        tk_panic("out of memory for %d bytes of a thread", own_bytes);
    if (TK_SEVERAL_CLIENT_THREADS) {
        pthread_once(&once, make_key);
        pthread_setspecific(thread_end, mapping);
    }
    return mapping;
}

static void *cut(struct own *from, size_t size)
{
    if (size > own_bytes - offsetof(struct own, memory) - from->used)
        tk_panic("a thread keeps more than %d bytes beside its hot words", own_bytes);
    void *memory = from->memory + from->used;
    from->used += tk_align_up(size, own_alignment);
    return memory;
}

void *tk_thread_owned(enum tk_own what)
{
    return own ? own->at[what] : NULL;
}

static void *__attribute__((noinline)) first_use(enum tk_own what, size_t size)
{
    if (!own)
        own = begin_thread();
    return own->at[what] = cut(own, size);
}

/* Every Prepare calls this: existing memory is found without saving a register. */
void *tk_thread_own(enum tk_own what, size_t size)
{
    const struct own *mine = own;
    tk_if_likely(mine && mine->at[what]) return mine->at[what];
    return first_use(what, size);
}
