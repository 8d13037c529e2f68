/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault language: the meaning of each rule; each mistake is refused with its name and the legal
 * words. The parser is pure, so it is called directly. Owns nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/softhca/fault/fault.h"
#include "expect.h"

#define SELECTORS "dev, port, qp, op, nth, every, after, count, p, for"

static void mistakes_are_named(void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"delai", "'delai' is not a fault; known are delay, late, reorder, early, drop, rnr, "
                  "error, enomem, sqfull, kill, cqoverrun, unplug, dup"},
        {":us=1", "'' is not a fault"},
        {"Delay", "'Delay' is not a fault"},
        {"drop;delai", "'delai' is not a fault"},
        {"delay:seconds=1", "delay takes no 'seconds'; it takes " SELECTORS ", us, ms"},
        {"early:op=read",
         "early takes no 'op'; it takes dev, port, qp, nth, every, after, count, p, "
         "for, us, ms"},
        {"late:call=any", "late takes no 'call'; it takes " SELECTORS ", us, ms, polls"},
        {"drop:us=1", "drop takes no 'us'; it takes " SELECTORS ", lost, over"},
        {"drop:lost=nothing", "lost=nothing: known are request, ack"},
        {"unplug:polls=1", "unplug takes no 'polls'; it takes " SELECTORS ", us, ms, lost"},
        {"error:us=1", "error takes no 'us'; it takes " SELECTORS ", status"},
        {"enomem:qp=1",
         "enomem takes no 'qp'; it takes dev, nth, every, after, count, p, for, call"},
        {"delay:", "delay takes no ''"},
        {"delay:us=1,", "delay takes no ''"},
        {"delay:us", "delay: us needs a value (us=...)"},
        {"delay:us=", "delay: us needs a value (us=...)"},
        {"delay:us=1,us=2", "delay: us is given twice"},
        {"delay:us=1,ms=2", "delay: only one of us, ms and polls"},
        {"late:polls=1,us=2", "late: only one of us, ms and polls"},
        {"delay:us=x", "us=x is neither a number from 0 to 10000000 nor a range of them (10-500)"},
        {"delay:us=10-5", "us=10-5 is neither"},
        {"delay:us=10-", "us=10- is neither"},
        {"delay:us=-5", "us=-5 is neither"},
        {"delay:us=1-2-3", "us=1-2-3 is neither"},
        {"delay:us=10000001", "us=10000001 is neither"},
        {"rnr:ms=10001", "ms=10001 is neither a number from 0 to 10000"},
        {"rnr:ms=99999999999999999999999", "ms=99999999999999999999999 is neither"},
        {"late:polls=1000001", "polls=1000001 is neither a number from 0 to 1000000"},
        {"drop:dev=mlx5_0", "dev=mlx5_0 is not one of softhca0 to softhca15"},
        {"drop:dev=softhca16", "dev=softhca16 is not one of"},
        {"drop:dev=softhca", "dev=softhca is not one of"},
        {"drop:port=0", "port=0 is not a number from 1 to 8"},
        {"drop:port=9", "port=9 is not a number from 1 to 8"},
        {"drop:qp=16777216", "qp=16777216 is not a number from 1 to 16777215"},
        {"drop:qp=0x10", "qp=0x10 is not a number"},
        {"drop:op=recv", "op=recv: known are send, write, read, atomic, any"},
        {"drop:nth=0", "nth=0 is not a number from 1 to 1000000000000"},
        {"drop:nth=one", "nth=one is not a number"},
        {"drop:every=0", "every=0 is not a number"},
        {"drop:after=-1", "after=-1 is not a number"},
        {"drop:count=0", "count=0 is not a number"},
        {"drop:nth=3,every=2", "drop: nth names one operation; every, after and count do not go"},
        {"drop:nth=3,after=2", "drop: nth names one operation"},
        {"drop:count=1,nth=3", "drop: nth names one operation"},
        {"drop:p=0", "p=0 is not a probability above 0 and up to 1 (0.01)"},
        {"drop:p=1.1", "p=1.1 is not a probability"},
        {"drop:p=2", "p=2 is not a probability"},
        {"drop:p=.5", "p=.5 is not a probability"},
        {"drop:p=0,5", "p=0 is not a probability"},
        {"drop:p=1%", "p=1% is not a probability"},
        {"drop:for=0", "for=0 is not a number from 1 to 86400000"},
        {"error", "error needs a status (status=retry_exc)"},
        {"error:op=send", "error needs a status"},
        {"error:status=success", "status=success: known are loc_len, loc_qp_op, loc_prot"},
        {"enomem:call=malloc", "call=malloc: known are alloc_pd, create_ah, create_comp_channel, "
                               "create_cq, create_qp, create_srq, open_xrcd, reg_mr, resize_cq, "
                               "any"},
    };
    struct shca_fault_rules rules;
    char why[400];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT(!shca_fault_parse(cases[i].text, &rules, why, sizeof why), "%s is taken",
               cases[i].text);
        EXPECT(strncmp(why, cases[i].why, strlen(cases[i].why)) == 0, "%s: said '%s', not '%s'",
               cases[i].text, why, cases[i].why);
    }
}

