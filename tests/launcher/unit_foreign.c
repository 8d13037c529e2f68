/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the commands by which mpirun and srun start a job. */
#include "config.h"

#include "spawner/run/foreign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char why[5000], shown[4096];
static struct foreign_job job;
static struct host_list list;
static uint32_t counts[4];
static char *argv[] = {"prog", "a b", "$x;'y'", NULL};
static char *env[] = {"HOME=/root",
                      "GASNET_A=1 2",
                      "SOFTHCA_FABRIC=f;g",
                      "LD_PRELOAD=/libsofthca.so",
                      "MINE=has 'q'",
                      "MINER=no",
                      NULL};

static int set_up(void **state)
{
    host_list_free(&list);
    job = (struct foreign_job){.kind = FOREIGN_MPI,
                               .pattern = "",
                               .runner = "/bin/run",
                               .ranks = 5,
                               .program = "/bin/prog",
                               .argv = argv,
                               .env = env,
                               .exported = "NONE,MINE"};
    return 0;
}

static void use_hosts(const char *text, uint32_t first, uint32_t second, uint32_t third)
{
    assert_true(host_list_read_text(&list, text, "-H", why, sizeof(why)));
    memcpy(counts, (uint32_t[]){first, second, third, 0}, sizeof(counts));
    job.list = &list;
    job.counts = counts;
}

static void gives(const char *wanted)
{
    char **command = foreign_command(&job, why, sizeof(why));
    if (!command)
        fail_msg("%s", why);
    foreign_show(command, shown, sizeof(shown));
    assert_string_equal(shown, wanted);
    foreign_free(command);
}

#define PROGRAM   " /bin/prog 'a b' '$x;'\\''y'\\'''"
#define VARIABLES " -x GASNET_A -x SOFTHCA_FABRIC -x LD_PRELOAD -x MINE"

static void mpirun_gets_hosts_binding_and_names_of_variables(void **state)
{
    gives("/bin/run -n 5 --oversubscribe --bind-to none" VARIABLES PROGRAM);
    job.hosts = 2;
    gives("/bin/run -n 5 --oversubscribe --map-by ppr:3:node --bind-to none" VARIABLES PROGRAM);
    job.bind = JOB_BIND_CORE;
    job.cpus = 2;
    gives(
        "/bin/run -n 5 --oversubscribe --map-by ppr:3:node:PE=2 --bind-to core" VARIABLES PROGRAM);
    use_hosts("a,b,c", 3, 0, 2);
    job.is_allocated = job.label = true;
    gives("/bin/run -n 5 --host a:3,c:2 --map-by slot:PE=2 --bind-to core --tag-output" VARIABLES
              PROGRAM);
}

static void srun_gets_hosts_and_binding(void **state)
{
    job.kind = FOREIGN_PMI;
#define SRUN "/bin/run -K --mpi=pmix --input=0 --export=ALL -n 5"
    gives(SRUN PROGRAM);
    job.bind_given = true;
    gives(SRUN " --cpu-bind=none" PROGRAM);
    job.hosts = 2;
    job.cpus = 3;
    job.bind = JOB_BIND_SOCKET;
    job.label = true;
    gives(SRUN " -N 2 -c 3 --cpu-bind=sockets --label" PROGRAM);
    use_hosts("a,b,c", 3, 0, 2);
    gives(SRUN
          " -N 2 --distribution=arbitrary -w a,a,a,c,c -c 3 --cpu-bind=sockets --label" PROGRAM);
}

#define WITH_ENV                                                                                   \
    "env 'GASNET_A=1 2' 'SOFTHCA_FABRIC=f;g' LD_PRELOAD=/libsofthca.so 'MINE=has "                 \
    "'\\''q'\\'''" PROGRAM

static void a_pattern_is_filled_in(void **state)
{
    job.nodes = 2;
    job.pattern = "my run -np %N --nodes=%M '100%%' %C";
    gives("my run -np 5 --nodes=2 100% " WITH_ENV);
    job.kind = FOREIGN_PMI;
    job.pattern = "launch %N%N %P \"x y\"";
    gives("launch 55 /bin/prog 'x y'");
    use_hosts("a,b,c", 3, 0, 2);
    job.pattern = "run %N@%H/%M %P";
    gives("run 5@a,c/2 /bin/prog");
}

