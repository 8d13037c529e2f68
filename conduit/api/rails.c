/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trunkline_*: raw rails. Owns each thread's last line about what failed. */
#include "config.h"

#include "api/check.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "peer/peer.h"
#include "topology/topology.h"
#include "transport/verbs/raw/raw.h"

static TK_PER_CLIENT_THREAD char why[1024];

const char *trunkline_rails_error(void)
{
    return why;
}

/* What is complained of up to end() is the line. */
static void begin(void)
{
    tk_report_into(why, sizeof(why));
}

static int end(enum tk_status status, int code)
{
    tk_report_into(NULL, 0);
    return status == TK_OK ? GASNET_OK : code;
}

int trunkline_rails_open(const trunkline_rail_t **rails, unsigned *count)
{
    TK_CHECK_MAY_COMMUNICATE("trunkline_rails_open");
    *rails = NULL;
    *count = 0;
    begin();
    if (tk_raw_check() != TK_OK)
        return end(TK_FAIL, GASNET_ERR_BAD_ARG);
    return end(tk_raw_open(rails, count, tk_topology.local_rank), GASNET_ERR_RESOURCE);
}

void trunkline_rails_close(void)
{
    tk_raw_close();
}

int trunkline_rails_share(const void *mine, void *all, size_t size)
{
    TK_CHECK_MAY_COMMUNICATE("trunkline_rails_share");
    begin();
    return end(tk_share(mine, all, size, tk_poll_between_naps), GASNET_ERR_RESOURCE);
}

int trunkline_rails_barrier(void)
{
    TK_CHECK_MAY_COMMUNICATE("trunkline_rails_barrier");
    begin();
    return end(tk_bootstrap_fence(tk_poll_between_naps, 0), GASNET_ERR_RESOURCE);
}

int trunkline_domain_open(trunkline_domain_t *domain, const trunkline_rail_t *rail, int own_context)
{
    begin();
    return end(tk_raw_domain_open(domain, rail, own_context != 0), GASNET_ERR_RESOURCE);
}

void trunkline_domain_close(trunkline_domain_t *domain)
{
    tk_raw_domain_close(domain);
}

int trunkline_memory_open(struct ibv_mr **memory, const trunkline_domain_t *domain, void *address,
                          size_t size, int access)
{
    begin();
    return end(tk_raw_memory_open(memory, domain, address, size, access), GASNET_ERR_RESOURCE);
}

int trunkline_cq_open(struct ibv_cq **cq, const trunkline_domain_t *domain, uint32_t depth,
                      struct ibv_comp_channel *channel)
{
    begin();
    return end(tk_raw_cq_open(cq, domain, depth, channel), GASNET_ERR_RESOURCE);
}

int trunkline_qp_open(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                      const trunkline_rail_t *rail, const trunkline_qp_options_t *options)
{
    *qp = (trunkline_qp_t){.qp = NULL};
    begin();
    if (tk_raw_qp_check(domain, rail, options) != TK_OK)
        return end(TK_FAIL, GASNET_ERR_BAD_ARG);
    return end(tk_raw_qp_open(qp, domain, rail, options), GASNET_ERR_RESOURCE);
}

int trunkline_qp_connect(trunkline_qp_t *qp, const trunkline_address_t *to)
{
    begin();
    return end(tk_raw_qp_connect(qp, to), GASNET_ERR_RESOURCE);
}

int trunkline_qp_reach(struct ibv_ah **ah, const trunkline_qp_t *qp, const trunkline_address_t *to)
{
    begin();
    return end(tk_raw_qp_reach(ah, qp, to), GASNET_ERR_RESOURCE);
}

void trunkline_qp_close(trunkline_qp_t *qp)
{
    tk_raw_qp_close(qp);
}
