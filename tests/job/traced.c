/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNETT_TRACE_... in programs: lines, masks, lines of source. With a traced library the file has
 * the lines that trace.sh looks for; with another library nothing happens. */
#include "config.h"

#include "job.h"

#include "gasnet_coll.h"
#include "gasnet_ratomic.h"
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

enum { ASKED = 200, ANSWERED };

static int answers;

static void asked(gex_Token_t token)
{
    GASNETT_TRACE_SETSOURCELINE("asked.c", 1);
    CHECK(gex_AM_ReplyShort0(token, ANSWERED, 0) == 0);
}

static void answered(gex_Token_t token)
{
    (void)token;
    GASNETT_TRACE_SETSOURCELINE("answered.c", 2);
    answers++;
}

/* A handler that sets its source line must not change the line of the interrupted call, or of later
 * calls. */
static void interrupted_at(const char *file, unsigned line)
{
    gex_Rank_t other = (job.rank + 1) % job.size;
    GASNETT_TRACE_SETSOURCELINE(file, line);
    CHECK(gex_AM_RequestShort0(job.tm, other, ASKED, 0) == 0);
    GASNET_BLOCKUNTIL(answers == 1);
    gex_Coll_BarrierBlocking(job.tm, 0);
    int sum = 0, one = 1;
    gex_Event_Wait(gex_Coll_ReduceToAllNB(job.tm, &sum, &one, GEX_DT_I32, sizeof(sum), 1,
                                          GEX_OP_ADD, NULL, NULL, 0));
    gasnet_coll_gather_all(job.tm, job.base + 1024, &one, sizeof(one),
                           GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC | GASNET_COLL_LOCAL);
    gex_TM_t team;
    gex_TM_Split(&team, job.tm, 0, (int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Destroy(team, NULL, GEX_FLAG_GLOBALLY_QUIESCED);
    gex_AD_t ad;
    gex_AD_Create(&ad, job.tm, GEX_DT_I32, GEX_OP_INC, 0);
    gex_AD_Destroy(ad);
    gasnet_barrier_notify(0, 0);
    while (gasnet_barrier_try(0, 0) == GASNET_ERR_NOT_READY)
        continue;
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
    gex_AM_Entry_t table[] = {
        {ASKED, (gex_AM_Fn_t)asked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "asked"},
        {ANSWERED, (gex_AM_Fn_t)answered, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL,
         "answered"}};
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    job_barrier();
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
    interrupted_at("caller.c", 88);
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