/* In a longer word the program is text for a shell, which must not change it. */
static void a_program_inside_of_a_word_is_quoted(void **state)
{
    char line[1024];
    job.argv = (char *[]){"prog", "a b", "$x;'y'", "", NULL};
    job.program = "printf";
    job.pattern = "/bin/sh -c 'exit 7; %N' %P";
    job.pattern = "sh -c \"%C; echo %N\"";
    char **command = foreign_command(&job, why, sizeof(why));
    assert_non_null(command);
    assert_string_equal(command[1], "-c");
    assert_null(command[3]);
    foreign_free(command);
    job.argv = (char *[]){"printf", "<%s>", "a b", "$x;'y'", "", NULL};
    command = foreign_command(&job, why, sizeof(why));
    FILE *f = popen(command[2], "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_string_equal(line, "<a b><$x;'y'><>5\n");
    pclose(f);
    foreign_free(command);
}

static void fails(const char *pattern, const char *sentence)
{
    job.pattern = pattern;
    assert_null(foreign_command(&job, why, sizeof(why)));
    if (!strstr(why, sentence))
        fail_msg("'%s' for '%s'", why, pattern);
}

static void a_wrong_pattern_is_one_sentence(void **state)
{
    fails("mpirun -np %N", "GASNET_MPIRUN_CMD='mpirun -np %N' lacks %C");
    fails("mpirun %C", "lacks %N");
    fails("mpirun -np %N %C %Q", "after % comes one of N, M, H, C, P and %");
    fails("mpirun -np %N %C %", "after % comes");
    fails("mpirun -np %N '%C", "has a quote that is not closed");
    fails("mpirun %%N %C", "lacks %N");
    use_hosts("a,b,c", 3, 0, 2);
    job.kind = FOREIGN_PMI;
    fails("srun -n %N %C", "GASNET_PMIRUN_CMD='srun -n %N %C' lacks %H");
}

static void executable(const char *dir, const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    chmod(path, 0755);
}

static void the_runner_is_found_in_path(void **state)
{
    char dir[] = "/tmp/trunkline-foreign-XXXXXX", path[4096], link[100], remove[100];
    assert_non_null(mkdtemp(dir));
    setenv("PATH", dir, 1);
    assert_false(foreign_find(FOREIGN_MPI, path, sizeof(path), why, sizeof(why)));
    assert_string_equal(why, "-spawner=mpi: mpirun was not found in PATH; GASNET_MPIRUN_CMD names "
                             "another command");
    assert_false(foreign_find(FOREIGN_PMI, path, sizeof(path), why, sizeof(why)));
    assert_non_null(strstr(why, "-spawner=pmi: srun was not found in PATH; GASNET_PMIRUN_CMD"));
    executable(dir, "srun");
    assert_true(foreign_find(FOREIGN_PMI, path, sizeof(path), why, sizeof(why)));
    executable(dir, "mpiexec.hydra");
    snprintf(link, sizeof(link), "%s/mpirun", dir);
    assert_int_equal(symlink("mpiexec.hydra", link), 0);
    assert_false(foreign_find(FOREIGN_MPI, path, sizeof(path), why, sizeof(why)));
    assert_non_null(strstr(why, "is that of MPICH"));
    unlink(link);
    executable(dir, "mpirun");
    assert_true(foreign_find(FOREIGN_MPI, path, sizeof(path), why, sizeof(why)));
    setenv("PATH", "/usr/bin:/bin", 1);
    snprintf(remove, sizeof(remove), "rm -r %s", dir);
    assert_int_equal(system(remove), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup(f, set_up)
    const struct CMUnitTest tests[] = {
        CASE(mpirun_gets_hosts_binding_and_names_of_variables),
        CASE(srun_gets_hosts_and_binding),
        CASE(a_pattern_is_filled_in),
        CASE(a_program_inside_of_a_word_is_quoted),
        CASE(a_wrong_pattern_is_one_sentence),
        CASE(the_runner_is_found_in_path),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    host_list_free(&list);
    return failures;
}
