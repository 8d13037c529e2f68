/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of files into the model: each line is recognized by how it begins, so the kinds of files
 * need no names and may be mixed. */
#ifndef TRUNKLINE_REPORT_READ_H
#define TRUNKLINE_REPORT_READ_H

#include <stdio.h>

#include "contrib/report/json.h"
#include "contrib/report/model.h"

enum read_status {
    READ_GOOD,
    READ_FOREIGN, /* not a line of these files, or damaged */
    READ_RANGE,   /* a number of a rank or a time is out of range */
    READ_NO_MEMORY
};

struct report_reader {
    struct report_model *model;
    struct json_tree tree;
    int64_t text_rank; /* whose statistics the lines of text belong to; -1: none */
    bool is_in_summary;
    /* of this file */
    struct report_sample sample; /* of the record of --top that is being read */
    const char *name;
    uint64_t line;
    bool has_stats, has_trace, has_top;
};

void report_reader_begin(struct report_reader *reader, struct report_model *model);

/* Changes the line, which need not end with a zero byte. */
enum read_status report_read_line(struct report_reader *reader, char *line, size_t length);

/* One file, whole. False: one line is printed. "-" is standard input. */
bool report_read_file(struct report_reader *reader, const char *name);
void report_reader_free(struct report_reader *reader);

/* The parts of report_read_line(). */
enum read_status report_read_stats(struct report_reader *reader, const struct json_node *root);
enum read_status report_read_top(struct report_reader *reader, const struct json_node *root);
enum read_status report_read_trace(struct report_reader *reader, char *line, size_t length);
enum read_status report_read_text(struct report_reader *reader, struct trace_word line);

#endif
