/* SPDX-License-Identifier: BSD-3-Clause */
/* The up-calls of libpmix: a rank connected, finalized or aborted. Each one reports to the guard
 * first and answers libpmix second, so that the guard knows before the rank can go on. Runs on
 * libpmix's thread; owns nothing; the lock is inside server_send(). */
#include "config.h"

#include "server_private.h"

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

/* All ranks are local, so what libpmix collected from them is the whole answer. */
static pmix_status_t upcall_fence(const pmix_proc_t procs[], size_t nprocs,
                                  const pmix_info_t info[], size_t ninfo, char *blob, size_t size,
                                  pmix_modex_cbfunc_t done, void *data)
{
    (void)procs, (void)nprocs, (void)info, (void)ninfo;
    if (done)
        done(PMIX_SUCCESS, blob, size, data, NULL, NULL);
    return PMIX_SUCCESS;
}

/* No rank is elsewhere, so a rank that libpmix does not know does not exist. */
static pmix_status_t upcall_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[],
                                         size_t ninfo, pmix_modex_cbfunc_t done, void *data)
{
    (void)proc, (void)info, (void)ninfo, (void)done, (void)data;
    return PMIX_ERR_NOT_FOUND;
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

/* libpmix itself delivers events to local ranks, and there are no others. */
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
