/* SPDX-License-Identifier: BSD-3-Clause */
/* Registration of handlers: fixed and automatic indices have exactly the values that the interface
 * promises, and an entry that cannot be registered gives GASNET_ERR_RESOURCE and changes no other
 * entry. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <string.h>

enum { FLAGS = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST };

static int called[256];

static void handler(gex_Token_t token)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_ALL);
    called[info.gex_entry->gex_index]++;
}

static gex_AM_Entry_t entry(gex_AM_Index_t index)
{
    return (gex_AM_Entry_t){index, (gex_AM_Fn_t)handler, FLAGS, 0, NULL, NULL};
}

static int add(gex_AM_Index_t index)
{
    gex_AM_Entry_t one = entry(index);
    int status = gex_EP_RegisterHandlers(job.ep, &one, 1);

    if (index)
        CHECK(one.gex_index == index);
    return status;
}

/* The example of the interface's text: {0, 200, 0, 0} becomes {255, 200, 254, 253}. */
static void the_example(void)
{
    gex_AM_Entry_t table[] = {entry(0), entry(200), entry(0), entry(0)};

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 4) == GASNET_OK);
    CHECK(table[0].gex_index == 255 && table[1].gex_index == 200, "%u and %u", table[0].gex_index,
          table[1].gex_index);
    CHECK(table[2].gex_index == 254 && table[3].gex_index == 253, "%u and %u", table[2].gex_index,
          table[3].gex_index);
}

/* Fixed indices are assigned first, even if they are behind automatic ones in the table. */
static void fixed_before_automatic(void)
{
    gex_AM_Entry_t table[] = {entry(0), entry(252), entry(251), entry(0)};

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 4) == GASNET_OK);
    CHECK(table[0].gex_index == 250, "%u", table[0].gex_index);
    CHECK(table[3].gex_index == 249, "%u", table[3].gex_index);
}

static void refused(void)
{
    gex_AM_Entry_t twice[] = {entry(180), entry(180)};

    gex_System_SetVerboseErrors(0); /* these errors are expected */
    CHECK(add(200) == GASNET_ERR_RESOURCE, "an index that is taken");
    CHECK(add(255) == GASNET_ERR_RESOURCE, "an index that was given away");
    CHECK(add(127) == GASNET_ERR_RESOURCE, "an index of the library");
    CHECK(add(1) == GASNET_ERR_RESOURCE, "an index of the library");
    CHECK(gex_EP_RegisterHandlers(job.ep, twice, 2) == GASNET_ERR_RESOURCE, "twice in one table");
    gex_System_SetVerboseErrors(1);
    CHECK(gex_EP_RegisterHandlers(job.ep, NULL, 0) == GASNET_OK, "an empty table");
    CHECK(add(128) == GASNET_OK, "the lowest index");
}

/* Registers all free indices, then one more. */
static void used_up(void)
{
    gex_AM_Entry_t one = entry(0);
    int before = 255;

    while (gex_EP_RegisterHandlers(job.ep, &one, 1) == GASNET_OK) {
        CHECK(one.gex_index < before && one.gex_index > 128, "%u after %d", one.gex_index, before);
        before = one.gex_index;
        one = entry(0);
        if (before == 129)
            gex_System_SetVerboseErrors(0); /* the next one finds no free index */
    }
    gex_System_SetVerboseErrors(1);
    CHECK(before == 129, "the last was %d", before);
}

/* Each rank calls each of the 128 handlers by its index. */
static void all_are_called(void)
{
    job_barrier();
    for (int index = 128; index <= 255; index++)
        for (gex_Rank_t to = 0; to < job.size; to++)
            gex_AM_RequestShort0(job.tm, to, (gex_AM_Index_t)index, 0);
    for (int index = 128; index <= 255; index++) {
        job_phase("waiting for handler %d", index);
        GASNET_BLOCKUNTIL(called[index] == (int)job.size);
    }
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 0);
    the_example();
    fixed_before_automatic();
    refused();
    used_up();
    all_are_called();
    job_end();
}
