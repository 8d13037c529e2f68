/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Backtraces: the methods, the choice among them, and the output. Each method writes to a file in
 * memory, from where the lines are copied with the rank in front; a method that fails leaves no
 * output. As usable in handlers of fatal signals as backtraces can be. Owns the flag that allows
 * one backtrace at a time; no lock. */
#include "config.h"

#include <errno.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/number.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

enum {
    frames_max = 128,
    line_max = 1024,
    own_frames = 4 /* from the method up to gasnett_print_backtrace() */
};

/* A client may define it; the library's is weak. */
__attribute__((weak)) gasnett_backtrace_type_t gasnett_backtrace_user;

static int by_execinfo(int fd)
{
    void *frames[frames_max];
    int count = backtrace(frames, frames_max);
    int skip = count > own_frames ? own_frames : 0;
    backtrace_symbols_fd(frames + skip, count - skip, fd);
    return count <= 0;
}

static int by_client(int fd)
{
    return gasnett_backtrace_user.fnp ? gasnett_backtrace_user.fnp(fd) : 1;
}

static const struct method {
    const char *name;
    int (*print)(int fd);
    bool shows_threads;
} methods[] = {
    {"USER", by_client, false}, /* the client's record says whether it shows all threads */
    {"GDB", tk_tools_backtrace_gdb, true},
    {"EXECINFO", by_execinfo, false},
};
enum { method_count = sizeof(methods) / sizeof(methods[0]) };

static bool shows_threads(const struct method *method)
{
    return method->print == by_client ? gasnett_backtrace_user.threadsupport != 0
                                      : method->shows_threads;
}

static bool is_named(const struct method *method, const char *name, size_t length)
{
    const char *alias = method->print == by_client ? gasnett_backtrace_user.name : NULL;
    return (length == strlen(method->name) && !strncasecmp(method->name, name, length)) ||
           (alias && length == strlen(alias) && !strncasecmp(alias, name, length));
}

static const struct method *backtrace_find(const char *name, size_t length)
{
    for (int i = 0; i < method_count; i++)
        if (is_named(&methods[i], name, length))
            return &methods[i];
    return NULL;
}

bool tk_tools_backtrace_has_type(const char *name, size_t length)
{
    return backtrace_find(name, length) != NULL;
}

const char *tk_tools_backtrace_types(void)
{
    const char *list = tk_tools_lookup("GASNET_BACKTRACE_TYPE");
    return list && *list ? list : "USER,GDB,EXECINFO";
}

bool tk_tools_backtrace_is_wrong(char *why, size_t size)
{
    for (const char *at = tk_tools_backtrace_types(); *at;) {
        size_t length = strcspn(at, ", ");
        if (length && !tk_tools_backtrace_has_type(at, length)) {
            snprintf(why, size,
                     "GASNET_BACKTRACE_TYPE='%s' names '%.*s', which is not one of USER, GDB, "
                     "EXECINFO",
                     tk_tools_backtrace_types(), (int)length, at);
            return true;
        }
        at += length + (at[length] != 0);
    }
    return false;
}

static void copy(int from, int to)
{
    char text[line_max];
    off_t at = 0;
    ssize_t n;
    size_t start = 0;
    if (tk_tools_in_job() && tk_tools_rank() >= 0)
        start = (size_t)snprintf(text, sizeof(text), "[%lld] ", (long long)tk_tools_rank());
    while ((n = pread(from, text + start, sizeof(text) - start - 1, at)) > 0) {
        char *end = memchr(text + start, '\n', (size_t)n);
        size_t length = end ? (size_t)(end - text) : start + (size_t)n;
        at += (off_t)(length - start) + (end != NULL);
        text[length++] = '\n';
        if (write(to, text, length) < 0)
            return;
    }
}

static int try_method(const struct method *method, int fd)
{
    int memory = (int)syscall(SYS_memfd_create, "backtrace", 1 /* close on exec */);
    if (memory < 0)
        return method->print(fd);
    int failed = method->print(memory);
    if (!failed)
        copy(memory, fd);
    close(memory);
    return failed;
}

/* In the order of the list; if wanted, methods that show all threads come first. */
static int print_backtrace(int fd)
{
    bool by_threads = tk_tools_is_on("GASNET_BACKTRACE_MT", tk_tools_has_threads);
    for (int round = by_threads ? 0 : 1; round < 2; round++)
        for (const char *at = tk_tools_backtrace_types(); *at;) {
            size_t length = strcspn(at, ", ");
            const struct method *method = backtrace_find(at, length);
            bool is_turn = method && (!by_threads || shows_threads(method) == (round == 0));
            if (is_turn && try_method(method, fd) == 0)
                return 0;
            at += length + (at[length] != 0);
        }
    return 1;
}

int gasnett_print_backtrace(int fd)
{
    static atomic_flag is_busy = ATOMIC_FLAG_INIT;
    int error = errno;
    if (atomic_flag_test_and_set(&is_busy))
        return 1; /* a method has crashed, or another thread is in here */
    int failed = print_backtrace(fd);
    atomic_flag_clear(&is_busy);
    errno = error;
    return failed;
}

bool tk_tools_backtrace_is_wanted(void)
{
    const char *nodes = tk_tools_lookup("GASNET_BACKTRACE_NODES");
    if (!tk_tools_is_on("GASNET_BACKTRACE", false))
        return false;
    return !nodes || tk_tools_rank() < 0 || tk_number_in_ranges(nodes, tk_tools_rank());
}

static int print_if_enabled(int fd)
{
    return tk_tools_backtrace_is_wanted() ? gasnett_print_backtrace(fd) : 1;
}

int (*gasnett_print_backtrace_ifenabled)(int fd) = print_if_enabled;
