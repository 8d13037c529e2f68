/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of softhca: each bad one is refused in one line that names it, each good one has its
 * effect, and README and man page agree with the table. The parser is pure, so it is called
 * directly. Owns nothing. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/softhca/support/softhca_settings.h"
#include "expect.h"

static int parse(const char *one, const char *two, struct shca_config *c, char why[400])
{
    char *env[] = {"HOME=/", (char *)(uintptr_t)one, (char *)(uintptr_t)two, NULL};

    why[0] = 0;
    return shca_settings_parse(env, c, why, 400);
}

/* More entries than a process can name settings for: the last ones count too. */
static void found_among_many(void)
{
    enum { many = 100 };
    char *env[many + 2], why[400];
    struct shca_config c;

    why[0] = 0;
    for (int n = 0; n <= many; n++) {
        for (int i = 0; i < n; i++)
            env[i] = i % 2 ? "SOFTHCA_HCAS=2" : "HOME=/";
        env[n] = "SOFTHCA_PORTS=3";
        env[n + 1] = NULL;
        EXPECT(shca_settings_parse(env, &c, why, sizeof why) == 0 && c.ports == 3 &&
                   c.hcas == (n > 1 ? 2 : 1),
               "behind %d entries: %s", n, why);
        env[n] = "SOFTHCA_PORT=3";
        EXPECT(shca_settings_parse(env, &c, why, sizeof why) != 0, "%d: not refused", n);
    }
}

