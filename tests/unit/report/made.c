/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See made.h. */
#include "config.h"

#include "unit.h"
#include "contrib/report/write.h"
#include "made.h"

struct report_model *model;
struct report_reader reader;
static struct findings findings;

void made_begin(void)
{
    model = report_model_new();
    assert_non_null(model);
    report_reader_begin(&reader, model);
}

void made_end(void)
{
    report_reader_free(&reader);
    report_model_free(model);
    findings_free(&findings);
    model = NULL;
}

static enum read_status read_formatted(const char *format, va_list args)
{
    char *line;
    int length = vasprintf(&line, format, args);
    assert_true(length >= 0);
    enum read_status status = report_read_line(&reader, line, (size_t)length);
    free(line);
    return status;
}

enum read_status made_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum read_status status = read_formatted(format, args);
    va_end(args);
    return status;
}

void made_read(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum read_status status = read_formatted(format, args);
    va_end(args);
    if (status != READ_GOOD)
        fail_msg("status %d of a line like '%s'", status, format);
}

void made_rank(uint32_t rank, uint32_t size, const char *counters)
{
    made_read("{\"rank\":%u,\"ranks\":%u,\"host\":\"h%u\",\"pid\":7,\"seconds\":1.000000,\"end\":"
              "\"exit\","
              "\"counters\":{%s},\"sizes\":{}}",
              rank, size, rank / 2, counters);
}

void made_event(uint32_t rank, double begin, double length, const char *operation, const char *more)
{
    enum tk_trace_op op = 0;
    for (unsigned i = 0; i < tk_trace_ops; i++)
        if (strcmp(trace_op_name((enum tk_trace_op)i), operation) == 0)
            op = (enum tk_trace_op)i;
    assert_string_equal(trace_op_name(op), operation);
    made_read("%.9f %u 0 %c %s ns=%.0f%s", 1 + begin / 1e6, rank, trace_op_letter(op), operation,
              length * 1e3, more);
}

const struct finding *made_finding(const char *rule)
{
    findings_free(&findings);
    assert_true(findings_of(model, &findings));
    for (size_t i = 0; i < findings.count; i++)
        if (strcmp(findings.list[i].rule, rule) == 0)
            return &findings.list[i];
    return NULL;
}

unsigned made_findings(void)
{
    findings_free(&findings);
    assert_true(findings_of(model, &findings));
    return (unsigned)findings.count;
}

char *made_json(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(report_write_json(out, model, false));
    fclose(out);
    return text;
}