static void too_much_is_refused(void)
{
    struct shca_fault_rules rules;
    char text[SHCA_FAULT_TEXT + 1], why[400];

    text[0] = 0;
    for (int i = 0; i < SHCA_FAULT_RULES; i++)
        strcat(text, "drop;");
    EXPECT(shca_fault_parse(text, &rules, why, sizeof why), "%s", why);
    EXPECT(rules.n == SHCA_FAULT_RULES, "%u rules", rules.n);
    strcat(text, "drop");
    EXPECT(!shca_fault_parse(text, &rules, why, sizeof why), "one rule too many is taken");
    EXPECT(strcmp(why, "more than 32 rules") == 0, "said '%s'", why);
    memset(text, 'x', SHCA_FAULT_TEXT);
    text[SHCA_FAULT_TEXT] = 0;
    EXPECT(!shca_fault_parse(text, &rules, why, sizeof why), "a long text is taken");
    EXPECT(strcmp(why, "the rules are longer than 1023 characters") == 0, "said '%s'", why);
    text[300] = 0;
    EXPECT(!shca_fault_parse(text, &rules, why, sizeof why), "a long rule is taken");
    EXPECT(strcmp(why, "the rule 'xxxxxxxxxxxxxxxxxxxx...' is longer than 199 characters") == 0,
           "said '%s'", why);
    /* A reason that does not fit is truncated, and a short buffer causes no crash. */
    EXPECT(!shca_fault_parse("delai", &rules, why, 8), "taken");
    EXPECT(strcmp(why, "'delai'") == 0, "said '%s'", why);
    EXPECT(!shca_fault_parse("delai", &rules, NULL, 0), "taken");
}

static struct shca_fault_rule rule_of(const char *text)
{
    struct shca_fault_rules rules;
    char why[400] = "";

    EXPECT(shca_fault_parse(text, &rules, why, sizeof why), "%s: %s", text, why);
    EXPECT(rules.n == 1, "%s: %u rules", text, rules.n);
    return rules.rule[0];
}

static void defaults_are_as_documented(void)
{
    struct shca_fault_rule r = rule_of("delay");

    EXPECT(r.kind == SHCA_FAULT_DELAY && r.dev == -1 && r.port == 0 && r.qpn == 0, "selectors");
    EXPECT(r.op == SHCA_OP_ANY && !r.nth && !r.every && !r.after && !r.count && !r.for_ns, "which");
    EXPECT(r.ppb == 1000000000, "p is %u", r.ppb);
    EXPECT(r.low == 100000 && r.high == 100000 && !r.polls, "100 us");
    r = rule_of("rnr");
    EXPECT(r.low == 1000000 && r.high == 1000000, "1 ms");
    r = rule_of("reorder");
    EXPECT(r.polls && r.low == 0 && r.high == 16, "up to 16 polls");
    r = rule_of("enomem");
    EXPECT(r.call == SHCA_CALL_ANY, "any call");
}

