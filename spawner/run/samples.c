/* SPDX-License-Identifier: BSD-3-Clause */
/* See samples.h. Owns the file. */
#include "config.h"

#include "samples.h"

#include "spawner/head/collect.h"
#include "spawner/util/log.h"
#include "top_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *open_file(const char *parent)
{
    int fd = collect_file(parent);
    FILE *file = fd >= 0 ? fdopen(fd, "w+e") : NULL;
    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* Keeps the first record, the third, and so on. */
static FILE *thinned(const struct samples *s)
{
    char *line = NULL;
    size_t size = 0;
    FILE *to = open_file(s->parent);
    rewind(s->file);
    for (unsigned i = 0; to && getline(&line, &size, s->file) > 0; i++)
        if (i % 2 == 0)
            fputs(line, to);
    free(line);
    return to;
}

/* False: no file. */
static bool make_space(struct samples *s)
{
    if (s->file && ftell(s->file) < s->full)
        return true;
    FILE *to = s->file ? thinned(s) : open_file(s->parent);
    if (!to)
        return false;
    if (s->file) {
        fclose(s->file);
        s->period_ms *= 2;
    }
    s->file = to;
    return true;
}

/* Before ranks have come to gex_Client_Init there is nothing to show. */
static bool has_counters(const struct top_sample *sample)
{
    for (uint32_t i = 0; i < sample->job.ranks; i++)
        if (sample->ranks[i].has_counters)
            return true;
    return false;
}

static bool write_record(struct samples *s, const struct top_sample *sample)
{
    if (!make_space(s))
        return false;
    top_json(s->file, sample);
    return fflush(s->file) == 0 && !ferror(s->file);
}

/* The ranks behind the head of an answer need not be aligned. */
int64_t samples_take(void *samples, const uint8_t *answer)
{
    struct samples *s = samples;
    struct top_sample sample;
    memcpy(&sample.job, answer, sizeof(sample.job));
    sample.ranks = calloc(sample.job.ranks, sizeof(*sample.ranks));
    bool is_good = sample.ranks != NULL;
    if (is_good) {
        memcpy(sample.ranks, answer + sizeof(sample.job), sample.job.ranks * sizeof(*sample.ranks));
        is_good = !has_counters(&sample) || write_record(s, &sample);
    }
    free(sample.ranks);
    if (is_good)
        return s->period_ms;
    log_error("cannot keep samples for the report in a file in %s: the rest of the job has none",
              s->parent);
    return 0;
}

void samples_close(struct samples *s)
{
    if (s->file)
        fclose(s->file);
    s->file = NULL;
}
