/* SPDX-License-Identifier: BSD-3-Clause */
/* The shape of the fake machine, read once from SOFTHCA_* when the program first asks for devices.
 * Owns shca_config; written under pthread_once, read-only afterwards. */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "names.h"
#include "shca.h"

struct shca_config shca_config;

static int config_status;

void shca_say(const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n = snprintf(line, sizeof line, "softhca: ");

    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    /* One write: lines of several processes do not mix. */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

static uint32_t number(const char *name, uint32_t standard, uint32_t low, uint32_t high)
{
    const char *text = getenv(name);
    char *end;
    unsigned long long value;

    if (!text || !*text)
        return standard;
    errno = 0;
    value = strtoull(text, &end, 0);
    if (errno == 0 && *end == 0 && isdigit((unsigned char)*text) && value >= low && value <= high)
        return (uint32_t)value;
    shca_say("%s=%s is not a number from %u to %u", name, text, low, high);
    config_status = EINVAL;
    return standard;
}

static void load_seed(void)
{
    const char *text = getenv("SOFTHCA_SEED");
    char *end;

    shca_config.seed = 1;
    if (!text || !*text)
        return;
    errno = 0;
    shca_config.seed = strtoull(text, &end, 0);
    if (errno == 0 && *end == 0 && isdigit((unsigned char)*text))
        return;
    shca_say("SOFTHCA_SEED=%s is not a number from 0 to 2^64-1", text);
    config_status = EINVAL;
}

static void load_faults(void)
{
    const char *text = getenv("SOFTHCA_FAULT");
    char why[400];

    if (!text || !*text || shca_fault_set(text, why, sizeof why) == 0)
        return;
    shca_say("SOFTHCA_FAULT: %s", why);
    config_status = EINVAL;
}

static bool choice(const char *name, const char *off, const char *on)
{
    const char *text = getenv(name);

    if (!text || !*text || strcmp(text, off) == 0)
        return false;
    if (strcmp(text, on) == 0)
        return true;
    shca_say("%s=%s is neither %s nor %s", name, text, off, on);
    config_status = EINVAL;
    return false;
}

/* SOFTHCA_DOWN=softhca0:1,softhca1:2: these ports are down from the start. */
static void load_down(void)
{
    const char *text = getenv("SOFTHCA_DOWN"), *at = text;
    int hca, port, used;

    while (at && *at) {
        used = 0;
        if (sscanf(at, "softhca%2d:%2d%n", &hca, &port, &used) != 2 || hca < 0 || port < 1 ||
            hca >= shca_config.hcas || port > shca_config.ports || (at[used] && at[used] != ',')) {
            shca_say(
                "SOFTHCA_DOWN=%s: '%s' does not begin with softhcaN:P, N below %d and P from 1 "
                "to %d",
                text, at, shca_config.hcas, shca_config.ports);
            config_status = EINVAL;
            return;
        }
        shca_config.down[hca] |= 1u << port;
        at += used + (at[used] == ',');
    }
}

static void load_limits(void)
{
    struct shca_config *c = &shca_config;

    c->max_qp = number("SOFTHCA_MAX_QP", SHCA_QPS - 16, 1, SHCA_QPS - 16);
    c->max_qp_wr = number("SOFTHCA_MAX_QP_WR", SHCA_WR_MAX, 1, SHCA_WR_MAX);
    c->max_sge = number("SOFTHCA_MAX_SGE", SHCA_MAX_SGE, 1, SHCA_MAX_SGE);
    c->max_inline = number("SOFTHCA_MAX_INLINE", 512, 0, 4096);
    c->max_cq = number("SOFTHCA_MAX_CQ", SHCA_CQS, 1, SHCA_CQS);
    c->max_cqe = number("SOFTHCA_MAX_CQE", 4194303, 1, 4194303);
    c->max_mr = number("SOFTHCA_MAX_MR", SHCA_MRS - 1, 1, SHCA_MRS - 1);
    c->max_pd = number("SOFTHCA_MAX_PD", 65536, 1, 1u << 24);
    c->max_msg = number("SOFTHCA_MAX_MSG", SHCA_MSG_MAX, 4096, 1u << 31);
}

static void load(void)
{
    shca_config.hcas = (int)number("SOFTHCA_HCAS", 1, 1, SHCA_MAX_HCA);
    shca_config.ports = (int)number("SOFTHCA_PORTS", 1, 1, SHCA_MAX_PRT);
    shca_config.roce = choice("SOFTHCA_LINK", "ib", "roce");
    shca_config.only = choice("SOFTHCA_ONLY", "0", "1");
    load_down();
    load_limits();
    shca_name_fabric(getenv("SOFTHCA_FABRIC"), (unsigned)geteuid(), shca_config.fabric);
    load_seed();
    load_faults();
}

int shca_config_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return config_status;
}
