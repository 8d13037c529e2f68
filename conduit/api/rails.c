/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trunkline_*: raw rails. Owns the error line of each thread's last call; no lock. */
#include "config.h"

#include "api/check.h"
#include "base/report.h"
#include "base/thread_own.h"
#include "bootstrap/bootstrap.h"
#include "peer/peer.h"
#include "topology/topology.h"
#include "transport/verbs/raw/raw.h"

enum { rails_error_max = 1024 };

static char *rails_error(void)
{
    return tk_thread_own(TK_OWN_RAILS_ERROR, rails_error_max);
}

const char *trunkline_rails_error(void)
{
    return rails_error();
}

/* Errors logged between begin and end become the error line instead. */
static void capture_errors(void)
{
    tk_report_into(rails_error(), rails_error_max);
}

static int end_capture(enum tk_status status, int code)
{
    tk_report_into(NULL, 0);
    return status == TK_OK ? GASNET_OK : code;
}

int trunkline_rails_open(const trunkline_rail_t **rails, unsigned *count)
{
    TK_CHECK_MAY_COMMUNICATE("trunkline_rails_open");
    *rails = NULL;
    *count = 0;
    capture_errors();
    if (tk_raw_check() != TK_OK)
        return end_capture(TK_FAIL, GASNET_ERR_BAD_ARG);
    return end_capture(tk_raw_open(rails, count, tk_topology.local_rank), GASNET_ERR_RESOURCE);
}

void trunkline_rails_close(void)
{
    tk_raw_close();
}

int trunkline_rails_share(const void *mine, void *all, size_t size)
{
    TK_CHECK_MAY_COMMUNICATE("trunkline_rails_share");
    capture_errors();
    return end_capture(tk_share(mine, all, size, tk_poll_asleep), GASNET_ERR_RESOURCE);
}

int trunkline_rails_barrier(void)
{
    TK_CHECK_MAY_COMMUNICATE("trunkline_rails_barrier");
    capture_errors();
    return end_capture(tk_bootstrap_fence(tk_poll_asleep, 0), GASNET_ERR_RESOURCE);
}

int trunkline_domain_open(trunkline_domain_t *domain, const trunkline_rail_t *rail, int own_context)
{
    capture_errors();
    return end_capture(tk_raw_domain_open(domain, rail, own_context != 0), GASNET_ERR_RESOURCE);
}

void trunkline_domain_close(trunkline_domain_t *domain)
{
    tk_raw_domain_close(domain);
}

int trunkline_memory_open(struct ibv_mr **memory, const trunkline_domain_t *domain, void *address,
                          size_t size, int access)
{
    capture_errors();
    return end_capture(tk_raw_memory_open(memory, domain, address, size, access),
                       GASNET_ERR_RESOURCE);
}

int trunkline_cq_open(struct ibv_cq **cq, const trunkline_domain_t *domain, uint32_t depth,
                      struct ibv_comp_channel *channel)
{
    capture_errors();
    return end_capture(tk_raw_cq_open(cq, domain, depth, channel), GASNET_ERR_RESOURCE);
}

int trunkline_qp_open(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                      const trunkline_rail_t *rail, const trunkline_qp_options_t *options)
{
    *qp = (trunkline_qp_t){.qp = NULL};
    capture_errors();
    if (tk_raw_qp_check(domain, rail, options) != TK_OK)
        return end_capture(TK_FAIL, GASNET_ERR_BAD_ARG);
    return end_capture(tk_raw_qp_open(qp, domain, rail, options), GASNET_ERR_RESOURCE);
}

int trunkline_qp_connect(trunkline_qp_t *qp, const trunkline_address_t *to)
{
    capture_errors();
    return end_capture(tk_raw_qp_connect(qp, to), GASNET_ERR_RESOURCE);
}

int trunkline_qp_reach(struct ibv_ah **ah, const trunkline_qp_t *qp, const trunkline_address_t *to)
{
    capture_errors();
    return end_capture(tk_raw_qp_reach(ah, qp, to), GASNET_ERR_RESOURCE);
}

void trunkline_qp_close(trunkline_qp_t *qp)
{
    tk_raw_qp_close(qp);
}
