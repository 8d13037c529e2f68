/* SPDX-License-Identifier: BSD-3-Clause */
/* The up-calls of libpmix: a rank connected, finalized or aborted. Each one reports to the guard
 * first and answers libpmix second, so that the guard knows before the rank can go on. Runs on
 * libpmix's thread; owns nothing; the lock is inside server_send(). */
#include "config.h"

#include "server_private.h"

#include <stdlib.h>
#include <string.h>

/* Longer messages are cut: they are for one line on a terminal. */
enum { ABORT_TEXT = 1024 };

static pmix_status_t upcall_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                                      size_t ninfo, pmix_op_cbfunc_t done, void *data)
{
    (void)object, (void)info, (void)ninfo;
    server_send(WIRE_CONNECTED, proc->rank, NULL, 0);
    if (done)
        done(PMIX_SUCCESS, data);
    return PMIX_SUCCESS;
}

static pmix_status_t upcall_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                      void *data)
{
    (void)object;
    server_send(WIRE_FINALIZED, proc->rank, NULL, 0);
    if (done)
        done(PMIX_SUCCESS, data);
    return PMIX_SUCCESS;
}

static pmix_status_t upcall_aborted(const pmix_proc_t *proc, void *object, int status,
                                    const char text[], pmix_proc_t procs[], size_t nprocs,
                                    pmix_op_cbfunc_t done, void *data)
{
    uint8_t frame[4 + ABORT_TEXT];
    size_t length = text ? strnlen(text, ABORT_TEXT) : 0;

    (void)object, (void)procs, (void)nprocs;
    wire_put_number(frame, (uint32_t)status);
    if (length)
        memcpy(frame + 4, text, length);
    server_send(WIRE_ABORT, proc->rank, frame, 4 + length);
    if (done)
        done(PMIX_SUCCESS, data);
    return PMIX_SUCCESS;
}

/* The result of the fence on this host. */
static pmix_status_t local_status(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_LOCAL_COLLECTIVE_STATUS) &&
            info[i].value.type == PMIX_STATUS)
            return info[i].value.data.status;
    return PMIX_SUCCESS;
}

/* libpmix has collected the part of this host, and leaves its memory to us. */
static pmix_status_t upcall_fence(const pmix_proc_t procs[], size_t nprocs,
                                  const pmix_info_t info[], size_t ninfo, char *blob, size_t size,
                                  pmix_modex_cbfunc_t done, void *data)
{
    pmix_status_t rc =
        server_fence(procs, nprocs, local_status(info, ninfo), blob, size, done, data);
    if (rc == PMIX_SUCCESS)
        free(blob);
    return rc;
}

static pmix_status_t upcall_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[],
                                         size_t ninfo, pmix_modex_cbfunc_t done, void *data)
{
    (void)info, (void)ninfo;
    return server_ask(proc, done, data);
}

static pmix_status_t upcall_register_events(pmix_status_t *codes, size_t ncodes,
                                            const pmix_info_t info[], size_t ninfo,
                                            pmix_op_cbfunc_t done, void *data)
{
    (void)codes, (void)ncodes, (void)info, (void)ninfo, (void)done, (void)data;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t upcall_deregister_events(pmix_status_t *codes, size_t ncodes,
                                              pmix_op_cbfunc_t done, void *data)
{
    (void)codes, (void)ncodes, (void)done, (void)data;
    return PMIX_OPERATION_SUCCEEDED;
}

/* libpmix itself delivers events to local ranks, and all ranks that it serves are local. */
static pmix_status_t upcall_event(pmix_status_t code, const pmix_proc_t *source,
                                  pmix_data_range_t range, pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t done, void *data)
{
    (void)code, (void)source, (void)range, (void)info, (void)ninfo, (void)done, (void)data;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_server_module_t server_upcalls = {
    .client_connected2 = upcall_connected,
    .client_finalized = upcall_finalized,
    .abort = upcall_aborted,
    .fence_nb = upcall_fence,
    .direct_modex = upcall_direct_modex,
    .register_events = upcall_register_events,
    .deregister_events = upcall_deregister_events,
    .notify_event = upcall_event,
};
