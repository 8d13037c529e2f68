/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Device files of accelerators, which the vendors' libraries open. No state. */
#include "config.h"

#include "contrib/info/accelerators.h"
#include "contrib/info/info.h"
#include "kind/kind_class.h"

#include <glob.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const *info_device_patterns(int gex_class)
{
    static const char *const cuda[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia[0-9]*",
                                       NULL};
    static const char *const hip[] = {"/dev/kfd", "/dev/dri/renderD*", NULL};
    static const char *const ze[] = {"/dev/dri/renderD*", NULL};
    return gex_class == TK_KIND_CUDA_UVA ? cuda : gex_class == TK_KIND_HIP ? hip : ze;
}

/* For the real user, as a job has it. */
static void take_file(const char *path, char *first, char *denied, size_t size)
{
    if (!*first)
        snprintf(first, size, "%s", path);
    if (!*denied && access(path, R_OK | W_OK) != 0)
        snprintf(denied, size, "%s", path);
}

void info_device_files(const char *const *patterns, char *first, char *denied, size_t size)
{
    *first = *denied = 0;
    for (; *patterns; patterns++) {
        glob_t found;
        if (glob(*patterns, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc; i++)
                take_file(found.gl_pathv[i], first, denied, size);
            globfree(&found);
        }
    }
}

void info_judge_files(int gex_class, const char *denied)
{
    struct stat is;
    const struct group *group = stat(denied, &is) == 0 ? getgrgid(is.st_gid) : NULL;
    info_finding(INFO_WRONG,
                 "this user can't read and write %s: gex_MK_Create() fails for class %s; add the "
                 "user to the file's group (%s), or let a rule of udev change its mode",
                 denied,
                 gex_class == TK_KIND_CUDA_UVA ? "CUDA_UVA"
                 : gex_class == TK_KIND_HIP    ? "HIP"
                                               : "ZE",
                 group ? group->gr_name : "unknown");
}
