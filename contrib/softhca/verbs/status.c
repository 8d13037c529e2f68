/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of completion statuses: libibverbs' where that is loaded, else the names that the
 * InfiniBand specification gives them (volume 1, 11.6.2), because programs may run over softhca
 * without libibverbs. Owns nothing. */
#include "config.h"

#include "verbs/verbs.h"

static const char *const texts[] = {
    [IBV_WC_SUCCESS] = "success",
    [IBV_WC_LOC_LEN_ERR] = "local length error",
    [IBV_WC_LOC_QP_OP_ERR] = "local queue pair operation error",
    [IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
    [IBV_WC_LOC_PROT_ERR] = "local protection error",
    [IBV_WC_WR_FLUSH_ERR] = "work request flushed",
    [IBV_WC_MW_BIND_ERR] = "memory window bind error",
    [IBV_WC_BAD_RESP_ERR] = "bad response",
    [IBV_WC_LOC_ACCESS_ERR] = "local access error",
    [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
    [IBV_WC_REM_ACCESS_ERR] = "remote access error",
    [IBV_WC_REM_OP_ERR] = "remote operation error",
    [IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
    [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
    [IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
    [IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
    [IBV_WC_REM_ABORT_ERR] = "remote aborted the operation",
    [IBV_WC_INV_EECN_ERR] = "invalid EE context number",
    [IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
    [IBV_WC_FATAL_ERR] = "fatal error",
    [IBV_WC_RESP_TIMEOUT_ERR] = "response timeout",
    [IBV_WC_GENERAL_ERR] = "general error",
    [IBV_WC_TM_ERR] = "tag matching error",
    [IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching rendezvous incomplete",
};

SHCA_PUBLIC const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    typedef const char *fn(enum ibv_wc_status);
    fn *real = (fn *)shca_real("ibv_wc_status_str");

    if (real)
        return real(status);
    return (size_t)status < sizeof texts / sizeof texts[0] ? texts[status] : "unknown status";
}
