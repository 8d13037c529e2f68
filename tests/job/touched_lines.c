/* SPDX-License-Identifier: BSD-3-Clause */
/* See touched_lines.h. The data of the handlers is at a fixed address: they can't access a
 * variable, a table of the linker or a function of the C library, whose pages are protected. */
#include "config.h"

#include "touched_lines.h"

#include "job.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#    include <dirent.h>
#    include <pthread.h>
#    include <signal.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>
#    include <sys/mman.h>
#    include <sys/syscall.h>
#    include <ucontext.h>
#    include <unistd.h>

enum {
    line_bytes = 64,
    page_bytes = 4096,
    ranges_max = 1024,
    spared_max = 128,
    stack_bytes = 65536, /* of a sleeping thread: the part that it may use when it wakes up */
    open_max = 8,        /* pages of one instruction */
    fault_writes = 2,    /* of the error code of a page fault */
    single_step = 0x100, /* of the flags */
    handler_stack_bytes = 65536 /* the kernel saves wide registers there */
};

struct range {
    uintptr_t begin, end;
};

struct watch {
    struct touched_lines *lines;
    long thread; /* whose accesses are noted */
    unsigned run;
    struct range ranges[ranges_max];
    size_t range_count;
    uintptr_t open[open_max];
    size_t open_count;
    char handler_stack[handler_stack_bytes];
};
#    define watch ((struct watch *)0x100000000000)

static void *own_pages(void *at, size_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0);
    void *memory = mmap(at, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

bool touched_lines_can_watch(void)
{
    return true;
}

struct touched_lines *touched_lines_new(void)
{
    return own_pages(NULL, sizeof(struct touched_lines));
}

/* ---- in the handlers ---- */

static inline long kernel(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static inline void protect(uintptr_t at, size_t size, int rights)
{
    if (kernel(SYS_mprotect, (long)at, (long)size, rights) != 0)
        kernel(SYS_exit_group, 99, 0, 0);
}

static bool is_out_of_reach(uintptr_t at)
{
    for (size_t i = 0; i < watch->range_count; i++)
        if (at >= watch->ranges[i].begin && at < watch->ranges[i].end)
            return true;
    return false;
}

static struct touched_line *line_of(struct touched_lines *lines, uintptr_t line)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->lines[i].line == line)
            return &lines->lines[i];
    if (lines->count == touched_lines_max)
        kernel(SYS_exit_group, 98, 0, 0);
    lines->lines[lines->count] = (struct touched_line){.line = line};
    return &lines->lines[lines->count++];
}

static void note(uintptr_t at, bool writes, uintptr_t by)
{
    struct touched_line *line = line_of(watch->lines, at & ~(uintptr_t)(line_bytes - 1));
    line->runs += line->last != watch->run;
    line->last = watch->run;
    line->writing_runs += writes && line->last_writing != watch->run;
    line->last_writing = writes ? watch->run : line->last_writing;
    if (!writes && !line->read_by)
        line->read_by = by;
    if (writes && !line->written_by) {
        line->written_by = by;
        line->written_at = at;
    }
}

/* An instruction that reads and writes faults twice. */
static void faulted(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)info->si_addr, page = at & ~(uintptr_t)(page_bytes - 1);
    bool writes = registers[REG_ERR] & fault_writes;
    (void)number;
    if (!is_out_of_reach(at) || watch->open_count == open_max)
        kernel(SYS_exit_group, 97, 0, 0);
    if (kernel(SYS_gettid, 0, 0, 0) == watch->thread)
        note(at, writes, (uintptr_t)registers[REG_RIP]);
    watch->open[watch->open_count++] = page;
    protect(page, page_bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ);
    registers[REG_EFL] |= single_step;
}

static void stepped(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    while (watch->open_count)
        protect(watch->open[--watch->open_count], page_bytes, PROT_NONE);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)single_step;
}

/* ---- before and after ---- */

static void handle(int number, void (*handler)(int, siginfo_t *, void *), struct sigaction *before)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    CHECK(sigaction(number, &action, before) == 0);
}

/* The stack pointer of a thread that sleeps in the kernel; 0: it runs, or there is none. */
static uintptr_t stack_of(const char *thread)
{
    char path[300];
    unsigned long long stack = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/syscall", thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*s %*s %*s %*s %*s %*s %*s %llx", &stack) != 1)
        stack = 0;
    fclose(file);
    return (uintptr_t)stack & ~(uintptr_t)(page_bytes - 1);
}

