/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of settings as a whole: it is consistent, its defaults are the documented ones, the
 * environment overrides them, misspelt names are noticed, and ranks detect that their values
 * differ. */
#include "config.h"

#include "base/report.h"
#include "settings/settings.h"
#include "unit.h"

static void every_name_is_unique_and_ours(void **state)
{
    for (size_t i = 0; i < tk_setting_count; i++) {
        assert_memory_equal(tk_setting_table[i].name, "GASNET_", 7);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(tk_setting_table[i].name, tk_setting_table[j].name);
    }
}

static bool has_field(const struct tk_setting *s)
{
    return s->type != TK_SETTING_IGNORED && s->type != TK_SETTING_RETIRED &&
           s->type != TK_SETTING_TOOLS && s->type != TK_SETTING_SWITCH;
}

/* Each rank looks for its environment among the settings, and only by the rest of a name. */
static void an_entry_names_the_setting_with_its_whole_name(void **state)
{
    char entry[128];
    (void)state;
    for (size_t i = 0; i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        snprintf(entry, sizeof(entry), "%s=1", s->name);
        assert_ptr_equal(tk_setting_in(entry), s);
        assert_null(tk_setting_in(s->name));
        entry[0] = 'g';
        assert_null(tk_setting_in(entry));
        snprintf(entry, sizeof(entry), "%sX=1", s->name);
        assert_ptr_not_equal(tk_setting_in(entry), s);
    }
    assert_null(tk_setting_in("GASNET_=1"));
    assert_null(tk_setting_in("PATH=/GASNET_"));
    assert_null(tk_setting_in(""));
}

static void the_first_of_two_entries_counts(void **state)
{
    static char *const env[] = {"GASNET_CONNECT_SNDS=5", "GASNET_CONNECT_SNDS=6", NULL};
    (void)state;
    assert_int_equal(tk_settings_load(env), TK_OK);
    assert_int_equal(tk_settings.connect_snds, 5);
}

static void no_two_settings_share_a_field(void **state)
{
    for (size_t i = 0; i < tk_setting_count; i++) {
        assert_true(tk_setting_table[i].offset < sizeof(struct tk_settings));
        for (size_t j = 0; j < i; j++)
            if (has_field(&tk_setting_table[i]) && has_field(&tk_setting_table[j]))
                assert_int_not_equal(tk_setting_table[i].offset, tk_setting_table[j].offset);
    }
}

/* A setting must accept its own default, as documented, when a user types it. */
static void every_default_is_legal(void **state)
{
    unit_settings(NULL);
    for (size_t i = 0; i < tk_setting_count; i++) {
        struct tk_settings out;
        char text[256], why[512] = "";
        tk_setting_format(&tk_setting_table[i], &tk_settings, text, sizeof(text));
        if (tk_setting_parse(&tk_setting_table[i], text, &out, why, sizeof(why)) != TK_OK)
            fail_msg("%s", why);
    }
}

static void every_setting_is_explained(void **state)
{
    for (size_t i = 0; i < tk_setting_count; i++) {
        assert_true(strlen(tk_setting_table[i].help) > 8);
        assert_non_null(tk_setting_table[i].unit);
    }
}

/* Users tune by the manual of the conduit that this one replaces. */
static void defaults_are_the_manuals(void **state)
{
    unit_settings(NULL);
    assert_int_equal(tk_settings.am_credits_pp, 12);
    assert_int_equal(tk_settings.am_credits_total, -1);
    assert_int_equal(tk_settings.am_credits_slack, -1);
    assert_int_equal(tk_settings.networkdepth_pp, 24);
    assert_int_equal(tk_settings.networkdepth_total, 255);
    assert_int_equal(tk_settings.bbuf_count, 1024);
    assert_int_equal(tk_settings.inlinesend_limit, 72);
    assert_int_equal(tk_settings.packedlong_limit, 4012);
    assert_int_equal(tk_settings.nonbulkput_bounce_limit, 65536);
    assert_int_equal(tk_settings.am_gather_min, 1500);
    assert_int_equal(tk_settings.qp_timeout, 18);
    assert_int_equal(tk_settings.qp_retry_count, 7);
    assert_int_equal(tk_settings.qp_rd_atom, 0);
    assert_int_equal(tk_settings.max_mtu, 0);
    assert_string_equal(tk_settings.max_segsize, "0.85/H");
    assert_string_equal(tk_settings.ibv_ports, "");
    assert_string_equal(tk_settings.host_detect, "conduit");
    assert_true(tk_settings.catch_exit);
    assert_true(tk_settings.exit_timeout_min == 2 && tk_settings.exit_timeout_max == 20);
    assert_false(tk_settings.quiet || tk_settings.verboseenv);
}

