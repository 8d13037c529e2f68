/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations of batch systems; see batch.h. Owns nothing, no lock. */
#include "config.h"

#include "batch.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Space for one host name while brackets are expanded. */
enum { NAME_ROOM = HOST_NAME_LONGEST + 1 };

/* Slurm's count of tasks, "2(x3),1", read host by host. */
struct task_counts {
    const char *text; /* NULL: there is none */
    const char *at;
    uint32_t count, left; /* of the group that is being read */
};

struct slurm_reader {
    struct host_list *list;
    struct task_counts tasks;
    char name[NAME_ROOM];
    char *why;
    size_t size;
};

static bool batch_wrong(char *why, size_t size, const char *variable, const char *value)
{
    snprintf(why, size,
             "%s='%.300s' is not what its batch system writes; name the hosts by -H or --nodefile",
             variable, value);
    return false;
}

/* The number of the next host; 0 if there is no next host, or the text is invalid. */
static uint32_t next_tasks(struct task_counts *t)
{
    if (t->left == 0) {
        const char *end;
        t->count = host_number(t->at, HOST_SLOTS_MAX, &end);
        t->left = 1;
        if (!strncmp(end, "(x", 2)) {
            t->left = host_number(end + 2, HOST_COUNT_MAX, &end);
            if (*end++ != ')')
                return 0;
        }
        if (*end && *end != ',')
            return 0;
        t->at = *end ? end + 1 : end;
    }
    if (t->left == 0)
        return 0;
    t->left--;
    return t->count;
}

static bool slurm_add(struct slurm_reader *r, size_t length)
{
    uint32_t slots = r->tasks.text ? next_tasks(&r->tasks) : 0;
    if (r->tasks.text && !slots)
        return batch_wrong(r->why, r->size, "SLURM_TASKS_PER_NODE", r->tasks.text);
    return host_list_add(r->list, r->name, length, slots, false, r->why, r->size);
}

static bool slurm_expand(struct slurm_reader *r, size_t used, const char *rest, size_t length);

/* One range of a bracket, "3" or "03-12": `text` is what lies before the next comma or the bracket.
 */
static bool slurm_range(struct slurm_reader *r, size_t used, const char *text, size_t text_length,
                        const char *rest, size_t length)
{
    const char *dash = memchr(text, '-', text_length);
    size_t width = dash ? (size_t)(dash - text) : text_length;
    char *end;
    if (!isdigit((unsigned char)*text) || width > 9)
        return false;
    unsigned long first = strtoul(text, &end, 10), last = first;
    if (end != text + width || (dash && !isdigit((unsigned char)dash[1])))
        return false;
    if (dash) {
        last = strtoul(dash + 1, &end, 10);
        if (end != text + text_length || last < first || last - first >= HOST_COUNT_MAX)
            return false;
    }
    for (unsigned long n = first; n <= last; n++) {
        size_t room = sizeof(r->name) - used;
        int digits = snprintf(r->name + used, room, "%0*lu", (int)width, n);
        if ((size_t)digits >= room || !slurm_expand(r, used + (size_t)digits, rest, length))
            return false;
    }
    return true;
}

/* Copies plain text to the name, expands the first bracket by itself and the rest for each of its
 * values. `rest` is one item of the list, `length` long. */
static bool slurm_expand(struct slurm_reader *r, size_t used, const char *rest, size_t length)
{
    const char *open = memchr(rest, '[', length);
    size_t plain = open ? (size_t)(open - rest) : length;
    if (used + plain >= sizeof(r->name) || memchr(rest, ']', plain))
        return false;
    memcpy(r->name + used, rest, plain);
    used += plain;
    if (!open)
        return used > 0 && slurm_add(r, used);
    const char *close = memchr(open, ']', length - plain);
    if (!close)
        return false;
    const char *after = close + 1;
    for (const char *at = open + 1; at <= close;) {
        size_t n = strcspn(at, ",]");
        if (!slurm_range(r, used, at, n, after, length - (size_t)(after - rest)))
            return false;
        at += n + 1;
    }
    return true;
}

/* The length of the first item: a comma inside of brackets does not end it. */
static size_t slurm_item(const char *text)
{
    const char *at = text;
    for (bool is_inside = false; *at && (is_inside || *at != ','); at++)
        is_inside = *at == '[' || (is_inside && *at != ']');
    return (size_t)(at - text);
}

