/* SPDX-License-Identifier: BSD-3-Clause */
/* A put between processes that share memory stores an aligned word once. A second store, as memcpy
 * may do, would replace what a reader of the first one has stored there since. Stores are counted:
 * the page is read-only, and a fault lets one instruction write to it. x86-64 only; one rank, which
 * puts to itself by the code that serves neighbours. */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "job.h"

#if defined(__x86_64__)

enum { PAGE = 4096, TRAP_FLAG = 0x100 };

static volatile int stores;

/* What cannot be known to be constant. */
static volatile size_t opaque;
static size_t changing(size_t value)
{
    opaque = value;
    return opaque;
}

static void lock(int protection)
{
    if (mprotect(job.base, PAGE, protection))
        _Exit(1);
}

static void on_store(int signal, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    (void)signal;
    if ((char *)info->si_addr < job.base || (char *)info->si_addr >= job.base + PAGE)
        _Exit(1);
    stores++;
    lock(PROT_READ | PROT_WRITE);
    at->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int signal, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    (void)signal, (void)info;
    at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    lock(PROT_READ);
}

static void catch (int signal, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static uint64_t value;

/* What was stored, and in how many stores. */
#    define ONE_STORE(size, put)                                                                   \
        do {                                                                                       \
            uint64_t is = 0;                                                                       \
            memset(job.base, 0, PAGE);                                                             \
            value += UINT64_C(0x0102030405060708);                                                 \
            stores = 0;                                                                            \
            lock(PROT_READ);                                                                       \
            put;                                                                                   \
            lock(PROT_READ | PROT_WRITE);                                                          \
            CHECK(stores == 1, "%d stores of %d bytes: " #put, stores, (int)(size));               \
            memcpy(&is, job.base + 8, sizeof(is));                                                 \
            CHECK(is == (value & ~UINT64_C(0) >> (64 - 8 * (size))));                              \
        } while (0)

#    define SIZE(size)                                                                             \
        do {                                                                                       \
            void *to = job.base + 8;                                                               \
            const gex_TM_t tm = job.tm;                                                            \
            ONE_STORE(size, gex_RMA_PutBlocking(tm, 0, to, &value, size, 0));                      \
            ONE_STORE(size, gex_RMA_PutBlocking(tm, 0, to, &value, changing(size), 0));            \
            ONE_STORE(size, gex_RMA_PutNB(tm, 0, to, &value, changing(size), GEX_EVENT_NOW, 0));   \
            ONE_STORE(size, gex_RMA_PutNBI(tm, 0, to, &value, changing(size), GEX_EVENT_NOW, 0));  \
            ONE_STORE(size, gex_RMA_PutBlockingVal(tm, 0, to, value, size, 0));                    \
            ONE_STORE(size, gex_RMA_PutNBVal(tm, 0, to, value, changing(size), 0));                \
            ONE_STORE(size, by_address(tm, 0, to, &value, size, 0));                               \
        } while (0)

static int (*volatile by_address)(gex_TM_t, gex_Rank_t, void *, const void *, size_t,
                                  gex_Flags_t) = gex_RMA_PutBlocking;

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 16 * PAGE);
    job_phase("stores");
    CHECK(job.size == 1);
    catch (SIGSEGV, on_store);
    catch (SIGTRAP, on_step);
    SIZE(1);
    SIZE(2);
    SIZE(4);
    SIZE(8);
    job_end();
}

#else
int main(void)
{
    return 77;
}
#endif
