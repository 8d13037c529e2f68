/* SPDX-License-Identifier: BSD-3-Clause */
/* Installed as root's with the set-user-ID bit: a process that the user who started it cannot kill.
 * Usage: other_user FILE: says so and stays until the file is gone, or for a minute. */
#include <stdio.h>
#include <unistd.h>

enum { PACE_US = 50000, PACES_MAX = 1200 };

int main(int argc, char **argv)
{
    if (argc != 2 || setresuid(0, 0, 0) != 0)
        return 2;
    puts("another user's");
    fflush(stdout);
    for (int i = 0; i < PACES_MAX && access(argv[1], F_OK) == 0; i++)
        usleep(PACE_US);
    return 0;
}
