/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Texts of a form: what each checker accepts, and the error line for other texts. */
#include "config.h"

#include "settings/settings.h"
#include "unit.h"

static const struct {
    enum tk_form form;
    const char *good[16], *bad[16], *says;
} forms[] = {
    {TK_FORM_PORTS,
     {"mlx5_0", "a:1+b", "a:1,2+b:3", "a++b", "+a"},
     {":::", ":1", "a:", "a:1,", "a:,1", "a:x", "a:1-2", "ok+a:1:2", "a:1,,2", "a:1 +b", "a:-1"},
     "' is not device or device:port,port"},
    {TK_FORM_PART,
     {"Socket", "package", "NUMANode", "node", "pu", "Core", "L3", "L2Cache", "l1dcache", "group",
      "Group0", "Machine", "die"},
     {"Nonsense", "Rack", "OSDev", "PCI", "1", "L9", "L", "p", "Socket1x", "sockets"},
     " is no type of hwloc's for parts of a machine: Package (or Socket), "},
    {TK_FORM_PART,
     {"None", "none", "JRank", "hrank", "NRANK", "HRank % 4", "Core/8", "core / 0x10", "Node%2"},
     {"Rank", "HRank %", "HRank % 0", "Core / -2", "Core / 2 % 2", "Core 8", "/ 2", "Core / 2x"},
     "; nor is it JRank, HRank, NRank, one of these with / or % and a number, None or auto"},
    {TK_FORM_PART,
     {"auto", "AUTO", "automatic", "auto,2", "Auto 7", "auto:all", "AUTO:ALL", "auto:1", "auto:64"},
     {"auto:", "auto:0", "auto:65", "auto:-1", "auto:few", "auto:1x", "auto:all2", "auto:1.5"},
     ": behind auto: is neither all nor a number of ports from 1 to 64; "},
    {TK_FORM_GID_INDEX,
     {"0", "255", "-1", "fake1:1=2,fake0:1=3", "a:1=0"},
     {"abc", "256", "1.5", "-2", "fake0=3", "fake0:1", ":1=2", "fake0:0=1", "fake0:1=256",
      "fake0:1=-1", "fake0:1=3;4", "fake0:1=2,7"},
     "is neither an index from 0 to 255, for all ports, nor device:port=index"},
    {TK_FORM_SHARE,
     {"8G", "0.5", "5/8", "1T", "512MB", "0"},
     {"abc", "-1", "1/0", "/2", "1/2/3", "nan"},
     " is neither a fraction below 1 (as 0.5 or 5/8) nor a number from 1"},
    {TK_FORM_SEGSIZE,
     {"0.85/H", "512M", "2GB/P", "1"},
     {"junk", "0", "-1", "1/X", "inf/P", "1G /P "},
     " is not a size (as 512M, 2GB) or a fraction (as 0.85)"},
    {TK_FORM_RANKS,
     {"0", "0,3-5", "7 8", "*"},
     {"all", "1-", "3-2", "1;2", "**", "1,*"},
     ": not ranks in the form 0,3-5, or * for all"},
    {TK_FORM_LETTERS, {"PGA", "^P", "pg", "^"}, {"P1", "PG^", "Q*"}, ": not letters of"},
    {TK_FORM_SIGNALS,
     {"*", "HUP,SIGTERM", "1 15", "64"},
     {"SIGFOO", "SIG", "IN", "SIGINTX", "HUP,FOO", "0", "9999", "hup"},
     " is not a signal (a name as SIGHUP or HUP, a number, or * for all)"},
    {TK_FORM_SIGNAL,
     {"USR1", "SIGUSR2", "sigusr1", "10"},
     {"NOSUCH", "0", "1000", "USR1,USR2"},
     " is not a signal: a name as SIGUSR1 or a number"},
    {TK_FORM_SIGNAL, {NULL}, {"SIGKILL", "STOP", "9"}, " can't be caught: give another signal"},
    {TK_FORM_PATTERN,
     {"0x5dbadf00d5dbadf0", "NAN", "snan", "7", "-1"},
     {"deadbeef", "x:y", "0x", "1.5"},
     " is not a 64-bit integer (decimal or 0x...) or NAN"},
    {TK_FORM_BITS, {"0x7ff7a110ca7eda11", "0"}, {"NAN", "beef"}, " is not a whole number of 64"},
    {TK_FORM_ALGORITHMS,
     {"levels=no", "broadcast=flat,reduce=ring", "reduce_all=switch"},
     {"broadcast=nonsense", "ring", "levels=yes", "reduce_all=flat"},
     "is none of barrier=dissemination, broadcast=scatter_allgather, "},
    {TK_FORM_ADDRESS,
     {"switch:7000", "10.0.0.1:1", "[fe80::1]:65535"},
     {"switch", "switch:", ":7", "switch:0", "switch:65536", "switch:x", "fe80::1:7"},
     " is not host:port, with a port from 1 to 65535"},
    {TK_FORM_NAMES, {"USER,GDB", "EXECINFO", "my-way"}, {"GDB;", "a/b"}, " is not a list of names"},
    {TK_FORM_RATE,
     {"walltime", "CPUINFO", "2400000000"},
     {"foo", "1000", "2.4G", "-5"},
     " is not walltime, cpuinfo or a rate from 1000000 Hz"},
    {TK_FORM_TOLERANCE, {"0", "0.5", "1/100"}, {"2", "-1", "few"}, " is not a number from 0 to 1"},
    {TK_FORM_SPAWNER, {"ssh", "pmi"}, {"rsh", "SSH"}, ": unknown spawner; there are ssh, local"},
};
enum { form_count = sizeof(forms) / sizeof(forms[0]), texts_max = 16 };

static void what_has_the_form_is_accepted(void **state)
{
    char why[tk_setting_why_max];
    for (size_t i = 0; i < form_count; i++)
        for (size_t j = 0; j < texts_max && forms[i].good[j]; j++)
            if (!tk_form_is(forms[i].form, forms[i].good[j], why, sizeof(why)))
                fail_msg("'%s'%s", forms[i].good[j], why);
}

static void what_has_not_is_refused_with_the_reason(void **state)
{
    char why[tk_setting_why_max];
    for (size_t i = 0; i < form_count; i++)
        for (size_t j = 0; j < texts_max && forms[i].bad[j]; j++) {
            if (tk_form_is(forms[i].form, forms[i].bad[j], why, sizeof(why)))
                fail_msg("'%s' was accepted, row %zu", forms[i].bad[j], i);
            unit_assert_says(why, forms[i].says);
            assert_int_equal(unit_lines(why), 0);
        }
}

static void the_entry_that_is_wrong_is_named(void **state)
{
    static const char *const env[] = {"GASNET_IBV_PORTS=ok:1+a:x", "GASNET_IBV_GID_INDEX=b:1=1,q",
                                      "GASNET_NO_CATCH_SIGNAL=HUP,FOO", NULL};
    unit_listen();
    enum tk_status status = tk_settings_load((char *const *)env);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, "GASNET_IBV_PORTS='ok:1+a:x': 'a:x' is not device");
    unit_assert_says(said, "GASNET_IBV_GID_INDEX='b:1=1,q': 'q' is neither");
    unit_assert_says(said, "GASNET_NO_CATCH_SIGNAL='HUP,FOO': FOO is not a signal");
    assert_int_equal(unit_lines(said), 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_has_the_form_is_accepted),
    cmocka_unit_test(what_has_not_is_refused_with_the_reason),
    cmocka_unit_test(the_entry_that_is_wrong_is_named),
};

UNIT_MAIN(tests)