static void the_environment_overrides_defaults(void **state)
{
    unit_settings("PATH=/bin", "GASNET_AM_CREDITS_PP=3", "GASNET_IBV_PORTS=a:1+b", "GASNET_QUIET=y",
                  "GASNET_PACKEDLONG_LIMIT=1K", NULL);
    assert_int_equal(tk_settings.am_credits_pp, 3);
    assert_string_equal(tk_settings.ibv_ports, "a:1+b");
    assert_true(tk_settings.quiet);
    assert_int_equal(tk_settings.packedlong_limit, 1024);
    assert_int_equal(tk_settings.networkdepth_pp, 24);
}

static void a_name_that_another_one_begins_with_is_not_that_one(void **state)
{
    unit_settings("GASNET_EXITTIMEOUT_MIN=5", NULL);
    assert_true(tk_settings.exit_timeout == 0);
    assert_true(tk_settings.exit_timeout_min == 5);
}

/* Job scripts clear a variable with X= where they can't unset it. */
static void an_empty_value_counts_as_unset(void **state)
{
    unit_settings("GASNET_AM_CREDITS_PP=", "GASNET_HOST_DETECT=", "GASNET_QUIET=", NULL);
    assert_int_equal(tk_settings.am_credits_pp, 12);
    assert_string_equal(tk_settings.host_detect, "conduit");
}

static void each_bad_value_is_reported_in_one_line(void **state)
{
    static char *const env[] = {"GASNET_AM_CREDITS_PP=0", "GASNET_QUIET=2", "GASNET_QP_TIMEOUT=32",
                                NULL};
    unit_listen();
    enum tk_status status = tk_settings_load(env);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 3);
    unit_assert_says(said, "GASNET_AM_CREDITS_PP='0'");
    unit_assert_says(said, "GASNET_QUIET='2'");
    unit_assert_says(said, "GASNET_QP_TIMEOUT='32'");
}

/* A launcher of another kind has not looked at them. */
static void settings_that_others_use_are_judged_here_too(void **state)
{
    static char *const env[] = {"GASNET_SOFTHCA=perhaps", "GASNET_SPAWN_VERBOSE=perhaps",
                                "GASNET_IBV_PORTS_7=a:1;b", NULL};
    unit_listen();
    enum tk_status status = tk_settings_load(env);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 3);
    unit_assert_says(said, "GASNET_SOFTHCA='perhaps' is not one of auto|always|never");
    unit_assert_says(said, "GASNET_SPAWN_VERBOSE='perhaps' is not one of 0, 1");
    unit_assert_says(said, "GASNET_IBV_PORTS_7='a:1;b': 'a:1;b' is not device or device:port,port");
    assert_string_equal(tk_settings.softhca, "auto");
}

static char told[512];

static void tell(const char *name, const char *nearest)
{
    size_t used = strlen(told);
    snprintf(told + used, sizeof(told) - used, "%s->%s;", name, nearest ? nearest : "?");
}

static const char *unknown_in(char *const *env)
{
    told[0] = 0;
    tk_settings_unknown(env, tell);
    return told;
}

