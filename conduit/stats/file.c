/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See file.h. No state. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "stats/file.h"

/* False: the name is too long. */
static bool append(char *to, size_t size, const char *more)
{
    size_t length = strlen(to), added = strlen(more);
    if (length + added >= size)
        return false;
    memcpy(to + length, more, added + 1);
    return true;
}

static bool make_path(char *path, size_t size, const char *name, const char *rank)
{
    if (*name != '/' && (!getcwd(path, size) || !append(path, size, "/")))
        return false;
    for (const char *at = name; *at; at++) {
        const char one[] = {*at, '\0'};
        if (!append(path, size, *at == '%' ? rank : one))
            return false;
    }
    return true;
}

int tk_stats_file_name(struct tk_stats_file *file, const char *name, uint32_t rank)
{
    char number[16];
    size_t length = strlen(name);
    file->name = name;
    file->path[0] = '\0';
    file->is_json = length >= 5 && strcmp(name + length - 5, ".json") == 0;
    file->stream = strcmp(name, "stdout") == 0 ? STDOUT_FILENO : STDERR_FILENO;
    if (!strcmp(name, "-") || !strcmp(name, "stderr") || file->stream == STDOUT_FILENO)
        return 0;
    snprintf(number, sizeof(number), "%u", rank);
    return make_path(file->path, sizeof(file->path), name, number) ? 0 : ENAMETOOLONG;
}

void tk_stats_file_failed(const struct tk_stats_file *file, const char *what, int error)
{
    char line[500];
    size_t length = 0;
    const char *reason = strerrordesc_np(error);
    const char *const parts[] = {file->before, what,
                                 " ",          file->path[0] ? file->path : file->name,
                                 ": ",         reason ? reason : "unknown error",
                                 file->after};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        for (const char *at = parts[i]; *at && length + 1 < sizeof(line); at++)
            line[length++] = *at;
    line[length] = '\0';
    tk_log_error_signal_safe(line);
    tk_report_output_lost();
}
