/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See psn.h. Owns nothing; the secret is in tk_conns. */
#include "config.h"

#include "transport/verbs/conn/psn.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/first_use.h"
#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/siphash.h"

enum { psn_bits = 24, psn_mask = (1 << psn_bits) - 1, psn_of_xrc = TK_PSN_ATOMICS + 1, psn_of_cm };

/* What a code is computed over. All ranks of a job have the same byte order. */
struct psn_subject {
    uint32_t kind; /* enum tk_psn_kind, psn_of_xrc or psn_of_cm */
    uint32_t ranks[2], number;
};
_Static_assert(sizeof(struct psn_subject) == tk_siphash_text_size, "it is hashed as it is");
_Static_assert(sizeof(tk_conns.secret) == tk_siphash_key_size, "the secret is the key");

/* Computes two words, one for each direction. */
TK_FIRST_USE static void psn_code(const struct psn_subject *subject, uint32_t words[2])
{
    uint8_t text[tk_siphash_text_size];
    memcpy(text, subject, sizeof(text));
    uint64_t code = tk_siphash(tk_conns.secret, text);
    words[0] = (uint32_t)code;
    words[1] = (uint32_t)(code >> 32);
}

/* No packet of an earlier incarnation may be mistaken for one that is expected now. Packets of one
 * incarnation have numbers close together, so the first numbers of successive incarnations are far
 * apart. Random numbers would sometimes be close. */
TK_FIRST_USE static uint32_t psn_of_incarnation(uint32_t code, uint32_t incarnation)
{
    enum { scatter = 0x9e3779 };
    return (code + incarnation * scatter) & psn_mask;
}

TK_FIRST_USE struct tk_psn_pair tk_psn_of_conn(enum tk_psn_kind kind, uint32_t peer,
                                               uint32_t number, uint32_t incarnation)
{
    uint32_t me = tk_peers.me, words[2];
    const struct psn_subject subject = {
        .kind = kind,
        .ranks = {me < peer ? me : peer, me < peer ? peer : me},
        .number = number,
    };
    psn_code(&subject, words);
    /* A rank may be its own peer, with a queue pair that is connected to itself. */
    return (struct tk_psn_pair){.mine = psn_of_incarnation(words[me > peer], incarnation),
                                .theirs = psn_of_incarnation(words[me < peer], incarnation)};
}

TK_FIRST_USE uint32_t tk_psn_of_xrc(uint32_t sender, uint32_t group, uint32_t number)
{
    const struct psn_subject subject = {
        .kind = psn_of_xrc, .ranks = {sender, group}, .number = number};
    uint32_t words[2];
    psn_code(&subject, words);
    return words[0] & psn_mask;
}

bool tk_psn_random(uint32_t *psn)
{
    if (getrandom(psn, sizeof(*psn), 0) != (ssize_t)sizeof(*psn))
        return false;
    *psn &= psn_mask;
    return true;
}

enum tk_status tk_psn_secret_draw(struct tk_peer_info *info)
{
    if (tk_peers.me != 0 ||
        getrandom(info->secret, sizeof(info->secret), 0) == (ssize_t)sizeof(info->secret))
        return TK_OK;
    tk_log_error("no random bytes for the job's secret: %s", strerror(errno));
    return TK_FAIL;
}

void tk_psn_secret_agree(void)
{
    memcpy(tk_conns.secret, tk_peer_info_of(0)->secret, sizeof(tk_conns.secret));
}

void tk_psn_cm_secret(uint8_t *secret, uint32_t size)
{
    uint32_t words[2];
    for (uint32_t i = 0; i < size / sizeof(words); i++) {
        const struct psn_subject subject = {.kind = psn_of_cm, .number = i};
        psn_code(&subject, words);
        memcpy(secret + i * sizeof(words), words, sizeof(words));
    }
}