/* Finds the stacks of all other threads, when they sleep; false: one runs. The kernel may write to
 * a stack when the thread wakes up. Stacks contain thread-local words, too. */
static bool find_other_stacks(struct range *stacks, size_t *count)
{
    DIR *tasks = opendir("/proc/self/task");
    bool all_sleep = true;
    CHECK(tasks != NULL);
    *count = 0;
    for (struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.' || strtol(task->d_name, NULL, 10) == syscall(SYS_gettid))
            continue;
        uintptr_t stack = stack_of(task->d_name);
        CHECK(*count < spared_max);
        stacks[(*count)++] = (struct range){stack, stack + stack_bytes};
        all_sleep = all_sleep && stack != 0;
    }
    closedir(tasks);
    return all_sleep;
}

static struct range own_stack(void)
{
    pthread_attr_t mine;
    void *from;
    size_t size;
    CHECK(pthread_getattr_np(pthread_self(), &mine) == 0);
    CHECK(pthread_attr_getstack(&mine, &from, &size) == 0);
    pthread_attr_destroy(&mine);
    return (struct range){(uintptr_t)from, (uintptr_t)from + size};
}

/* The kernel may join a stack with other memory next to it: only the stack is left out. */
static void add_range(uintptr_t begin, uintptr_t end, const struct range *spared, size_t count)
{
    for (size_t i = 0; i < count && begin < end; i++) {
        if (spared[i].begin >= end || spared[i].end <= begin)
            continue;
        if (spared[i].begin > begin)
            add_range(begin, spared[i].begin, spared, count);
        begin = spared[i].end;
    }
    if (begin >= end)
        return;
    CHECK(watch->range_count < ranges_max);
    watch->ranges[watch->range_count++] = (struct range){begin, end};
}

static struct range range_of(const void *memory, size_t size)
{
    uintptr_t begin = (uintptr_t)memory;
    return (struct range){begin, (begin + size + page_bytes - 1) & ~(uintptr_t)(page_bytes - 1)};
}

static void find_ranges(const struct touched_lines *lines)
{
    struct range spared[spared_max + 3];
    size_t count;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    /* Looks twice: the last thread that went to sleep may have woken another one before. */
    for (int looks = 0; looks < 2; looks = find_other_stacks(spared, &count) ? looks + 1 : 0)
        usleep(1000);
    spared[count++] = own_stack();
    spared[count++] = range_of(watch, sizeof *watch);
    spared[count++] = range_of(lines, sizeof *lines);
    watch->range_count = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        CHECK(sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3);
        if (rights[1] == 'w' && !strstr(line, "[stack]"))
            add_range(from, to, spared, count);
    }
    fclose(maps);
}

static void reach_all(int rights)
{
    for (size_t i = 0; i < watch->range_count; i++)
        protect(watch->ranges[i].begin, watch->ranges[i].end - watch->ranges[i].begin, rights);
}

void touched_lines_watch(struct touched_lines *lines, unsigned times, void (*run)(const void *),
                         const void *argument)
{
    static bool is_mapped;
    struct sigaction on_fault, on_step;
    stack_t stack, stack_before;
    if (!is_mapped)
        own_pages(watch, sizeof(*watch));
    is_mapped = true;
    stack = (stack_t){.ss_sp = watch->handler_stack, .ss_size = handler_stack_bytes};
    CHECK(sigaltstack(&stack, &stack_before) == 0);
    handle(SIGSEGV, faulted, &on_fault);
    handle(SIGTRAP, stepped, &on_step);
    find_ranges(lines);
    watch->thread = syscall(SYS_gettid);
    watch->lines = lines;
    lines->count = 0;
    reach_all(PROT_NONE);
    for (watch->run = 1; watch->run <= times; watch->run++)
        run(argument);
    reach_all(PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &on_fault, NULL);
    sigaction(SIGTRAP, &on_step, NULL);
    sigaltstack(&stack_before, NULL);
}

#else

bool touched_lines_can_watch(void)
{
    return false;
}

struct touched_lines *touched_lines_new(void)
{
    return NULL;
}

void touched_lines_watch(struct touched_lines *lines, unsigned times, void (*run)(const void *),
                         const void *argument)
{
    (void)lines, (void)times, (void)run, (void)argument;
}

#endif

const struct touched_line *touched_lines_find(const struct touched_lines *lines, uintptr_t line)
{
    for (size_t i = 0; i < lines->count; i++)
        if (lines->lines[i].line == line)
            return &lines->lines[i];
    return NULL;
}
