/* SPDX-License-Identifier: BSD-3-Clause */
/* See costs.h. */
#include "config.h"

#include "costs.h"

#include "common/file_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cost {
    const char *name, *unit, *sentence;
    size_t offset;
    uint64_t value;
} table[] = {
#define SIM_COST(field, name, value, unit, sentence)                                               \
    {name, unit, sentence, offsetof(struct sim_costs, field), value},
#include "costs.def"
#undef SIM_COST
};
enum { cost_count = sizeof(table) / sizeof(table[0]) };

static uint64_t *cost_at(struct sim_costs *costs, const struct cost *cost)
{
    return (uint64_t *)(void *)((char *)costs + cost->offset);
}

void sim_costs_default(struct sim_costs *costs)
{
    for (int i = 0; i < cost_count; i++)
        *cost_at(costs, &table[i]) = table[i].value;
}

static const struct cost *find(const char *name)
{
    for (int i = 0; i < cost_count; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

/* An unknown name is not an error: `make bench-scaling` may write more than is needed. */
static bool take_line(struct sim_costs *costs, char *line, char *why, size_t size)
{
    char name[64], unit[16], rest[2];
    double value;
    line[strcspn(line, "#")] = 0;
    int words = sscanf(line, " %63s %lf %15s %1s", name, &value, unit, rest);
    if (words <= 0)
        return true;
    const struct cost *cost = find(name);
    if (words != 3 || !(value >= 0 && value <= 1e15)) {
        snprintf(why, size, "not \"name value unit\" with a value between 0 and 1e15");
        return false;
    }
    if (cost && strcmp(cost->unit, unit) != 0) {
        snprintf(why, size, "%s is in %s, not in %s", name, unit, cost->unit);
        return false;
    }
    if (cost)
        *cost_at(costs, cost) = (uint64_t)value;
    return true;
}

bool sim_costs_read(struct sim_costs *costs, const char *file, char *why, size_t size)
{
    enum { file_max = 1 << 20 };
    char what[200] = "", *next;
    size_t length;
    bool is_right = true;
    unsigned number = 0;
    char *content = tk_file_text(file, file_max, &length, what, sizeof(what));
    if (!content) {
        snprintf(why, size, "costs=%s: %s", file, what);
        return false;
    }
    for (next = content; next && is_right; number++)
        is_right = take_line(costs, strsep(&next, "\n"), what, sizeof(what));
    free(content);
    if (!is_right)
        snprintf(why, size, "costs=%s, line %u: %s", file, number, what);
    return is_right;
}

void sim_costs_print(const struct sim_costs *costs)
{
    for (int i = 0; i < cost_count; i++)
        printf("%-18s %12" PRIu64 " %-3s # %s\n", table[i].name,
               *cost_at((struct sim_costs *)costs, &table[i]), table[i].unit, table[i].sentence);
}
