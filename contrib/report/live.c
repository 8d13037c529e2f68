/* SPDX-License-Identifier: BSD-3-Clause */
/* See live.h: what serve.c asks for. Owns the model and its reader. */
#include "config.h"

#include "contrib/report/live.h"

#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "contrib/report/read.h"
#include "contrib/report/serve.h"
#include "contrib/report/write.h"

enum { EXIT_USAGE = 2, PORT_MAX = 65535 };

struct live {
    struct report_model *model;
    struct report_reader reader;
    bool has_record;
};

static bool take_record(void *owner, char *line, size_t length)
{
    struct live *live = owner;
    if (report_read_line(&live->reader, line, length) == READ_GOOD) {
        live->has_record = true;
        return true;
    }
    fprintf(stderr,
            "gasnet_report: --serve: standard input has a line that is no record of gasnetrun_ibv "
            "--top --json, or there is no memory for it\n");
    return false;
}

static char *write_data(void *owner, size_t *length)
{
    struct live *live = owner;
    char *text = NULL;
    FILE *out = live->has_record ? open_memstream(&text, length) : NULL;
    bool is_written = out && report_write_json(out, live->model, true);
    if (out && fclose(out) == 0 && is_written)
        return text;
    free(text);
    return NULL;
}

static char *write_page(size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    bool is_written = out && report_write_page(out, NULL, PAGE_LIVE);
    if (out && fclose(out) == 0 && is_written)
        return text;
    free(text);
    return NULL;
}

static int serve(struct live *live, uint16_t port)
{
    struct serve_source source = {.policy = report_page_policy(PAGE_LIVE),
                                  .take = take_record,
                                  .data = write_data,
                                  .owner = live};
    char *page = write_page(&source.length);
    int status = EXIT_FAILURE;
    source.page = page;
    if (page)
        status = serve_run(port, &source);
    else
        fprintf(stderr, "gasnet_report: no memory for the report\n");
    free(page);
    return status;
}

int report_live(const char *port)
{
    struct live live = {.model = NULL};
    uint64_t number = 0;
    if (port && !tk_number_digits(port, 0, PORT_MAX, &number)) {
        fprintf(stderr, "gasnet_report: --serve %s: not a port between 0 (any) and %d\n", port,
                PORT_MAX);
        return EXIT_USAGE;
    }
    live.model = report_model_new();
    if (!live.model) {
        fprintf(stderr, "gasnet_report: no memory for the report\n");
        return EXIT_FAILURE;
    }
    report_reader_begin(&live.reader, live.model);
    live.model->top_files = 1;
    int status = serve(&live, (uint16_t)number);
    report_reader_free(&live.reader);
    report_model_free(live.model);
    return status;
}
