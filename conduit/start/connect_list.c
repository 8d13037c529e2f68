/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The step of start-up that connects the ranks that a connect file lists (GASNET_CONNECTFILE_IN),
 * or all ranks if the transport connects by requests between ranks. Owns nothing beyond the call;
 * single-threaded, no lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "common/file_text.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "peer/connect_file.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "start/start_private.h"
#include "transport/connect_record.h"
#include "transport/transport.h"
#include "transport/verbs/limits.h"

/* Space for lists of all peers of all ranks, as if all were connected. A file that saves time is
 * far smaller. */
static size_t longest_file(void)
{
    uint64_t ranks = tk_peers.size, bytes = (1 << 20) + 32 * ranks * ranks;
    return bytes < 1 << 30 ? (size_t)bytes : 1 << 30;
}

/* If a file does not match the job and ranks can connect later, the job only loses the time that
 * the file should save; if they cannot, some ranks could never connect. A shared file is the same
 * for all ranks, so one line of warning is enough. */
static enum tk_status do_without(const char *name, const char *why)
{
    if (!tk_settings.connect_dynamic) {
        tk_log_error("GASNET_CONNECTFILE_IN: %s: %s; with GASNET_CONNECT_DYNAMIC=0 ranks can't be "
                     "connected later: correct the file, or leave out one of the two settings",
                     name, why);
        return TK_FAIL;
    }
    if (tk_peers.me == 0 || strchr(tk_settings.connectfile_in, '%'))
        tk_log_warn("GASNET_CONNECTFILE_IN: %s: %s; it is not used, and ranks are connected when "
                    "they first use each other",
                    name, why);
    return TK_OK;
}

static enum tk_status find_wanted(const char *name, bool *wanted)
{
    char why[200];
    size_t size = 0;
    char *text = tk_file_text(name, longest_file(), &size, why, sizeof(why));
    if (!text)
        return do_without(name, why);
    enum tk_connect_verdict verdict =
        tk_connect_parse(text, size, tk_peers.me, tk_peers.size, wanted, why, sizeof(why));
    free(text);
    if (verdict == TK_CONNECT_FITS)
        return TK_OK;
    memset(wanted, false, tk_peers.size * sizeof(*wanted));
    if (verdict == TK_CONNECT_OTHER_JOB)
        return do_without(name, why);
    tk_log_error("GASNET_CONNECTFILE_IN: %s: %s", name, why);
    return TK_FAIL;
}

static enum tk_status begin(const bool *wanted)
{
    uint32_t *ranks = calloc(tk_peers.size, sizeof(*ranks)), count = 0;
    enum tk_status status = TK_OK;
    if (!ranks) {
        tk_log_error("out of memory for a list of %u ranks", tk_peers.size);
        return TK_FAIL;
    }
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (wanted[r])
            ranks[count++] = r;
    for (unsigned i = 0; status == TK_OK && i < tk_transports.count; i++)
        if (tk_transports.at[i]->demand)
            status = tk_transports.at[i]->demand->connect_ranks(ranks, count);
    free(ranks);
    return status;
}

/* A transport without connections is always ready. */
static bool is_ready(uint32_t rank)
{
    const struct tk_transport *transport = tk_peer(rank)->transport;
    return !transport->demand || transport->demand->is_connected(rank);
}

static bool are_ready(const void *what)
{
    const bool *wanted = what;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (wanted[r] && !is_ready(r))
            return false;
    return true;
}

static void poll_once(void)
{
    tk_poll();
}

static void log_connected(const bool *wanted)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        count += wanted[r];
    if (tk_settings.verboseenv && tk_peers.me == 0)
        tk_log_info("connected at start-up by GASNET_CONNECTFILE_IN: %u of %u ranks", count,
                    tk_peers.size - 1);
}

/* Returns when every rank has the connections that it wants: a rank that wants no connection, or
 * has all of them, answers the requests of the others until then. */
static enum tk_status connect_wanted(const bool *wanted)
{
    if (begin(wanted) != TK_OK)
        return TK_FAIL;
    tk_wait_until(are_ready, wanted);
    return tk_bootstrap_fence(poll_once, 0);
}

static enum tk_status connect_all(bool *wanted)
{
    for (uint32_t r = 0; r < tk_peers.size; r++)
        wanted[r] = r != tk_peers.me;
    return connect_wanted(wanted);
}

static enum tk_status connect_listed(bool *wanted)
{
    char *name = tk_connect_name(tk_settings.connectfile_in, tk_peers.me);
    if (!name) {
        tk_log_error("out of memory for the name of a file");
        return TK_FAIL;
    }
    enum tk_status status = find_wanted(name, wanted);
    free(name);
    if (status == TK_OK)
        status = connect_wanted(wanted);
    if (status == TK_OK)
        log_connected(wanted);
    return status;
}

/* Ranks with several queue pairs to a peer may be connected already; then there is nothing left to
 * do. */
enum tk_status tk_start_connect_listed(void)
{
    bool is_listed = tk_connect_is_listed();
    if (!is_listed && !(tk_connect_is_static() && tk_verbs_static_asks(1)))
        return TK_OK;
    bool *wanted = calloc(tk_peers.size, sizeof(*wanted));
    if (!wanted) {
        tk_log_error("out of memory for a list of %u ranks", tk_peers.size);
        return TK_FAIL;
    }
    enum tk_status status = is_listed ? connect_listed(wanted) : connect_all(wanted);
    free(wanted);
    return status;
}
