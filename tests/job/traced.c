/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs do by GASNETT_TRACE_...: lines, masks, lines of source. In a library with traces
 * the file has what trace.sh looks for; in one without, nothing happens. */
#include "config.h"

#include "job.h"

#include "gasnet_tools.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 65536, PUTS = 20 };

static void puts_at(const char *file, unsigned line, int count)
{
    char bytes[8] = {0};
    GASNETT_TRACE_SETSOURCELINE(file, line);
    for (int i = 0; i < count; i++)
        gex_RMA_PutBlocking(job.tm, (job.rank + 1) % job.size,
                            job_remote((job.rank + 1) % job.size, 0), bytes, sizeof(bytes), 0);
}

__attribute__((unused)) static void evaluated(int *count)
{
    (*count)++;
}

int main(int argc, char **argv)
{
    const char *file = NULL;
    unsigned line = 0;
    int count = 0;
    job_start(&argc, &argv, SEGMENT);
    int is_on = GASNETT_TRACE_ENABLED;
    const char *wanted = getenv("TRACED_ON");
    if (!wanted || strcmp(wanted, "any") != 0)
        CHECK(is_on == (wanted && strcmp(wanted, "1") == 0));
    puts_at("first.c", 11, PUTS);
    /* A name that changes in place is another file. */
    char name[] = "xsecond.c";
    name[0] = '_';
    puts_at(name, 22, PUTS);
    memset(name, 'z', sizeof(name) - 1);
    GASNETT_TRACE_FREEZESOURCELINE();
    puts_at("frozen.c", 33, PUTS);
    GASNETT_TRACE_UNFREEZESOURCELINE();
    GASNETT_TRACE_SETSOURCELINE("third.c", 44);
    GASNETT_TRACE_GETSOURCELINE(&file, &line);
    CHECK(!is_on || (line == 44 && strcmp(file, "third.c") == 0));
    GASNETT_TRACE_PRINTF("text \"%d\"\n", 5);
    GASNETT_TRACE_SETMASK("G");
    CHECK(strcmp(GASNETT_TRACE_GETMASK(), is_on ? "G" : "") == 0);
    puts_at("masked.c", 55, PUTS);
    GASNETT_TRACE_PRINTF("masked %d", (evaluated(&count), 1));
    CHECK(count == 0, "what is not printed is not evaluated");
    GASNETT_TRACE_PRINTF_FORCE("forced %d", (evaluated(&count), 1));
    CHECK(count == is_on);
    GASNETT_TRACE_SETMASK("^");
    GASNETT_TRACE_SET_TRACELOCAL(0);
    CHECK(GASNETT_TRACE_GET_TRACELOCAL() == 0);
    puts_at("other.c", 66, PUTS);
    job_barrier();
    if (getenv("TRACED_ABORT"))
        abort();
    job_end();
}
