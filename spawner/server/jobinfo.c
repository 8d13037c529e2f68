/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys a rank may ask PMIx about its job. From the node map and the process map libpmix derives
 * sizes, local ranks, peers and host names by itself; the rest is set here, and only for the ranks
 * of this host: for each rank of a large job it would take three times the memory and the time of
 * what libpmix derives. Owns nothing, takes no lock. */
#include "config.h"

#include "server_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOB_KEYS = 9 };

/* One text for all hosts, in order, with `between` between those of two. Caller frees; NULL without
 * memory. */
static char *list_hosts(const struct job *job, char between,
                        void (*add)(struct bytes *, const struct job_host *))
{
    struct bytes text = {0};
    for (uint32_t h = 0; h < job->host_count; h++) {
        if (h)
            bytes_append(&text, &between, 1);
        add(&text, &job->hosts[h]);
    }
    char *list = strndup((const char *)bytes_front(&text), text.length);
    bytes_free(&text);
    return list;
}

static void add_name(struct bytes *text, const struct job_host *host)
{
    bytes_append(text, host->name, strlen(host->name));
}

static void add_ranks(struct bytes *text, const struct job_host *host)
{
    char number[12];
    for (uint32_t r = host->first; r < host->first + host->count; r++)
        bytes_append(text, number,
                     (size_t)snprintf(number, sizeof(number), r == host->first ? "%u" : ",%u", r));
}

/* Once data of a rank are given, libpmix derives nothing more for it: all keys must be set. */
static void load_rank(pmix_info_t *slot, const struct job *job, uint32_t node, uint32_t rank)
{
    enum { KEYS = 7 };
    uint32_t zero = 0;
    /* PMIx's type of local ranks; no host has more than 65535 */
    uint16_t local = (uint16_t)(rank - job->hosts[node].first);
    PMIX_INFO_LOAD(slot, PMIX_PROC_DATA, NULL, PMIX_DATA_ARRAY);
    pmix_data_array_t *array;
    PMIX_DATA_ARRAY_CREATE(array, KEYS, PMIX_INFO);
    pmix_info_t *keys = array->array;
    PMIX_INFO_LOAD(&keys[0], PMIX_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&keys[1], PMIX_GLOBAL_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&keys[2], PMIX_APPNUM, &zero, PMIX_UINT32);
    PMIX_INFO_LOAD(&keys[3], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&keys[4], PMIX_NODE_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&keys[5], PMIX_NODEID, &node, PMIX_UINT32);
    PMIX_INFO_LOAD(&keys[6], PMIX_HOSTNAME, job->hosts[node].name, PMIX_STRING);
    slot->value.type = PMIX_DATA_ARRAY;
    slot->value.data.darray = array;
}

static void load_job(pmix_info_t *info, const struct server_job *server, const char *nodes,
                     const char *ranks)
{
    const struct job *job = server->job;
    uint32_t one = 1, n = job->ranks;
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, nodes, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, ranks, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[2], PMIX_UNIV_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[3], PMIX_JOB_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[4], PMIX_MAX_PROCS, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[5], PMIX_JOBID, job->nspace, PMIX_STRING);
    PMIX_INFO_LOAD(&info[6], PMIX_JOB_NUM_APPS, &one, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[7], PMIX_TMPDIR, server->session, PMIX_STRING);
    PMIX_INFO_LOAD(&info[8], PMIX_NSDIR, server->session, PMIX_STRING);
}

static pmix_status_t make_maps(const struct job *job, char **nodes, char **ranks)
{
    char *names = list_hosts(job, ',', add_name), *lists = list_hosts(job, ';', add_ranks);
    pmix_status_t rc = names && lists ? PMIx_generate_regex(names, nodes) : PMIX_ERR_NOMEM;
    if (rc == PMIX_SUCCESS)
        rc = PMIx_generate_ppn(lists, ranks);
    free(names);
    free(lists);
    return rc;
}

pmix_status_t server_register_job(const struct server_job *server)
{
    const struct job *job = server->job;
    char *nodes = NULL, *ranks = NULL;
    pmix_status_t rc = make_maps(job, &nodes, &ranks);
    if (rc != PMIX_SUCCESS)
        return rc;

    const struct job_host *own = server_host(server);
    size_t count = JOB_KEYS + (size_t)own->count;
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, count);
    if (!info)
        return PMIX_ERR_NOMEM;
    load_job(info, server, nodes, ranks);
    for (uint32_t i = 0; i < own->count; i++)
        load_rank(&info[JOB_KEYS + i], job, job->host, own->first + i);
    pmix_nspace_t name;
    PMIX_LOAD_NSPACE(name, job->nspace);
    rc =
        PMIx_server_register_nspace(name, (int)server_host(server)->count, info, count, NULL, NULL);
    PMIX_INFO_FREE(info, count);
    free(nodes);
    free(ranks);
    return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}

pmix_status_t server_register_rank(const struct server_job *server, uint32_t rank)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, server->job->nspace, rank);
    pmix_status_t rc = PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, NULL, NULL);
    return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
}