static void values_arrive(void)
{
    struct shca_fault_rule r = rule_of("delay:dev=softhca15,port=8,qp=16777215,op=atomic,every=3,"
                                       "after=4,count=5,p=0.25,for=6,us=10-500");

    EXPECT(r.dev == 15 && r.port == 8 && r.qpn == 0xffffff && r.op == SHCA_OP_ATOMIC, "who");
    EXPECT(r.every == 3 && r.after == 4 && r.count == 5 && r.ppb == 250000000, "which");
    EXPECT(r.for_ns == 6000000 && r.low == 10000 && r.high == 500000, "when");
    EXPECT(rule_of("drop:nth=7").nth == 7, "nth");
    EXPECT(rule_of("drop:p=1").ppb == 1000000000, "p=1");
    EXPECT(rule_of("drop:p=1.0").ppb == 1000000000, "p=1.0");
    EXPECT(rule_of("drop:p=0.000000001").ppb == 1, "the smallest p");
    EXPECT(rule_of("rnr:ms=2").high == 2000000, "ms");
    EXPECT(rule_of("late:polls=3-9").high == 9, "polls");
    EXPECT(rule_of("error:status=rem_access").status == IBV_WC_REM_ACCESS_ERR, "status");
    EXPECT(rule_of("enomem:call=reg_mr").call == SHCA_CALL_REG_MR, "call");
}

static void rules_are_separated_by_semicolons(void)
{
    struct shca_fault_rules rules;
    char why[400];

    EXPECT(shca_fault_parse("", &rules, why, sizeof why) && rules.n == 0, "nothing is no rule");
    EXPECT(shca_fault_parse(" ; ;", &rules, why, sizeof why) && rules.n == 0, "nor is this");
    EXPECT(shca_fault_parse("drop:nth=1; rnr;;kill;", &rules, why, sizeof why), "%s", why);
    EXPECT(rules.n == 3 && rules.rule[2].kind == SHCA_FAULT_KILL, "three rules");
    EXPECT(rules.rule[1].length == 3 && strncmp(rules.text + rules.rule[1].at, "rnr", 3) == 0,
           "a rule knows its text");
}

/* ---- the document ---- */

static char document[32768];

static void read_document(const char *name)
{
    const char *top = getenv("top_srcdir");
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/contrib/softhca/%s", top ? top : ".", name);
    f = fopen(path, "r");
    EXPECT(f != NULL, "cannot read %s", path);
    if (!f)
        return;
    document[fread(document, 1, sizeof document - 1, f)] = 0;
    fclose(f);
}

/* Every legal word in an error message is in the document. */
static void words_are_documented(const char *mistake, const char *before)
{
    struct shca_fault_rules rules;
    char why[400], *words;

    EXPECT(!shca_fault_parse(mistake, &rules, why, sizeof why), "%s is taken", mistake);
    words = strstr(why, before);
    EXPECT(words != NULL, "%s: said '%s'", mistake, why);
    if (!words)
        return;
    for (char *w = strtok(words + strlen(before), ", "); w; w = strtok(NULL, ", "))
        EXPECT(strstr(document, w) != NULL, "'%s' is not in the document", w);
}

/* Each quoted rule behind the variable is one. */
static void examples_are_rules(void)
{
    static const char variable[] = "SOFTHCA_FAULT=\"";
    struct shca_fault_rules rules;
    char why[400];
    int n = 0;

    for (char *at = strstr(document, variable); at; at = strstr(at, variable), n++) {
        char *end = strchr(at += strlen(variable), '"');

        if (!end || strncmp(at, "rule;", 5) == 0)
            continue;
        *end = 0;
        EXPECT(shca_fault_parse(at, &rules, why, sizeof why), "the example %s: %s", at, why);
        at = end + 1;
    }
    EXPECT(n >= 4, "only %d examples found", n);
}

static void the_document_is_complete(const char *name)
{
    read_document(name);
    words_are_documented("x", "known are ");
    words_are_documented("late:x=1", "it takes ");
    words_are_documented("enomem:x=1", "it takes ");
    words_are_documented("error:x=1", "it takes ");
    words_are_documented("error:status=x", "known are ");
    words_are_documented("enomem:call=x", "known are ");
    words_are_documented("drop:op=x", "known are ");
}

int main(void)
{
    mistakes_are_named();
    too_much_is_refused();
    defaults_are_as_documented();
    values_arrive();
    rules_are_separated_by_semicolons();
    the_document_is_complete("../../man/softhca-fault.7");
    the_document_is_complete("fault/fault-language.txt");
    examples_are_rules();
    printf("%s\n", failures ? "FAIL" : "ok");
    return failures ? 1 : 0;
}