bool batch_read_slurm(struct host_list *list, const char *names, const char *tasks, char *why,
                      size_t size)
{
    struct slurm_reader r = {
        .list = list, .tasks = {.text = tasks, .at = tasks}, .why = why, .size = size};
    why[0] = 0;
    for (const char *at = names; *at;) {
        size_t n = slurm_item(at);
        if (!slurm_expand(&r, 0, at, n))
            return why[0] ? false : batch_wrong(why, size, "SLURM_JOB_NODELIST", names);
        at += n + (at[n] == ',');
    }
    if (tasks && (r.tasks.left || *r.tasks.at))
        return batch_wrong(why, size, "SLURM_TASKS_PER_NODE", tasks);
    return true;
}

/* The first word of each line is a host with one slot. */
static bool take_slot_line(struct host_list *list, const char *line, const char *place, char *why,
                           size_t size)
{
    (void)place;
    return host_list_add(list, line, strcspn(line, " \t"), 1, false, why, size);
}

/* SGE: host, slots, queue, processors. */
static bool take_sge_line(struct host_list *list, const char *line, const char *place, char *why,
                          size_t size)
{
    size_t length = strcspn(line, " \t");
    const char *end;
    uint32_t slots =
        host_number(line + length + strspn(line + length, " \t"), HOST_SLOTS_MAX, &end);
    if (slots && (!*end || isspace((unsigned char)*end)))
        return host_list_add(list, line, length, slots, false, why, size);
    snprintf(why, size, "%s: '%.300s' is not host and slots, as in the PE_HOSTFILE of SGE", place,
             line);
    return false;
}

/* Words of a value by blanks. With `has_counts` each second one is the number of slots. */
static bool read_words(struct host_list *list, const char *variable, const char *value,
                       bool has_counts, char *why, size_t size)
{
    const char *at = value + strspn(value, " ");
    while (*at) {
        size_t length = strcspn(at, " ");
        const char *name = at, *end = at + length;
        uint32_t slots = 1;
        if (has_counts)
            slots = host_number(end + strspn(end, " "), HOST_SLOTS_MAX, &end);
        if (!slots || (*end && *end != ' '))
            return batch_wrong(why, size, variable, value);
        if (!host_list_add(list, name, length, slots, false, why, size))
            return false;
        at = end + strspn(end, " ");
    }
    return true;
}

static const char *batch_value(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static void name_origin(struct host_list *list, const char *system, const char *variable)
{
    list->is_allocation = true;
    snprintf(list->origin, sizeof(list->origin), "%s of the %s job", variable, system);
}

static bool read_lsf(struct host_list *list, const char *value, char *why, size_t size)
{
    bool has_counts = batch_value("LSB_MCPU_HOSTS") != NULL;
    const char *variable = has_counts ? "LSB_MCPU_HOSTS" : "LSB_HOSTS";
    name_origin(list, "LSF", variable);
    return read_words(list, variable, value, has_counts, why, size);
}

bool batch_read(struct host_list *list, char *why, size_t size)
{
    const char *value;
    if ((value = batch_value("SLURM_JOB_NODELIST"))) {
        name_origin(list, "Slurm", "SLURM_JOB_NODELIST");
        return batch_read_slurm(list, value, batch_value("SLURM_TASKS_PER_NODE"), why, size);
    }
    if ((value = batch_value("PBS_NODEFILE"))) {
        name_origin(list, "PBS", "PBS_NODEFILE");
        return host_list_each_line(list, value, "PBS_NODEFILE", take_slot_line, why, size);
    }
    if ((value = batch_value("LSB_MCPU_HOSTS")) || (value = batch_value("LSB_HOSTS")))
        return read_lsf(list, value, why, size);
    if ((value = batch_value("PE_HOSTFILE"))) {
        name_origin(list, "SGE", "PE_HOSTFILE");
        return host_list_each_line(list, value, "PE_HOSTFILE", take_sge_line, why, size);
    }
    if ((value = batch_value("COBALT_NODEFILE"))) {
        name_origin(list, "Cobalt", "COBALT_NODEFILE");
        return host_list_read_file(list, value, "COBALT_NODEFILE", why, size);
    }
    return true;
}
