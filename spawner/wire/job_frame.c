/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as bytes; see job_frame.h. Owns the memory of jobs that it unpacked. */
#include "config.h"

#include "job_frame.h"
#include "pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A job with the memory that its strings lie in. */
struct unpacked_job {
    struct job job;
    uint8_t payload[];
};

enum { FLAG_LABEL = 1, FLAG_KEEP = 2, FLAG_REPORT = 4 };

static void pack_hosts(const struct job *job, struct bytes *out)
{
    pack_number(out, job->host_count);
    for (uint32_t h = 0; h < job->host_count; h++) {
        pack_string(out, job->hosts[h].name);
        pack_number(out, job->hosts[h].count);
        pack_number(out, job->hosts[h].is_virtual);
    }
}

static void pack_limits(const struct job *job, struct bytes *out)
{
    pack_long(out, job->files.rlim_cur);
    pack_long(out, job->files.rlim_max);
    for (int i = 0; i < JOB_LIMITS; i++)
        pack_long(out, job->soft_limits[i]);
    for (size_t i = 0; i < sizeof(job->ignored) / sizeof(*job->ignored); i++)
        pack_number(out, (uint32_t)job->ignored[i]);
}

void job_frame_pack(const struct job *job, int64_t now, struct bytes *out)
{
    pack_number(out, job->ranks);
    pack_hosts(job, out);
    pack_number(out, job->agent);
    pack_number(out, job->out_degree);
    pack_number(out, job->heartbeat_ms);
    pack_number(out, (job->label ? FLAG_LABEL : 0) | (job->keep ? FLAG_KEEP : 0) |
                         (job->report ? FLAG_REPORT : 0));
    pack_number(out, job->grace_ms);
    pack_number(out, job->start_ms);
    pack_number(out, job->reader_ms);
    pack_number(out, job->connect_ms);
    pack_number(out, job->bind);
    pack_number(out, job->cpus);
    pack_long(out, (uint64_t)(now - job->began));
    pack_limits(job, out);
    pack_string(out, job->nspace);
    pack_string(out, job->session);
    pack_string(out, job->program);
    pack_string(out, job->directory);
    pack_string(out, job->ssh_command);
    pack_string(out, job->ssh_options);
    pack_string(out, job->remote_path);
    pack_string(out, job->master_address);
    pack_strings(out, job->argv);
    pack_strings(out, job->env);
}

static void unpack_hosts(struct unpack *u, struct job *job)
{
    enum { LEAST = 13 }; /* bytes of a host without a name */
    uint32_t next = 0;

    job->host_count = unpack_number(u);
    if (u->bad || job->host_count > (size_t)(u->end - u->at) / LEAST) {
        u->bad = true;
        return;
    }
    job->hosts = calloc((size_t)job->host_count + 1, sizeof(*job->hosts));
    u->bad |= !job->hosts;
    for (uint32_t h = 0; h < job->host_count && !u->bad; h++) {
        struct job_host *host = &job->hosts[h];
        host->name = unpack_string(u);
        host->first = next;
        host->count = unpack_number(u);
        host->is_virtual = unpack_number(u) != 0;
        u->bad |= !*host->name || !host->count || host->count > job->ranks - next;
        next += host->count;
    }
    u->bad |= next != job->ranks || !next;
}

static void unpack_limits(struct unpack *u, struct job *job)
{
    job->files.rlim_cur = unpack_long(u);
    job->files.rlim_max = unpack_long(u);
    for (int i = 0; i < JOB_LIMITS; i++)
        job->soft_limits[i] = unpack_long(u);
    for (size_t i = 0; i < sizeof(job->ignored) / sizeof(*job->ignored); i++)
        job->ignored[i] = (int)unpack_number(u);
    u->bad |= job->ignored[sizeof(job->ignored) / sizeof(*job->ignored) - 1] != 0;
}

static void unpack_into(struct unpack *u, char *text, size_t size)
{
    const char *from = unpack_string(u);
    u->bad |= (size_t)snprintf(text, size, "%s", from) >= size;
}

static const char *unpack_optional(struct unpack *u)
{
    const char *text = unpack_string(u);
    return *text ? text : NULL;
}

static void unpack_words(struct unpack *u, struct job *job)
{
    unpack_into(u, job->nspace, sizeof(job->nspace));
    unpack_into(u, job->session, sizeof(job->session));
    job->program = unpack_string(u);
    job->directory = unpack_optional(u);
    job->ssh_command = unpack_optional(u);
    job->ssh_options = unpack_optional(u);
    job->remote_path = unpack_optional(u);
    job->master_address = unpack_optional(u);
    job->argv = unpack_strings(u);
    job->env = unpack_strings(u);
    u->bad |= u->at != u->end || !*job->nspace || !*job->program || !job->argv || !job->argv[0];
}

static void unpack_job(struct unpack *u, struct job *job, int64_t now)
{
    job->ranks = unpack_number(u);
    unpack_hosts(u, job);
    job->agent = (enum job_agent)unpack_number(u);
    job->out_degree = unpack_number(u);
    job->heartbeat_ms = unpack_number(u);
    uint32_t flags = unpack_number(u);
    job->label = flags & FLAG_LABEL;
    job->keep = flags & FLAG_KEEP;
    job->report = flags & FLAG_REPORT;
    job->grace_ms = unpack_number(u);
    job->start_ms = unpack_number(u);
    job->reader_ms = unpack_number(u);
    job->connect_ms = unpack_number(u);
    job->bind = (enum job_bind)unpack_number(u);
    job->cpus = unpack_number(u);
    job->began = now - (int64_t)unpack_long(u);
    unpack_limits(u, job);
    unpack_words(u, job);
}

struct job *job_frame_unpack(const uint8_t *payload, size_t length, uint32_t host, int64_t now,
                             char *why, size_t size)
{
    struct unpacked_job *copy = malloc(sizeof(*copy) + length);
    if (!copy) {
        snprintf(why, size, "out of memory for a job of %zu bytes", length);
        return NULL;
    }
    copy->job = (struct job){.host = host};
    memcpy(copy->payload, payload, length);
    struct unpack u = {copy->payload, copy->payload + length, false};
    unpack_job(&u, &copy->job, now);
    if (!u.bad && host < copy->job.host_count)
        return &copy->job;
    snprintf(why, size, "the description of the job that came from the launcher is damaged");
    job_frame_free(&copy->job);
    return NULL;
}

void job_frame_free(struct job *job)
{
    free(job->hosts);
    free(job->argv);
    free(job->env);
    free(job); /* the first member of what was allocated */
}
