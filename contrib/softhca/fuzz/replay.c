/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs the targets of the fuzzers over the committed corpus without any fuzzer: each file
 * unchanged, each of its prefixes, and each with one byte replaced. A crash names the file, because
 * its name
 * was printed before. usage: replay DIRECTORY    (with a directory for each target) */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/targets.h"

enum { longest = 8192 };

/* Each in memory of exactly its size, so that a sanitizer detects an access to one byte too
 * many. */
static void run_copy(const struct fuzz_target *t, const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    if (!copy)
        exit(1);
    memcpy(copy, data, n);
    t->run(copy, n);
    free(copy);
}

static void run_variants(const struct fuzz_target *t, uint8_t *data, size_t n)
{
    static const uint8_t others[] = {0, '\n', ' ', '0', '9', ';', '=', '.', '~', '-', 0xff};

    for (size_t i = 0; i <= n; i++)
        run_copy(t, data, i);
    for (size_t i = 0; i < n; i++) {
        uint8_t kept = data[i];

        for (size_t j = 0; j < sizeof others; j++) {
            data[i] = others[j];
            run_copy(t, data, n);
        }
        data[i] = kept;
    }
}

static bool replay_file(const struct fuzz_target *t, const char *path)
{
    static uint8_t data[longest];
    FILE *f = fopen(path, "r");
    size_t n;

    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    n = fread(data, 1, sizeof data, f);
    fclose(f);
    printf("%s\n", path);
    run_variants(t, data, n);
    return true;
}

static bool replay_target(const struct fuzz_target *t, const char *top)
{
    char path[4096];
    struct dirent *e;
    unsigned files = 0;
    DIR *d;

    snprintf(path, sizeof path, "%s/%s", top, t->name);
    d = opendir(path);
    if (t->prepare)
        t->prepare();
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s/%s", top, t->name, e->d_name);
            files += replay_file(t, path);
        }
    if (d)
        closedir(d);
    if (files == 0)
        fprintf(stderr, "%s/%s: no corpus\n", top, t->name);
    return files > 0;
}

int main(int argc, char **argv)
{
    bool good = true;

    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct fuzz_target *t = fuzz_targets; t->name; t++)
        good = replay_target(t, argv[1]) && good;
    return good ? 0 : 1;
}
