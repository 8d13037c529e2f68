/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The targets of the fuzzers: settings, lines of the kernel's socket table, rules of faults,
 * requests of the softhca command, and bundles. Each must not crash and must keep the promises of
 * its header; abort() reports that it did not. Owns nothing but the device that the last one opens.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/control.h"
#include "fault/fault.h"
#include "fuzz/targets.h"
#include "support/bundle.h"
#include "support/registry_name.h"
#include "support/softhca_settings.h"
#include "verbs/verbs.h"

enum {
    text_max = 4096,
    parts = 64,
};

static void must(bool promise)
{
    if (!promise)
        abort();
}

/* Input as a string; longer than any that the kernel or the command would pass is cut. */
static void as_text(const uint8_t *data, size_t size, char text[text_max + 1])
{
    size = size < text_max ? size : text_max;
    memcpy(text, data, size);
    text[size] = 0;
}

static bool one_line(const char *why, size_t room)
{
    size_t n = strnlen(why, room);

    return n > 0 && n < room;
}

/* ---- settings: lines NAME=VALUE are the environment ---- */

static bool in_range(const struct shca_setting *s, const struct shca_config *c)
{
    const void *field = (const char *)c + s->offset;
    uint64_t value =
        s->size == sizeof(uint64_t) ? *(const uint64_t *)field : *(const uint32_t *)field;

    return value >= s->low && value <= s->high;
}

static void run_settings(const uint8_t *data, size_t size)
{
    char text[text_max + 1], why[400] = "", *env[parts + 1], *next = text;
    struct shca_config c;
    int n = 0;

    as_text(data, size, text);
    while (n < parts && (env[n] = strsep(&next, "\n")))
        n++;
    env[n] = NULL;
    if (shca_settings_parse(env, &c, why, sizeof why) != 0) {
        must(one_line(why, sizeof why));
        return;
    }
    for (size_t i = 0; i < shca_setting_count; i++)
        must(shca_settings[i].kind != SHCA_IS_NUMBER || in_range(&shca_settings[i], &c));
    must(strnlen(c.fabric, sizeof c.fabric) < sizeof c.fabric);
}

/* ---- registry: lines of /proc/net/unix ---- */

/* The parsed data must equal the line, so that two readers never disagree. */
static void check_name(const char *line)
{
    struct shca_name name;
    unsigned layout;
    char again[200];

    if (shca_name_parse(line, &name)) {
        must(name.slot < SHCA_MEMBERS && name.pid != 0 && name.fd >= 0);
        shca_name_segment(again, sizeof again, &name);
        must(strcmp(strstr(line, " @softhca") + 2, again) == 0);
        must(!shca_name_parse_foreign(line, &name, &layout));
    } else if (shca_name_parse_foreign(line, &name, &layout)) {
        must(layout != SHCA_LAYOUT);
    }
}

static void run_registry(const uint8_t *data, size_t size)
{
    char text[text_max + 1], ours[text_max + 64], *next = text, *line;

    as_text(data, size, text);
    while ((line = strsep(&next, "\n"))) {
        check_name(line);
        /* The corpus must not know the number of the layout. */
        snprintf(ours, sizeof ours, "0: 2 0 0 2 1 1 @softhca%u.%s", SHCA_LAYOUT, line);
        check_name(ours);
    }
}

/* ---- rules of faults ---- */

static void run_fault(const uint8_t *data, size_t size)
{
    static struct shca_fault_rules rules;
    char text[text_max + 1], why[400] = "";

    as_text(data, size, text);
    if (!shca_fault_parse(text, &rules, why, sizeof why)) {
        must(one_line(why, sizeof why));
        return;
    }
    must(rules.n <= SHCA_FAULT_RULES);
    for (unsigned i = 0; i < rules.n; i++) {
        const struct shca_fault_rule *r = &rules.rule[i];

        must(r->kind < SHCA_FAULT_KINDS && r->low <= r->high && r->ppb <= 1000000000);
        must(r->at + r->length <= SHCA_FAULT_TEXT);
    }
}

/* ---- requests to a member ---- */

static void join_fabric(void)
{
    char fabric[32];
    struct ibv_device **list;

    snprintf(fabric, sizeof fabric, "fuzz-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    setenv("SOFTHCA_HCAS", "2", 1);
    list = ibv_get_device_list(NULL);
    must(list && ibv_open_device(list[0]));
    ibv_free_device_list(list);
}

static void run_control(const uint8_t *data, size_t size)
{
    static char reply[SHCA_REPLY_MAX];
    /* Buffer sizes down to the smallest that can hold an answer. */
    size_t room = size % 3 ? sizeof reply : 16;

    memset(reply, 'x', sizeof reply);
    shca_control((const char *)data, size, reply, room);
    must(strnlen(reply, room) < room);
    must(strncmp(reply, "ok", 2) == 0 || strncmp(reply, "error ", 6) == 0);
}

/* ---- bundles ---- */

static void check_device(const struct shca_profile *p)
{
    must(p->ports >= 1 && p->ports <= SHCA_MAX_PRT);
    must(p->mtu >= IBV_MTU_256 && p->mtu <= IBV_MTU_4096 && p->ib_mtu <= IBV_MTU_4096);
    must(p->max_sge >= 1 && p->max_sge <= SHCA_MAX_SGE && p->max_sge_rd <= SHCA_MAX_SGE);
    must(p->max_qp_wr >= 1 && p->inline_rc <= 4096 && p->inline_ud <= 4096);
    must(p->inline_least <= INT32_MAX && p->rounds_qp <= 2 && p->gid_types >= 1 &&
         p->gid_types <= 3);
    must(strnlen(p->device, SHCA_BUNDLE_NAME) < SHCA_BUNDLE_NAME);
    must(strnlen(p->firmware, SHCA_BUNDLE_NAME) < SHCA_BUNDLE_NAME);
}

static void run_bundle(const uint8_t *data, size_t size)
{
    static struct shca_bundle b;
    char why[160] = "";

    b.n = 0;
    if (shca_bundle_parse((const char *)data, size, &b, why, sizeof why) != 0) {
        must(one_line(why, sizeof why) && !strchr(why, '\n'));
        return;
    }
    must(b.n >= 1 && b.n <= SHCA_MAX_HCA);
    for (int i = 0; i < b.n; i++)
        check_device(&b.device[i]);
}

const struct fuzz_target fuzz_targets[] = {
    {"settings", NULL, run_settings}, {"registry", NULL, run_registry},
    {"fault", NULL, run_fault},       {"control", join_fabric, run_control},
    {"bundle", NULL, run_bundle},     {NULL, NULL, NULL}};

const struct fuzz_target *fuzz_target_find(const char *name)
{
    for (const struct fuzz_target *t = fuzz_targets; name && t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    fprintf(stderr, "FUZZ_TARGET=%s is none of settings, registry, fault, control, bundle\n",
            name ? name : "");
    exit(2);
}