static void a_misspelt_name_is_reported_with_the_nearest(void **state)
{
    static char *const env[] = {"GASNET_AM_CREDIT_PP=1", "GASNET_NETWORKDEPHT_PP=1",
                                "GASNET_QUITE=1", NULL};
    assert_string_equal(unknown_in(env), "GASNET_AM_CREDIT_PP->GASNET_AM_CREDITS_PP;"
                                         "GASNET_NETWORKDEPHT_PP->GASNET_NETWORKDEPTH_PP;"
                                         "GASNET_QUITE->GASNET_QUIET;");
}

/* Four letters of GASNET_SSH_CMD make another short word; PSHM_NODES and HCA_ID would do nothing.
 */
static void a_suggestion_does_not_mislead(void **state)
{
    static char *const env[] = {"GASNET_ENV_CMD=1",  "GASNET_SHM_NODES=1",  "GASNET_HCA_IDS=1",
                                "GASNET_RSH_CMD=1",  "GASNET_QUIT=1",       "GASNET_NODES=1",
                                "GASNET_TIMEOUT=30", "GASNET_MAXTHREADS=1", NULL};
    assert_string_equal(unknown_in(env),
                        "GASNET_ENV_CMD->?;GASNET_SHM_NODES->?;GASNET_HCA_IDS->?;"
                        "GASNET_RSH_CMD->GASNET_SSH_CMD;GASNET_QUIT->GASNET_QUIET;"
                        "GASNET_NODES->?;GASNET_TIMEOUT->?;GASNET_MAXTHREADS->GASNET_MAX_THREADS;");
}

static void a_name_like_no_other_is_reported_alone(void **state)
{
    char long_name[200] = "GASNET_";
    char *const env[] = {"GASNET_COMPLETELY_DIFFERENT=1", long_name, NULL};
    memset(long_name + 7, 'X', sizeof(long_name) - 10);
    strcpy(long_name + sizeof(long_name) - 3, "=1");
    unknown_in(env);
    unit_assert_says(told, "GASNET_COMPLETELY_DIFFERENT->?;");
    unit_assert_says(told, "XX->?;");
}

static void known_and_foreign_names_are_not_reported(void **state)
{
    static char *const env[] = {
        "GASNET_USE_SRQ=1", "GASNET_QUIET=0",      "GASNETX_Y=1",       "GASNET",
        "OMPI_X=1",         "GASNET_SOFTHCA=auto", "GASNET_ENVCMD=env", NULL};
    assert_string_equal(unknown_in(env), "");
    assert_string_equal(unknown_in(NULL), "");
}

/* One for each socket in old job scripts */
static void numbered_ports_are_known(void **state)
{
    static char *const env[] = {"GASNET_IBV_PORTS_0=a",
                                "GASNET_IBV_PORTS_12=b",
                                "GASNET_IBV_PORTS_0_12=b",
                                "GASNET_IBV_PORTS_1x=c",
                                "GASNET_IBV_PORTS_=d",
                                "GASNET_IBV_PORTS_0_=e",
                                NULL};
    assert_string_equal(unknown_in(env), "GASNET_IBV_PORTS_1x->GASNET_IBV_PORTS;"
                                         "GASNET_IBV_PORTS_->GASNET_IBV_PORTS;"
                                         "GASNET_IBV_PORTS_0_->GASNET_IBV_PORTS;");
}

/* The tools read them when it is too late to complain. */
static void a_switch_of_the_tools_is_judged_here(void **state)
{
    static char *const env[] = {"GASNET_BACKTRACE=perhaps", "GASNET_FREEZE=on",
                                "GASNET_BACKTRACE_TYPE=perhaps", NULL}; /* a client's own */
    unit_listen();
    enum tk_status status = tk_settings_load(env);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "GASNET_BACKTRACE='perhaps' is not one of 0, 1");
}

static bool is_value(const char *name, const char *value)
{
    const char *now = tk_getenv(name);
    return value ? now && !strcmp(now, value) : !now;
}

static unsigned times_listed(const char *name)
{
    unsigned times = 0;
    for (char *const *at = tk_environment(); *at; at++)
        times += !strncmp(*at, name, strlen(name)) && (*at)[strlen(name)] == '=';
    return times;
}