static void refused_by_name(void)
{
    static const struct {
        const char *entry, *why;
    } cases[] = {
        {"SOFTHCA_HCA=2", "SOFTHCA_HCA is no setting; did you mean SOFTHCA_HCAS?"},
        {"SOFTHCA_PORT=2", "SOFTHCA_PORT is no setting; did you mean SOFTHCA_PORTS?"},
        {"SOFTHCA_MAXQP=2", "SOFTHCA_MAXQP is no setting; did you mean SOFTHCA_MAX_QP?"},
        {"SOFTHCA_Fabric=", "SOFTHCA_Fabric is no setting"},
        {"SOFTHCA_NOTHING_LIKE_IT=1", "SOFTHCA_NOTHING_LIKE_IT is no setting; there are"},
        {"SOFTHCA_=1", "SOFTHCA_ is no setting"},
        {"SOFTHCA_HCAS=0", "SOFTHCA_HCAS=0 is not a number from 1 to 16"},
        {"SOFTHCA_HCAS=17", "SOFTHCA_HCAS=17 is not a number from 1 to 16"},
        {"SOFTHCA_HCAS= 1", "SOFTHCA_HCAS= 1 is not a number from 1 to 16"},
        {"SOFTHCA_PORTS=2x", "SOFTHCA_PORTS=2x is not a number from 1 to 8"},
        {"SOFTHCA_SEED=-1", "SOFTHCA_SEED=-1 is not a number from 0 to 18446744073709551615"},
        {"SOFTHCA_SEED=18446744073709551616", "SOFTHCA_SEED=18446744073709551616 is not a number"},
        {"SOFTHCA_MAX_MSG=1", "SOFTHCA_MAX_MSG=1 is not a number from 4096 to 2147483648"},
        {"SOFTHCA_LINK=eth", "SOFTHCA_LINK=eth is neither ib nor roce"},
        {"SOFTHCA_LINK=i", "SOFTHCA_LINK=i is neither ib nor roce"},
        {"SOFTHCA_ONLY=yes", "SOFTHCA_ONLY=yes is neither 0 nor 1"},
        {"SOFTHCA_UNPLUGGED=softhca1:1",
         "SOFTHCA_UNPLUGGED=softhca1:1: 'softhca1:1' does not begin"},
        {"SOFTHCA_RATE=0", "SOFTHCA_RATE=0: '0' is neither a number of MB/s up to 1000000 nor"},
        {"SOFTHCA_RATE=1000001", "SOFTHCA_RATE=1000001: '1000001' is neither"},
        {"SOFTHCA_RATE=1G", "SOFTHCA_RATE=1G: '1G' is neither"},
        {"SOFTHCA_RATE=5,softhca0:2=7", "SOFTHCA_RATE=5,softhca0:2=7: 'softhca0:2=7' is neither"},
        {"SOFTHCA_RATE=softhca1:1=7", "SOFTHCA_RATE=softhca1:1=7: 'softhca1:1=7' is neither"},
        {"SOFTHCA_RATE=softhca0:1", "SOFTHCA_RATE=softhca0:1: 'softhca0:1' is neither"},
        {"SOFTHCA_RATE=softhca0:1=", "SOFTHCA_RATE=softhca0:1=: 'softhca0:1=' is neither"},
        {"SOFTHCA_RATE=5,", "SOFTHCA_RATE=5,: '' is neither"},
        {"SOFTHCA_GIDS=ipv5",
         "SOFTHCA_GIDS=ipv5: 'ipv5' is neither a list of link, ipv4, ipv6 (with @V"},
        {"SOFTHCA_GIDS=link+", "SOFTHCA_GIDS=link+: 'link+' is neither a list"},
        {"SOFTHCA_GIDS=ipv4@0", "SOFTHCA_GIDS=ipv4@0: 'ipv4@0' is neither a list"},
        {"SOFTHCA_GIDS=ipv4@100", "SOFTHCA_GIDS=ipv4@100: 'ipv4@100' is neither a list"},
        {"SOFTHCA_GIDS=link+link+link+link+link+link+link+link+-",
         "SOFTHCA_GIDS=link+link+link+link+link+link+link+link+-: 'link+link"},
        {"SOFTHCA_SUBNET=256", "SOFTHCA_SUBNET=256: '256' is neither a number up to 255 nor"},
        {"SOFTHCA_LMC=8", "SOFTHCA_LMC=8 is not a number from 0 to 7"},
        {"SOFTHCA_GIDS=8", "SOFTHCA_GIDS=8: '8' is neither a list of link"},
        {"SOFTHCA_PKEYS=ffff,",
         "SOFTHCA_PKEYS=ffff, is not a list of at most 8 keys from 0 to ffff"},
        {"SOFTHCA_PKEYS=10000", "SOFTHCA_PKEYS=10000 is not a list"},
        {"SOFTHCA_PKEYS=1,2,3,4,5,6,7,8,9", "SOFTHCA_PKEYS=1,2,3,4,5,6,7,8,9 is not a list"},
        {"SOFTHCA_MTU=1500", "SOFTHCA_MTU=1500: '1500' is neither 256, 512, 1024, 2048 or 4096"},
        {"SOFTHCA_STATE=softhca0:1=down",
         "SOFTHCA_STATE=softhca0:1=down: 'softhca0:1=down' is neither init, armed or no-lid"},
        {"SOFTHCA_SPEED=edr", "SOFTHCA_SPEED=edr: 'edr' is neither 1x, 2x, 4x, 8x or 12x with"},
        {"SOFTHCA_SPEED=4x", "SOFTHCA_SPEED=4x: '4x' is neither"},
        {"SOFTHCA_SPEED=4xedrs", "SOFTHCA_SPEED=4xedrs: '4xedrs' is neither"},
        {"SOFTHCA_DOWN=softhca1:1", "SOFTHCA_DOWN=softhca1:1: 'softhca1:1' does not begin"},
        {"SOFTHCA_DOWN=softhca0:2", "SOFTHCA_DOWN=softhca0:2: 'softhca0:2' does not begin"},
        {"SOFTHCA_DOWN=softhca0:1,x", "SOFTHCA_DOWN=softhca0:1,x: 'x' does not begin"},
        {"SOFTHCA_DOWN=softhca0:1,", "SOFTHCA_DOWN=softhca0:1,: '' does not begin"},
        {"SOFTHCA_PROFILE=connectx-6",
         "SOFTHCA_PROFILE: 'connectx-6' is neither a file (a path has a '/') nor one of softhca, "
         "connect-ib, connectx-4, connectx-5, "
         "connectx-7, connectx-4-lx-bond, connectx-3, qedr, e810-roce, hns, bnxt, pvrdma, rxe, "
         "e810-iwarp, i40iw, "
         "cxgb4, siw, erdma, efa, mana, hfi1"},
        {"SOFTHCA_PROFILE=qedr,/nonexistent/bundle",
         "SOFTHCA_PROFILE: /nonexistent/bundle: No such file or directory"},
        {"SOFTHCA_PROFILE=/dev/null", "SOFTHCA_PROFILE: /dev/null: not a file"},
        {"SOFTHCA_PROFILE=qedr,", "SOFTHCA_PROFILE: '' is neither a file"},
        {"SOFTHCA_PROFILE=qedr,,rxe", "SOFTHCA_PROFILE: '' is neither a file"},
        {"SOFTHCA_DOWN=softhca0:+1", "SOFTHCA_DOWN=softhca0:+1: 'softhca0:+1' does not begin"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shca_config c;
        char why[400];
        int e = parse(cases[i].entry, NULL, &c, why);

        EXPECT(e == EINVAL, "%s gives %d, not EINVAL", cases[i].entry, e);
        EXPECT(strncmp(why, cases[i].why, strlen(cases[i].why)) == 0, "%s says '%s', not '%s...'",
               cases[i].entry, why, cases[i].why);
        EXPECT(!strchr(why, '\n'), "%s: more than one line", cases[i].entry);
    }
}

static void obeyed(void)
{
    struct shca_config c;
    char why[400];

    EXPECT(parse("SOFTHCA_HCAS=16", "SOFTHCA_PORTS=0x8", &c, why) == 0 && c.hcas == 16 &&
               c.ports == 8,
           "16 HCAs of 8 ports: %s", why);
    EXPECT(parse("SOFTHCA_SEED=18446744073709551615", NULL, &c, why) == 0 && c.seed == UINT64_MAX,
           "the largest seed: %s", why);
    EXPECT(parse("SOFTHCA_LINK=roce", "SOFTHCA_ONLY=1", &c, why) == 0 && c.roce && c.only,
           "roce, only: %s", why);
    EXPECT(parse("SOFTHCA_PORTS=2", "SOFTHCA_DOWN=softhca0:2", &c, why) == 0 && c.down[0] == 4,
           "port 2 down: %s", why);
    EXPECT(parse("SOFTHCA_HCAS=2", "SOFTHCA_RATE=7,softhca1:1=9", &c, why) == 0 &&
               c.port[0][1].rate == 7 && c.port[1][1].rate == 9,
           "two rates: %s", why);
    EXPECT(parse("SOFTHCA_RATE=1000000", "SOFTHCA_SPEED=2xfdr10", &c, why) == 0 &&
               c.port[0][1].width == 16 && c.port[0][1].speed == 8,
           "2xfdr10: %s", why);
    EXPECT(parse("SOFTHCA_FAULT=x", "SOFTHCA_FAULT=y", &c, why) == 0 && strcmp(c.fault, "x") == 0,
           "the first of two counts, as for getenv");
}

/* An empty value is the same as none. */
static void empty_is_unset(void)
{
    struct shca_config unset, empty;
    char why[400], entry[64];

    EXPECT(parse(NULL, NULL, &unset, why) == 0, "no settings at all: %s", why);
    EXPECT(unset.hcas == 1 && unset.ports == 1 && unset.seed == 1 && !unset.fault && !unset.roce,
           "the defaults");
    for (size_t i = 0; i < shca_setting_count; i++) {
        snprintf(entry, sizeof entry, "%s=", shca_settings[i].name);
        EXPECT(parse(entry, NULL, &empty, why) == 0, "%s is refused: %s", entry, why);
        EXPECT(memcmp(&unset, &empty, sizeof unset) == 0, "%s changes something", entry);
    }
}

/* Names that differ only in characters that a socket name can't have are different fabrics. */
static void fabrics_differ(void)
{
    struct shca_config a, b;
    char why[400];

    EXPECT(parse("SOFTHCA_FABRIC=a b", NULL, &a, why) == 0, "%s", why);
    EXPECT(parse("SOFTHCA_FABRIC=ab", NULL, &b, why) == 0, "%s", why);
    EXPECT(strcmp(a.fabric, b.fabric) != 0, "'a b' and 'ab' are one fabric: %s", a.fabric);
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, 1 << 20) : NULL;

    if (text && fread(text, 1, (1 << 20) - 1, f) == 0)
        text[0] = 0;
    if (f)
        fclose(f);
    return text;
}

