/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of a host; see hello.h. */
#include "config.h"

#include "hello.h"
#include "pack.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* The compiler must not know the value, so that the executable contains the text unchanged:
 * strings(1) shows the build, and a test edits the text to make an executable of another build. */
static volatile const char own_build[] = "trunkline build: " TK_BUILD;

static void copy_build(char *text, size_t size)
{
    size_t from = strlen("trunkline build: "), n = 0;
    while (n < size - 1 && own_build[from + n]) {
        text[n] = own_build[from + n];
        n++;
    }
    text[n] = 0;
}

/* Softhca's members meet by names of the network namespace, and share memory through /dev/shm.
 * Containers on one machine share its boot id, but may differ in these two. */
static void name_kernel(char *text, size_t size)
{
    char boot[64] = "unknown";
    struct stat net = {0}, memory = {0};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (f) {
        if (fgets(boot, sizeof(boot), f))
            boot[strcspn(boot, "\n")] = 0;
        fclose(f);
    }
    stat("/proc/self/ns/net", &net);
    stat("/dev/shm", &memory);
    snprintf(text, size, "%s net %llu memory %llu", boot, (unsigned long long)net.st_ino,
             (unsigned long long)memory.st_dev);
}

void hello_here(struct hello *h, enum hello_ports ports)
{
    struct utsname u = {.machine = "unknown"};

    uname(&u);
    *h = (struct hello){.ports = ports};
    copy_build(h->build, sizeof(h->build));
    snprintf(h->machine, sizeof(h->machine), "%s", u.machine);
    snprintf(h->node, sizeof(h->node), "%s", u.nodename);
    name_kernel(h->kernel, sizeof(h->kernel));
}

void hello_pack(const struct hello *h, struct bytes *out)
{
    pack_number(out, h->ports);
    pack_string(out, h->build);
    pack_string(out, h->machine);
    pack_string(out, h->kernel);
    pack_string(out, h->node);
}

static void unpack_text(struct unpack *u, char *text, size_t size)
{
    u->bad |= (size_t)snprintf(text, size, "%s", unpack_string(u)) >= size;
    for (char *c = text; *c; c++) /* it may be printed */
        if ((unsigned char)*c < ' ')
            *c = '?';
}

bool hello_unpack(struct hello *h, const uint8_t *payload, size_t length)
{
    struct unpack u = {payload, payload + length, false};

    *h = (struct hello){.ports = (enum hello_ports)unpack_number(&u)};
    u.bad |= h->ports > HELLO_PORTS_NONE;
    unpack_text(&u, h->build, sizeof(h->build));
    unpack_text(&u, h->machine, sizeof(h->machine));
    unpack_text(&u, h->kernel, sizeof(h->kernel));
    unpack_text(&u, h->node, sizeof(h->node));
    return !u.bad && u.at == u.end;
}

bool hello_fits(const struct hello *here, const struct hello *there, char *why, size_t size)
{
    if (strcmp(here->machine, there->machine) != 0)
        snprintf(why, size,
                 "its processors are %s, those of the launcher's host %s; a job runs on one "
                 "architecture",
                 there->machine, here->machine);
    else if (strcmp(here->build, there->build) != 0)
        snprintf(why, size,
                 "its launcher is another build (%s; here: %s); install the same one on all hosts",
                 there->build, here->build);
    else
        return true;
    return false;
}

bool hello_same_machine(const struct hello *a, const struct hello *b)
{
    return strcmp(a->kernel, b->kernel) == 0;
}