/* PATH stands for what a spawner gives to all ranks. */
static void change_environment(void *path)
{
    setenv("PATH", "/changed/before", 1);
    setenv("OWN_NAME", "before", 1);
    tk_environment_open();
    if (!is_value("PATH", path) || !is_value("OWN_NAME", "before"))
        exit(1);
    setenv("PATH", "/changed/after", 1);
    setenv("OWN_NAME", "after", 1);
    if (!is_value("PATH", path) || !is_value("OWN_NAME", "after"))
        exit(2);
    if (times_listed("PATH") != 1 || times_listed("OWN_NAME") != 1)
        exit(3);
    unsetenv("PATH");
    unsetenv("OWN_NAME");
    exit(is_value("PATH", path) && is_value("OWN_NAME", NULL) && !times_listed("OWN_NAME") ? 0 : 4);
}

static void a_client_changes_its_own_names_only(void **state)
{
    if (!getenv("PATH"))
        skip();
    unit_assert_exit(change_environment, strdup(getenv("PATH")), 0);
}

static void a_job_wide_difference_changes_the_hash(void **state)
{
    unit_settings(NULL);
    uint64_t defaults = tk_settings_job_hash();
    unit_settings("GASNET_AM_CREDITS_PP=12", NULL);
    assert_true(tk_settings_job_hash() == defaults);
    unit_settings("GASNET_AM_CREDITS_PP=11", NULL);
    assert_true(tk_settings_job_hash() != defaults);
    unit_settings("GASNET_MAX_SEGSIZE=1G", NULL);
    assert_true(tk_settings_job_hash() != defaults);
}

static void change(const struct tk_setting *s)
{
    void *field = (char *)&tk_settings + s->offset;
    switch (s->type) {
    case TK_SETTING_INT:
    case TK_SETTING_SIZE:
        *(uint64_t *)field += UINT64_C(1) << 40;
        break;
    case TK_SETTING_BOOL:
        *(bool *)field = !*(bool *)field;
        break;
    case TK_SETTING_REAL:
        *(double *)field += 1;
        break;
    case TK_SETTING_TEXT:
    case TK_SETTING_CHOICE:
        *(const char **)field = "another";
        break;
    default:
        break;
    }
}

/* As the text that shows the difference does. */
static void each_job_wide_value_changes_the_hash(void **state)
{
    (void)state;
    unit_settings(NULL);
    const struct tk_settings before = tk_settings;
    const uint64_t defaults = tk_settings_job_hash();
    char *text = tk_settings_job_text();
    for (size_t i = 0; i < tk_setting_count; i++) {
        change(&tk_setting_table[i]);
        char *now = tk_settings_job_text();
        assert_int_equal(tk_settings_job_hash() != defaults, strcmp(now, text) != 0);
        free(now);
        tk_settings = before;
    }
    free(text);
}

static void a_rank_wide_difference_does_not(void **state)
{
    unit_settings(NULL);
    uint64_t defaults = tk_settings_job_hash();
    unit_settings("GASNET_IBV_PORTS=x", "GASNET_QUIET=1", "GASNET_EXITTIMEOUT=9", NULL);
    assert_true(tk_settings_job_hash() == defaults);
}

static void the_job_text_lists_job_wide_settings_one_a_line(void **state)
{
    unsigned job_wide = 1; /* the size of messages */
    for (size_t i = 0; i < tk_setting_count; i++)
        job_wide += tk_setting_table[i].scope == TK_SCOPE_JOB;
    unit_settings("GASNET_AM_CREDITS_PP=7", NULL);
    char *text = tk_settings_job_text();
    assert_int_equal(unit_lines(text), job_wide);
    unit_assert_says(text, "GASNET_AM_CREDITS_PP=7\n");
    unit_assert_says(text, "--with-ibv-max-medium=");
    assert_null(strstr(text, "GASNET_QUIET"));
    free(text);
}