static bool is_setting(const char *at, size_t n)
{
    for (size_t i = 0; i < shca_setting_count; i++)
        if (strlen(shca_settings[i].name) == n && strncmp(at, shca_settings[i].name, n) == 0)
            return true;
    return false;
}

static void no_unknown_names(const char *file, const char *text)
{
    for (const char *at = strstr(text, "SOFTHCA_"); at; at = strstr(at + 1, "SOFTHCA_")) {
        size_t n = strlen("SOFTHCA_");

        while (isupper((unsigned char)at[n]) || at[n] == '_')
            n++;
        if (n == 8 || at[n] == '*' ||
            (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
            continue;
        EXPECT(is_setting(at, n), "%s speaks of %.*s, which is no setting", file, (int)n, at);
    }
}

/* The README has each line of the table, word for word. */
static void readme_agrees(const char *readme)
{
    for (size_t i = 0; i < shca_setting_count; i++) {
        const struct shca_setting *s = &shca_settings[i];
        char range[64], line[256];

        shca_setting_range(s, range, sizeof range);
        snprintf(line, sizeof line, "\n    %-18s %-25s %s\n", s->name, range, s->doc);
        EXPECT(strstr(readme, line), "contrib/softhca/README lacks the line:%s", line);
    }
    no_unknown_names("README", readme);
}

/* The man page names each setting, with default and range near it. */
static void man_page_agrees(const char *page)
{
    for (size_t i = 0; i < shca_setting_count; i++)
        EXPECT(strstr(page, shca_settings[i].name), "softhca.1 does not name %s",
               shca_settings[i].name);
    no_unknown_names("softhca.1", page);
}

int main(void)
{
    const char *top = getenv("top_srcdir");
    char path[4096];
    char *text;

    found_among_many();
    refused_by_name();
    obeyed();
    empty_is_unset();
    fabrics_differ();
    snprintf(path, sizeof path, "%s/contrib/softhca/README", top ? top : ".");
    text = slurp(path);
    EXPECT(text, "cannot read %s", path);
    if (text)
        readme_agrees(text);
    free(text);
    snprintf(path, sizeof path, "%s/contrib/softhca/softhca.1", top ? top : ".");
    text = slurp(path);
    if (text)
        man_page_agrees(text);
    free(text);
    return failures ? 1 : 0;
}
