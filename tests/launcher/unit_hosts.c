/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the launcher's hosts: every form of a list, every batch system, which source takes
 * precedence, and how the ranks are laid out. */
#include "config.h"

#include "spawner/run/batch.h"
#include "spawner/run/hosts.h"
#include "spawner/run/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char why[5000], shown[4096], path[64];
static struct host_list list;
static struct tk_settings settings;

static const char *const batch_names[] = {
    "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "PBS_NODEFILE",   "LSB_MCPU_HOSTS",
    "LSB_HOSTS",          "PE_HOSTFILE",          "COBALT_NODEFILE"};

static int set_up(void **state)
{
    host_list_free(&list);
    for (size_t i = 0; i < sizeof(batch_names) / sizeof(*batch_names); i++)
        unsetenv(batch_names[i]);
    memset(&settings, 0, sizeof(settings));
    settings.ssh_servers = settings.ssh_nodefile = settings.nodefile = "";
    strcpy(path, "/tmp/trunkline-hosts-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int tear_down(void **state)
{
    host_list_free(&list);
    return unlink(path);
}

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* "name/slots/mentions" of each host, virtual ones with "=". */
static const char *show(void)
{
    size_t used = 0;
    shown[0] = 0;
    for (uint32_t i = 0; i < list.count; i++)
        used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%s%s%s/%u/%u", i ? " " : "",
                                 list.hosts[i].is_virtual ? "=" : "", list.hosts[i].name,
                                 list.hosts[i].slots, list.hosts[i].mentions);
    return shown;
}

static void text_gives(const char *text, const char *wanted)
{
    host_list_free(&list);
    if (!host_list_read_text(&list, text, "-H", why, sizeof(why)))
        fail_msg("%s", why);
    assert_string_equal(show(), wanted);
}

static void text_fails(const char *text, const char *sentence)
{
    host_list_free(&list);
    assert_false(host_list_read_text(&list, text, "-H", why, sizeof(why)));
    if (!strstr(why, sentence))
        fail_msg("'%s' for '%s', not '%s'", why, text, sentence);
}

static void lists_by_comma_or_blank(void **state)
{
    text_gives("a,b:4", "a/0/1 b/4/1");
    text_gives(" a  b:65535,\tc\n", "a/0/1 b/65535/1 c/0/1");
    text_gives("=n0:2,=n1:2", "=n0/2/1 =n1/2/1");
    text_gives("me@h-1.x_y.org:1", "me@h-1.x_y.org/1/1");
    text_gives("[fe80::1%eth0]:4,[::1],10.0.0.1:2", "fe80::1%eth0/4/1 ::1/0/1 10.0.0.1/2/1");
    text_gives("", "");
    assert_false(list.has_slots);
}

static void a_host_named_twice_counts_once_with_the_sum(void **state)
{
    text_gives("a:2,b,a:3,a", "a/5/3 b/0/1");
    assert_int_equal(host_list_slots(&list, 0), 6); /* the last mention is one slot */
    assert_int_equal(host_list_slots(&list, 1), 1);
    text_gives("a,=a,ab", "a/0/1 =a/0/1 ab/0/1");
    assert_int_equal(host_list_slots(&list, 0), UINT32_MAX);
    text_gives("a:65535,a:65535", "a/65535/2");
}

static void wrong_lists_are_one_sentence(void **state)
{
    static const char *const wrong[] = {"a:",      "a:0",
                                        "a:65536", "a:x",
                                        "a:2x",    "a:-1",
                                        "a:+1",    ":4",
                                        "=",       "=:2",
                                        "-o",      "a/b",
                                        "a;b",     "a:1:2",
                                        "::1",     "[::1",
                                        "[]",      "[a]",
                                        "[::1]4",  "=[::1]",
                                        "a$b",     ".a",
                                        "[::1%]",  "a%b",
                                        "[%a]",    "a:99999999999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        text_fails(wrong[i], "-H: '");
        text_fails(wrong[i], wrong[i]);
        text_fails(wrong[i], "with 1 to 65535 slots");
    }
    char name[400];
    memset(name, 'a', sizeof(name));
    name[256] = 0;
    text_fails(name, "is not host");
    name[255] = 0;
    host_list_free(&list);
    assert_true(host_list_read_text(&list, name, "-H", why, sizeof(why)));
}

static void file_gives(const char *text, const char *wanted)
{
    host_list_free(&list);
    write_file(text);
    if (!host_list_read_file(&list, path, "--nodefile", why, sizeof(why)))
        fail_msg("%s", why);
    assert_string_equal(show(), wanted);
}

static void file_fails(const char *text, unsigned line, const char *sentence)
{
    char place[100];
    host_list_free(&list);
    write_file(text);
    assert_false(host_list_read_file(&list, path, "--nodefile", why, sizeof(why)));
    snprintf(place, sizeof(place), "%s:%u: ", path, line);
    if (strncmp(why, place, strlen(place)) != 0 || !strstr(why, sentence))
        fail_msg("'%s', not '%s...%s'", why, place, sentence);
}

static void files_have_a_host_a_line(void **state)
{
    file_gives("a\n\n  # none\nb:3 # three\nc slots=4\r\n\td\t slots=1\n[::1]:2\n=v:2\na",
               "a/0/2 b/3/1 c/4/1 d/1/1 ::1/2/1 =v/2/1");
    file_gives("", "");
    file_fails("a\nb c\n", 2, "'b c' is not host");
    file_fails("\n\na slots=0\n", 3, "(or host slots=N)");
    file_fails("a slots=2 b\n", 1, "slots=2 b");
    file_fails("a:2 slots=2\n", 1, "a:2 slots=2");
    file_fails("a,b\n", 1, "a,b");
    file_fails("a slots=65536", 1, "65535");
    host_list_free(&list);
    assert_false(host_list_read_file(&list, "/no/such", "--nodefile", why, sizeof(why)));
    assert_string_equal(why, "the file of hosts /no/such (--nodefile) cannot be read: No such file "
                             "or directory");
    assert_false(host_list_read_file(&list, "/tmp", "--nodefile", why, sizeof(why)));
    assert_non_null(strstr(why, "Is a directory"));
}

static void slurm_gives(const char *names, const char *tasks, const char *wanted)
{
    host_list_free(&list);
    if (!batch_read_slurm(&list, names, tasks, why, sizeof(why)))
        fail_msg("%s", why);
    assert_string_equal(show(), wanted);
}

static void slurm_fails(const char *names, const char *tasks, const char *variable)
{
    host_list_free(&list);
    assert_false(batch_read_slurm(&list, names, tasks, why, sizeof(why)));
    if (strncmp(why, variable, strlen(variable)) != 0)
        fail_msg("'%s' for %s and %s", why, names, tasks ? tasks : "none");
}

static void slurm_lists_are_expanded(void **state)
{
    slurm_gives("n1", NULL, "n1/0/1");
    slurm_gives("n[1-3,7],login", "2(x3),1,4", "n1/2/1 n2/2/1 n3/2/1 n7/1/1 login/4/1");
    slurm_gives("n[008-010]x", NULL, "n008x/0/1 n009x/0/1 n010x/0/1");
    slurm_gives("r[0-1]n[01-02]", "1(x4)", "r0n01/1/1 r0n02/1/1 r1n01/1/1 r1n02/1/1");
    slurm_gives("n[9-11]", NULL, "n9/0/1 n10/0/1 n11/0/1");
    static const char *const wrong[] = {"n[1-",  "n[1",     "n[a]",  "n[3-1]",
                                        "n[]",   "n]1",     "n[1,]", "n[1-2-3]",
                                        "n[-1]", "n[1[2]]", ",",     "n[0-99999999]"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        slurm_fails(wrong[i], NULL, "SLURM_JOB_NODELIST='");
    slurm_fails("n[0-65535],m", NULL, "more than 65536 hosts");
    slurm_fails("-o[1-2]", NULL, "'-o1' is not the name");
    static const char *const tasks[] = {"2",     "2(x1)", "2,3,4", "2(x3)", "0,1",
                                        "2(x,1", "2(y2)", "",      "2;3",   "x"};
    for (size_t i = 0; i < sizeof(tasks) / sizeof(*tasks); i++)
        slurm_fails("n[1-2]", tasks[i], "SLURM_TASKS_PER_NODE='");
}

static bool find(const char *option, const char *nodefile)
{
    struct hosts_wish wish = {option, nodefile, &settings};
    host_list_free(&list);
    return hosts_find(&list, &wish, why, sizeof(why));
}

static void batch_gives(const char *origin, const char *wanted)
{
    if (!find(NULL, NULL))
        fail_msg("%s", why);
    assert_string_equal(show(), wanted);
    assert_string_equal(list.origin, origin);
    assert_true(list.is_allocation);
}

static void each_batch_system_is_known(void **state)
{
    setenv("COBALT_NODEFILE", path, 1);
    write_file("c1\nc2\n");
    batch_gives("COBALT_NODEFILE of the Cobalt job", "c1/0/1 c2/0/1");
    setenv("PE_HOSTFILE", path, 1);
    write_file("s1 2 all.q@s1 UNDEFINED\ns2 1 all.q@s2 <NULL>\n");
    batch_gives("PE_HOSTFILE of the SGE job", "s1/2/1 s2/1/1");
    setenv("LSB_HOSTS", "l1 l1 l2", 1);
    batch_gives("LSB_HOSTS of the LSF job", "l1/2/2 l2/1/1");
    setenv("LSB_MCPU_HOSTS", "l1 2 l3 5 ", 1);
    batch_gives("LSB_MCPU_HOSTS of the LSF job", "l1/2/1 l3/5/1");
    setenv("PBS_NODEFILE", path, 1);
    write_file("p1\np1\np2\n");
    batch_gives("PBS_NODEFILE of the PBS job", "p1/2/2 p2/1/1");
    setenv("SLURM_JOB_NODELIST", "n[1-2]", 1);
    setenv("SLURM_TASKS_PER_NODE", "3(x2)", 1);
    batch_gives("SLURM_JOB_NODELIST of the Slurm job", "n1/3/1 n2/3/1");
}

static void wrong_allocations_are_one_sentence(void **state)
{
    setenv("PE_HOSTFILE", path, 1);
    write_file("s1 2\ns2 many q\n");
    assert_false(find(NULL, NULL));
    assert_non_null(strstr(why, ":2: 's2 many q' is not host and slots"));
    write_file("s1\n");
    assert_false(find(NULL, NULL));
    setenv("LSB_MCPU_HOSTS", "l1 2 l3", 1);
    assert_false(find(NULL, NULL));
    assert_non_null(strstr(why, "LSB_MCPU_HOSTS='l1 2 l3' is not what"));
    setenv("LSB_MCPU_HOSTS", "l1 2x", 1);
    assert_false(find(NULL, NULL));
    setenv("PBS_NODEFILE", "/no/such", 1);
    assert_false(find(NULL, NULL));
    assert_non_null(strstr(why, "/no/such (PBS_NODEFILE) cannot be read"));
    setenv("PBS_NODEFILE", path, 1);
    write_file("");
    assert_false(find(NULL, NULL));
    assert_string_equal(why, "PBS_NODEFILE of the PBS job names no host");
}

/* Each source added here takes precedence over the previous ones. */
static void the_first_source_counts(void **state)
{
    char origin[100];
    assert_true(find(NULL, NULL));
    assert_int_equal(list.count, 0);
    assert_string_equal(list.origin, "");
    write_file("filed:2\n");
    setenv("LSB_HOSTS", "batch", 1);
    assert_true(find(NULL, NULL));
    assert_string_equal(show(), "batch/1/1");
    settings.nodefile = path;
    assert_true(find(NULL, NULL));
    assert_string_equal(show(), "filed/2/1");
    snprintf(origin, sizeof(origin), "%s (GASNET_NODEFILE)", path);
    assert_string_equal(list.origin, origin);
    assert_false(list.is_allocation);
    settings.ssh_nodefile = path;
    assert_true(find(NULL, NULL));
    snprintf(origin, sizeof(origin), "%s (GASNET_SSH_NODEFILE)", path);
    assert_string_equal(list.origin, origin);
    settings.ssh_servers = "server";
    assert_true(find(NULL, NULL));
    assert_string_equal(show(), "server/0/1");
    assert_string_equal(list.origin, "GASNET_SSH_SERVERS");
    assert_true(find(NULL, path));
    assert_string_equal(show(), "filed/2/1");
    assert_true(find("option", path));
    assert_string_equal(show(), "option/0/1");
    assert_string_equal(list.origin, "-H");
}

static void a_source_that_names_no_host_is_an_error(void **state)
{
    assert_false(find(" , ", NULL));
    assert_string_equal(why, "-H names no host");
    assert_false(find(NULL, path));
    assert_non_null(strstr(why, "(--nodefile) names no host"));
    assert_false(find("a,=b", NULL));
    assert_non_null(strstr(why, "-H names virtual hosts (=name) beside others"));
}

static void this_host_has_many_names(void **state)
{
    char own[300];
    assert_int_equal(gethostname(own, 256), 0);
    assert_true(hosts_is_this(own));
    assert_true(hosts_is_this("localhost"));
    assert_true(hosts_is_this("127.1.2.3"));
    assert_true(hosts_is_this("127.0.0.1"));
    assert_false(hosts_is_this("192.0.2.1")); /* for documents, RFC 5737 */
    assert_false(hosts_is_this("2001:db8::1"));
    own[strcspn(own, ".")] = 0;
    assert_true(hosts_is_this(own));
    strcat(own, "x");
    assert_false(hosts_is_this(own));
    assert_false(hosts_is_this("other.example"));
    assert_true(find("localhost:4", NULL) && hosts_only_this(&list));
    assert_true(find("localhost,localhost", NULL) && hosts_only_this(&list));
    assert_false(find("=localhost", NULL) && hosts_only_this(&list));
    assert_false(find("localhost,other", NULL) && hosts_only_this(&list));
}

/* -H TEXT -n RANKS -N WANTED gives these numbers of ranks. */
static void lays_out(const char *text, uint32_t ranks, uint32_t wanted, const char *numbers)
{
    uint32_t counts[16];
    size_t used = 0;
    assert_true(find(text, NULL));
    assert_true(list.count <= 16);
    if (!layout_make(&list, ranks, wanted, counts, why, sizeof(why)))
        fail_msg("%s", why);
    for (uint32_t i = 0; i < list.count; i++)
        used += (size_t)sprintf(shown + used, i ? " %u" : "%u", counts[i]);
    if (strcmp(shown, numbers) != 0)
        fail_msg("-H %s -n %u -N %u: %s, not %s", text, ranks, wanted, shown, numbers);
}

static void does_not_fit(const char *text, uint32_t ranks, uint32_t wanted, const char *sentence)
{
    uint32_t counts[16];
    assert_true(find(text, NULL));
    assert_false(layout_make(&list, ranks, wanted, counts, why, sizeof(why)));
    assert_string_equal(why, sentence);
}

static void without_slots_ranks_are_spread_evenly(void **state)
{
    lays_out("a,b,c", 6, 0, "2 2 2");
    lays_out("a,b,c", 8, 0, "3 3 2");
    lays_out("a,b,c", 2, 0, "1 1 0");
    lays_out("a,b,c", 7, 2, "4 3 0");
    lays_out("a,b,c", 7, 1, "7 0 0");
    lays_out("a,b,a", 6, 0, "3 3");
    settings.ssh_keepdup = true;
    lays_out("a,b,a", 6, 0, "4 2");
    lays_out("a,b,a", 2, 0, "1 1");
    lays_out("a,a,b", 4, 0, "3 1");
}

static void with_slots_hosts_are_filled_in_order(void **state)
{
    lays_out("a:2,b:4,c:1", 7, 0, "2 4 1");
    lays_out("a:2,b:4,c:1", 3, 0, "2 1 0");
    lays_out("a:2,b,c:3", 6, 0, "2 1 3");
    lays_out("a:2,b:4,c:1", 4, 2, "2 2 0");
    lays_out("a:2,b:4,c:1", 6, 2, "2 4 0");
    lays_out("a:1,b:4,c:1", 5, 3, "1 3 1");
    lays_out("a:65535,b:65535", 65536, 0, "65535 1");
}

static void a_layout_that_does_not_fit_is_one_sentence(void **state)
{
    does_not_fit("a:2,b:1", 4, 0,
                 "-n 4: the 2 hosts of -H have slots for 3 processes (host:slots); start fewer, or "
                 "give more slots");
    does_not_fit(
        "a:1,b:1", 2, 1,
        "-n 2: the first 1 host of -H has slots for 1 process (host:slots); start fewer, or "
        "give more slots");
    does_not_fit("a,b", 4, 3, "-N 3: -H names 2 hosts");
    does_not_fit("a", 4, 2, "-N 2: -H names 1 host");
    does_not_fit("a,b", 1, 2, "-N 2: more hosts than processes (-n 1)");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(lists_by_comma_or_blank),
        CASE(a_host_named_twice_counts_once_with_the_sum),
        CASE(wrong_lists_are_one_sentence),
        CASE(files_have_a_host_a_line),
        CASE(slurm_lists_are_expanded),
        CASE(each_batch_system_is_known),
        CASE(wrong_allocations_are_one_sentence),
        CASE(the_first_source_counts),
        CASE(a_source_that_names_no_host_is_an_error),
        CASE(this_host_has_many_names),
        CASE(without_slots_ranks_are_spread_evenly),
        CASE(with_slots_hosts_are_filled_in_order),
        CASE(a_layout_that_does_not_fit_is_one_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
