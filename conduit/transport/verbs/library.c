/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See library.h. Owns the pointers to the functions. They are atomic because any thread may call
 * the first function that softhca leaves out; a pointer never changes once it is set. */
#include "config.h"

#include "transport/verbs/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/report.h"

#define NUMBER(type, name, parameters, arguments) number_of_##name,
#define NAME(type, name, parameters, arguments)   #name,

enum { TK_FUNCTIONS_OF_VERBS(NUMBER) verbs_end };
enum { TK_FUNCTIONS_OF_CM(NUMBER) cm_end };

static const char *const names_of_verbs[] = {TK_FUNCTIONS_OF_VERBS(NAME)};
static const char *const names_of_cm[] = {TK_FUNCTIONS_OF_CM(NAME)};
static _Atomic(void *) functions_of_verbs[verbs_end], functions_of_cm[cm_end];

static const struct library {
    const char *file, *package;
    const char *const *names;
    _Atomic(void *) *functions;
    int count;
} verbs = {"libibverbs.so.1", "libibverbs1", names_of_verbs, functions_of_verbs, verbs_end},
  cm = {"librdmacm.so.1", "librdmacm1", names_of_cm, functions_of_cm, cm_end};

/* Searches in the order of the dynamic linker, as if we were linked with the library: the program,
 * preloaded objects (softhca), then the library that was loaded last. */
static enum tk_status look_up(const struct library *library, int number)
{
    void *function = library->functions[number];
    if (!function)
        library->functions[number] = function = dlsym(RTLD_DEFAULT, library->names[number]);
    if (function)
        return TK_OK;
    tk_log_error("%s has no function %s(): it is older than the one that this library was built "
                 "with; install a newer rdma-core",
                 library->file, library->names[number]);
    return TK_FAIL;
}

static bool is_whole(const struct library *library)
{
    for (int i = 0; i < library->count; i++)
        if (!library->functions[i])
            return false;
    return true;
}

/* RTLD_GLOBAL, so that the search above finds its functions, and softhca's dlsym(RTLD_NEXT) finds
 * the library behind itself. Never unloaded: devices have threads and drivers in it. */
static enum tk_status load(const struct library *library)
{
    if (is_whole(library))
        return TK_OK;
    if (!dlopen(library->file, RTLD_LAZY | RTLD_GLOBAL)) {
        tk_log_error("%s can't be loaded: %s; install rdma-core's libraries (Debian: %s)",
                     library->file, dlerror(), library->package);
        return TK_FAIL;
    }
    for (int i = 0; i < library->count; i++)
        if (look_up(library, i) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

enum tk_status tk_verbs_library_open(void)
{
    return load(&verbs);
}

/* The class of devices that programs can use, or that of all: libibverbs may have the kernel load
 * the module that makes the first. Without both it lists no device. */
static bool kernel_has_devices(void)
{
    return access("/sys/class/infiniband_verbs", F_OK) == 0 ||
           access("/sys/class/infiniband", F_OK) == 0;
}

/* What softhca leaves out is loaded when it is called: see loaded(). */
static bool is_preloaded(void)
{
    bool is_there = dlsym(RTLD_DEFAULT, verbs.names[0]) != NULL;
    for (int i = 0; is_there && i < verbs.count; i++)
        verbs.functions[i] = dlsym(RTLD_DEFAULT, verbs.names[i]);
    return is_there;
}

enum tk_status tk_verbs_library_need(void)
{
    return !kernel_has_devices() && is_preloaded() ? TK_OK : load(&verbs);
}

enum tk_status tk_cm_library_open(void)
{
    return load(&cm);
}

static void *loaded(const struct library *library, int number)
{
    if (!library->functions[number] && load(library) != TK_OK)
        tk_panic("%s() can't be called without %s", library->names[number], library->file);
    return library->functions[number];
}

/* Weak, so that tests can replace some of them. In parentheses, because some are also macros. */
#define CALL(library, type, name, parameters, arguments)                                           \
    __attribute__((weak)) type(name) parameters                                                    \
    {                                                                                              \
        return ((type(*) parameters)loaded(&(library), number_of_##name))arguments;                \
    }
#define CALL_VERBS(...) CALL(verbs, __VA_ARGS__)
#define CALL_CM(...)    CALL(cm, __VA_ARGS__)

TK_FUNCTIONS_OF_VERBS(CALL_VERBS)
TK_FUNCTIONS_OF_CM(CALL_CM)

/* Looked up at each call, of which there is one for each segment. Weak as those above. */
__attribute__((weak)) struct ibv_mr *tk_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
                                                      size_t length, uint64_t iova, int fd,
                                                      int access)
{
    typedef struct ibv_mr *function(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);
    function *reg = (function *)dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr");
    if (reg)
        return reg(pd, offset, length, iova, fd, access);
    errno = ENOSYS;
    return NULL;
}
