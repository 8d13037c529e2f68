/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The private data of connects and refusals: makes it, and validates received data, because anyone
 * on the network may connect to a listener. Owns nothing; uses only the job's shape and its secret,
 * and must not touch librdmacm. */
#include "config.h"

#include <string.h>

#include "peer/peer.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/verbs_state.h"

enum {
    request_magic = 0x546b636d,
    refusal_magic = 0x546b6e6f,
    request_version = 2 /* of the private data */
};

void tk_cm_request_make(struct tk_cm_request *request, const struct tk_conn *conn, uint32_t epoch)
{
    *request = (struct tk_cm_request){.magic = request_magic,
                                      .version = request_version,
                                      .rail = (uint16_t)conn->rail,
                                      .from = tk_peers.me,
                                      .to = conn->peer->rank,
                                      .epoch = epoch};
    request->conn = (uint32_t)(conn - tk_conns_to(conn->peer->rank));
    memcpy(request->secret, tk_verbs.cm->secret, sizeof(request->secret));
}

static bool is_of_this_job(const struct tk_cm_request *request)
{
    return request->magic == request_magic && request->version == request_version &&
           !memcmp(request->secret, tk_verbs.cm->secret, sizeof(request->secret));
}

enum tk_cm_verdict tk_cm_request_read(struct tk_cm_request *request, const void *data, size_t size,
                                      uint32_t rail)
{
    /* The network may have added zeros. */
    if (!data || size < sizeof(*request))
        return TK_CM_FOREIGN;
    memcpy(request, data, sizeof(*request));
    if (!is_of_this_job(request) || request->to != tk_peers.me || request->from >= tk_peers.size ||
        request->from == tk_peers.me || request->rail != rail ||
        request->conn >= tk_verbs.conns_pp || request->conn % tk_verbs.rail_count != rail)
        return TK_CM_FOREIGN;
    tk_verbs.cm->has_heard = true;
    bool lower_asks = request->from < tk_peers.me, is_conn_request = request->is_conn_request != 0;
    return lower_asks == is_conn_request ? TK_CM_CROSSING : TK_CM_WELCOME;
}

struct tk_cm_refusal tk_cm_refusal_make(enum tk_cm_verdict verdict)
{
    return (struct tk_cm_refusal){.magic = refusal_magic, .verdict = (uint32_t)verdict};
}

enum tk_cm_verdict tk_cm_refusal_read(const void *data, size_t size)
{
    struct tk_cm_refusal refusal;
    if (!data || size < sizeof(refusal))
        return tk_cm_verdicts;
    memcpy(&refusal, data, sizeof(refusal));
    if (refusal.magic != refusal_magic || refusal.verdict == TK_CM_WELCOME ||
        refusal.verdict >= tk_cm_verdicts)
        return tk_cm_verdicts;
    return (enum tk_cm_verdict)refusal.verdict;
}

const char *tk_cm_verdict_text(enum tk_cm_verdict verdict)
{
    static const char *const texts[] = {
        [TK_CM_WELCOME] = "it is welcome",
        [TK_CM_FOREIGN] = "it is not of this job, or not for this rank and port",
        [TK_CM_CROSSING] = "the lower rank of a pair connects, not the higher one",
        [TK_CM_LATE] = "it is of an incarnation of the connection that is over",
        [TK_CM_DUPLICATE] = "the connection was asked for already",
        [TK_CM_EARLY] = "the connection is not open at this end so far",
        [TK_CM_HEARD] = "the lower rank connects"};
    return verdict < tk_cm_verdicts ? texts[verdict] : "no reason given";
}