static void the_changed_settings_are_those_that_differ(void **state)
{
    unit_settings(NULL);
    char *none = tk_settings_changed_json();
    assert_string_equal(none, "");
    unit_settings("GASNET_AM_CREDITS_PP=7", "GASNET_USE_SRQ=-1", "GASNET_QUIET=y",
                  "GASNET_STATSFILE=a\"\\\xc3%", NULL);
    char *some = tk_settings_changed_json();
    assert_string_equal(some, "\"GASNET_AM_CREDITS_PP\":\"7\",\"GASNET_QUIET\":\"1\","
                              "\"GASNET_STATSFILE\":\"a\\\"\\\\\\u00c3%\"");
    /* --report collects statistics: the user has not set this. */
    setenv("TRUNKLINE_SESSION", "/tmp/session", 1);
    unit_settings("GASNET_QUIET=y", "GASNET_STATSFILE=/tmp/session/statistics.%.json",
                  "GASNET_TRACEFILE=/tmp/trace", NULL);
    char *own = tk_settings_changed_json();
    unsetenv("TRUNKLINE_SESSION");
    assert_string_equal(own, "\"GASNET_QUIET\":\"1\",\"GASNET_TRACEFILE\":\"/tmp/trace\"");
    free(none);
    free(some);
    free(own);
}

static void the_printed_table_has_every_setting_in_order(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    tk_settings_print(out);
    fclose(out);
    const char *at = text;
    for (size_t i = 0; i < tk_setting_count; i++) {
        char heading[80];
        bool is_ignored = !has_field(&tk_setting_table[i]) &&
                          tk_setting_table[i].type != TK_SETTING_TOOLS &&
                          tk_setting_table[i].type != TK_SETTING_SWITCH;
        snprintf(heading, sizeof(heading), is_ignored ? "%s" : "%s\n    (",
                 tk_setting_table[i].name);
        const char *found = strstr(at, heading);
        if (!found)
            fail_msg("%s is missing or out of order", tk_setting_table[i].name);
        at = found + 1;
    }
    unit_assert_says(text, "default 12; 1..1024 requests; equal on all ranks)");
    unit_assert_says(text, "one of conduit|hostname|gethostid");
    unit_assert_says(text, "accepted, no effect");
    free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_name_is_unique_and_ours),
    cmocka_unit_test(an_entry_names_the_setting_with_its_whole_name),
    cmocka_unit_test(the_first_of_two_entries_counts),
    cmocka_unit_test(no_two_settings_share_a_field),
    cmocka_unit_test(every_default_is_legal),
    cmocka_unit_test(every_setting_is_explained),
    cmocka_unit_test(defaults_are_the_manuals),
    cmocka_unit_test(the_environment_overrides_defaults),
    cmocka_unit_test(a_name_that_another_one_begins_with_is_not_that_one),
    cmocka_unit_test(an_empty_value_counts_as_unset),
    cmocka_unit_test(each_bad_value_is_reported_in_one_line),
    cmocka_unit_test(settings_that_others_use_are_judged_here_too),
    cmocka_unit_test(a_misspelt_name_is_reported_with_the_nearest),
    cmocka_unit_test(a_suggestion_does_not_mislead),
    cmocka_unit_test(a_name_like_no_other_is_reported_alone),
    cmocka_unit_test(known_and_foreign_names_are_not_reported),
    cmocka_unit_test(numbered_ports_are_known),
    cmocka_unit_test(a_switch_of_the_tools_is_judged_here),
    cmocka_unit_test(a_client_changes_its_own_names_only),
    cmocka_unit_test(a_job_wide_difference_changes_the_hash),
    cmocka_unit_test(each_job_wide_value_changes_the_hash),
    cmocka_unit_test(a_rank_wide_difference_does_not),
    cmocka_unit_test(the_job_text_lists_job_wide_settings_one_a_line),
    cmocka_unit_test(the_changed_settings_are_those_that_differ),
    cmocka_unit_test(the_printed_table_has_every_setting_in_order),
};

UNIT_MAIN(tests)
