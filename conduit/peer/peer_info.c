/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Exchange of peer infos by one fence at start-up, or two if ranks have different numbers of ports.
 * They remain where they were gathered until
 * tk_peer_info_drop_all(). A peer info comes from another process, so everything in it is checked
 * before use. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/client_mode.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/gather.h"
#include "peer/peer.h"
#include "settings/settings.h"

static const char key_of_infos[] = "tk.peer_info", key_of_again[] = "tk.peer_info_again",
                  key_of_settings[] = "tk.settings";

static struct tk_peer_info **infos;
static bool is_again;

const struct tk_peer_info *tk_peer_info_of(uint32_t rank)
{
    return infos ? infos[rank] : NULL;
}

const struct tk_host_info *tk_host_info_of(uint32_t rank)
{
    return &infos[rank]->host;
}

static void withdraw(void)
{
    tk_gather_withdraw(key_of_infos);
    if (is_again)
        tk_gather_withdraw(key_of_again);
    if (tk_peers.me == 0)
        tk_gather_withdraw(key_of_settings);
}

void tk_peer_info_drop_all(void)
{
    if (infos)
        withdraw();
    free(infos);
    infos = NULL;
    tk_gather_drop();
    tk_host_names_complete();
}

/* Reports the first line in which two texts of NAME=value lines differ; both hold the same names in
 * the same order. */
static void log_difference(uint32_t rank, const char *mine, const char *theirs)
{
    while (*mine && *theirs) {
        size_t a = strcspn(mine, "\n"), b = strcspn(theirs, "\n");
        if (a != b || memcmp(mine, theirs, a)) {
            tk_log_error("settings differ between ranks: %.*s here, but %.*s on rank %u; give all "
                         "ranks the same value",
                         (int)a, mine, (int)b, theirs, rank);
            return;
        }
        mine += a + (mine[a] != 0);
        theirs += b + (theirs[b] != 0);
    }
    tk_log_error("settings differ between this rank and rank %u", rank);
}

static enum tk_status explain_settings(uint32_t rank)
{
    void *theirs;
    size_t size;
    char *mine = tk_settings_job_text();
    if (mine && tk_bootstrap_get(rank, key_of_settings, &theirs, &size) == TK_OK) {
        ((char *)theirs)[size] = 0;
        log_difference(rank, mine, theirs);
        free(theirs);
    }
    free(mine);
    return TK_FAIL;
}

static enum tk_status peer_info_check(uint32_t rank, const struct tk_peer_info *info, size_t size)
{
    if (size < sizeof(*info) || info->version != tk_peer_info_version ||
        info->ranks != tk_peers.size || size != tk_peer_info_size(info)) {
        tk_log_error("rank %u runs another version of this library; link all programs of a job "
                     "with the same version",
                     rank);
        return TK_FAIL;
    }
    if (strncmp(info->mode, TK_MODE_NAME, sizeof(info->mode))) {
        tk_log_error(
            "rank %u was linked for threading mode '%.8s', this rank for '%s'; all ranks of a job "
            "need the same mode",
            rank, info->mode, TK_MODE_NAME);
        return TK_FAIL;
    }
    return TK_OK;
}

/* Most texts are terminated correctly, and a page that is not written to stays shared. */
static void end_text(char *text, size_t size)
{
    if (text[size - 1])
        text[size - 1] = 0;
}

static void make_sound(struct tk_peer_info *info)
{
    end_text(info->host.name, sizeof(info->host.name));
    end_text(info->host.id, sizeof(info->host.id));
    for (uint32_t i = 0; i < info->rails; i++) {
        struct tk_port_address *address = tk_peer_info_rail(info, i);
        end_text(address->device, sizeof(address->device));
        if (address->gid_count > tk_gids_max)
            address->gid_count = tk_gids_max;
    }
    if (info->unused_size > 0)
        end_text(tk_peer_info_unused(info), info->unused_size);
}

static enum tk_status peer_info_learn(uint32_t rank)
{
    size_t size;
    struct tk_peer *peer = tk_peer(rank);
    struct tk_peer_info *info = infos[rank] = tk_gathered(rank, &size);
    if (!info || peer_info_check(rank, info, size) != TK_OK)
        return TK_FAIL;
    make_sound(info);
    peer->pid = (int)info->pid;
    peer->host = tk_host_name_keep(info->host.name);
    return peer->host ? TK_OK : TK_FAIL;
}

/* Only rank 0 publishes its settings as text: other ranks compare theirs with it. */
static enum tk_status settings_publish(void)
{
    if (tk_peers.me != 0)
        return TK_OK;
    char *text = tk_settings_job_text();
    enum tk_status status = text ? tk_bootstrap_put(key_of_settings, text, strlen(text)) : TK_FAIL;
    free(text);
    return status;
}

/* Before anything is mapped or connected, because settings decide that. All ranks come to the same
 * result, and the first rank that differs from rank 0 reports it. The others wait in a fence until
 * the job is ended: a rank that ended it earlier could cut the report short. */
static enum tk_status compare_settings(void)
{
    uint32_t other = 1;
    while (other < tk_peers.size && infos[other]->settings_hash == infos[0]->settings_hash)
        other++;
    if (other >= tk_peers.size)
        return TK_OK;
    if (other == tk_peers.me)
        return explain_settings(0);
    tk_bootstrap_fence(NULL, 0);
    return TK_FAIL;
}

static enum tk_status peer_info_learn_all(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (peer_info_learn(r) != TK_OK)
            return TK_FAIL;
    return compare_settings();
}

static enum tk_status gather_infos(const char *key, const struct tk_peer_info *info)
{
    free(infos);
    infos = calloc(tk_peers.size, sizeof(*infos));
    if (!infos || tk_gather(key, info, tk_peer_info_size(info), NULL) != TK_OK)
        return TK_FAIL;
    return peer_info_learn_all();
}

enum tk_status tk_peer_info_exchange_all(struct tk_peer_info *info)
{
    snprintf(info->mode, sizeof(info->mode), "%s", TK_MODE_NAME);
    info->version = tk_peer_info_version;
    info->settings_hash = tk_settings_job_hash();
    return settings_publish() == TK_OK ? gather_infos(key_of_infos, info) : TK_FAIL;
}

enum tk_status tk_peer_info_exchange_again(struct tk_peer_info *info)
{
    is_again = true;
    return gather_infos(key_of_again, info);
}
