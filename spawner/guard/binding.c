/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs the ranks of this host are bound to: the plan, and the line about it. Fills the
 * guard's plan; no lock. */
#include "config.h"

#include "guard_private.h"
#include "spawner/util/byte_queue.h"

#include <stdio.h>
#include <string.h>

/* The head cuts longer lines. */
enum { NOTE_VERBOSITY = 1, NOTE_LENGTH = 600 };

/* All virtual hosts share one machine, on which each rank of the job needs CPUs of its own. */
static uint32_t ranks_of_machine(const struct guard *g)
{
    return g->job->hosts[g->job->host].is_virtual ? g->job->ranks : g->count;
}

static uint32_t index_of(const struct guard *g, uint32_t rank)
{
    return g->job->hosts[g->job->host].is_virtual ? rank : rank - g->first;
}

static void send_note(struct guard *g, struct bytes *line)
{
    wire_send(&g->control, WIRE_NOTE, NOTE_VERBOSITY, 0, bytes_front(line), line->length);
    bytes_consume(line, line->length);
}

/* "n1: rank 2 on CPU 0, rank 3 on CPU 1", as many lines as that needs. */
static void note_plan(struct guard *g)
{
    const char *host = g->job->hosts[g->job->host].name;
    char text[500], cpus[150];
    struct bytes line = {0};

    for (uint32_t i = 0; i < g->count; i++) {
        bind_describe(&g->bind, index_of(g, g->first + i), cpus, sizeof(cpus));
        snprintf(text, sizeof(text), "%s%srank %u on CPU %s", line.length ? "" : host,
                 line.length ? ", " : ": ", g->first + i, cpus);
        bytes_append(&line, text, strlen(text));
        if (line.length > NOTE_LENGTH || i + 1 == g->count)
            send_note(g, &line);
    }
    bytes_free(&line);
}

bool guard_plan_binding(struct guard *g)
{
    char why[400];
    const struct job *job = g->job;

    if (job->bind == JOB_BIND_NONE)
        return true;
    if (bind_load(&g->bind, why, sizeof(why)) &&
        bind_make(&g->bind, job->bind, job->cpus, ranks_of_machine(g), why, sizeof(why))) {
        note_plan(g);
        return true;
    }
    guard_report_failure(g, "cannot bind the processes: %s", why);
    return false;
}

void guard_bind_rank(const struct guard *g, uint32_t rank, struct child_image *image)
{
    if (g->job->bind == JOB_BIND_NONE)
        return;
    image->bind = &g->bind;
    image->bind_index = index_of(g, rank);
}
