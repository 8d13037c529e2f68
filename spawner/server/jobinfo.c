/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys a rank may ask PMIx about its job. From the node map and the process map libpmix derives
 * sizes, local ranks, peers and host names by itself; the rest is set here. Owns nothing, takes no
 * lock. */
#include "config.h"

#include "server_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { JOB_KEYS = 9 };

/* "0,1,2,...": the ranks of the only host. Caller frees; NULL without memory. */
static char *rank_list(uint32_t ranks)
{
    enum { RANK_TEXT_MAX = 11 }; /* ten digits and a comma */
    char *text = malloc((size_t)ranks * RANK_TEXT_MAX + 1);
    if (!text)
        return NULL;
    size_t used = 0;
    for (uint32_t r = 0; r < ranks; r++)
        used += (size_t)sprintf(text + used, r ? ",%u" : "%u", r);
    return text;
}

/* Once data of a rank are given, libpmix derives nothing more for it: all keys must be set. */
static void load_rank(pmix_info_t *slot, const struct server_job *job, uint32_t rank)
{
    enum { KEYS = 7 };
    uint32_t zero = 0;
    uint16_t local =
        (uint16_t)rank; /* the type PMIx gives local ranks; beyond 65535 no host goes */
    PMIX_INFO_LOAD(slot, PMIX_PROC_DATA, NULL, PMIX_DATA_ARRAY);
    pmix_data_array_t *array;
    PMIX_DATA_ARRAY_CREATE(array, KEYS, PMIX_INFO);
    pmix_info_t *keys = array->array;
    PMIX_INFO_LOAD(&keys[0], PMIX_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&keys[1], PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&keys[2], PMIX_APPNUM, &zero, PMIX_UINT32);
    PMIX_INFO_LOAD(&keys[3], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&keys[4], PMIX_NODE_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&keys[5], PMIX_NODEID, &zero, PMIX_UINT32);
    PMIX_INFO_LOAD(&keys[6], PMIX_HOSTNAME, job->host, PMIX_STRING);
    slot->value.type = PMIX_DATA_ARRAY;
    slot->value.data.darray = array;
}

static void load_job(pmix_info_t *info, const struct server_job *job, const char *nodes,
                     const char *ranks)
{
    uint32_t one = 1, n = job->ranks;
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, nodes, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, ranks, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[2], PMIX_UNIV_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[3], PMIX_JOB_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[4], PMIX_MAX_PROCS, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[5], PMIX_JOBID, job->nspace, PMIX_STRING);
    PMIX_INFO_LOAD(&info[6], PMIX_JOB_NUM_APPS, &one, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[7], PMIX_TMPDIR, job->session, PMIX_STRING);
    PMIX_INFO_LOAD(&info[8], PMIX_NSDIR, job->session, PMIX_STRING);
}

pmix_status_t server_register_job(const struct server_job *job)
{
    char *list = rank_list(job->ranks), *nodes = NULL, *ranks = NULL;
    if (!list)
        return PMIX_ERR_NOMEM;
    pmix_status_t rc = PMIx_generate_regex(job->host, &nodes);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_generate_ppn(list, &ranks);
    free(list);
    if (rc != PMIX_SUCCESS)
        return rc;

    size_t count = JOB_KEYS + (size_t)job->ranks;
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, count);
    if (!info)
        return PMIX_ERR_NOMEM;
    load_job(info, job, nodes, ranks);
    for (uint32_t r = 0; r < job->ranks; r++)
        load_rank(&info[JOB_KEYS + r], job, r);
    rc = PMIx_server_register_nspace(job->nspace, (int)job->ranks, info, count, NULL, NULL);
    PMIX_INFO_FREE(info, count);
    free(nodes);
    free(ranks);
    return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}

pmix_status_t server_register_rank(const struct server_job *job, uint32_t rank)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    pmix_status_t rc = PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL);
    return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}
