/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of members; see request.h. */
#include "config.h"

#include "daemon/request.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "daemon/group.h"

enum { qpn_first = 2, number_24 = 1 << 24, mtu_least = 256 };

static struct tk_mcsw_info info;

void mcd_request_open(const struct tk_mcsw_info *i)
{
    info = *i;
}

static void refuse(struct mcd_connection *c, const char *field, uint64_t value, const char *legal)
{
    char why[160];

    snprintf(why, sizeof why, "%s %llu is not %s", field, (unsigned long long)value, legal);
    mcd_control_error(c, TK_MCSW_E_ARGUMENT, why);
}

/* Is the address of the kind that its plane uses? */
static bool good_gid(const struct tk_mcsw_member *m)
{
    static const uint8_t softhca[8] = {0xfd, 0x53, 0x48, 0x43, 0x41, 0, 0, 1};
    static const uint8_t plain[12] = {[10] = 0xff, [11] = 0xff};

    if (memcmp(m->gid, plain, sizeof plain) == 0)
        return m->gid[12] != 0 && m->gid[12] < 224;
    return m->plane == TK_MCSW_UDP && memcmp(m->gid, softhca, sizeof softhca) == 0 &&
           m->gid[8] != 0 && m->gid[8] < 224 && (m->gid[12] | m->gid[13]) != 0 &&
           (m->gid[14] | m->gid[15]) == 0;
}

static bool good_member(struct mcd_connection *c, const struct tk_mcsw_member *m)
{
    if (m->plane >= TK_MCSW_PLANES || !(info.planes & 1u << m->plane))
        refuse(c, "the plane", m->plane, "one that this switch has (mcswitchd --udp, --port)");
    else if (m->mtu < mtu_least || m->mtu > info.mtu || (m->mtu & (m->mtu - 1)))
        refuse(c, "the path MTU", m->mtu, "a power of two from 256 to that of the switch");
    else if (!good_gid(m))
        mcd_control_error(c, TK_MCSW_E_ARGUMENT, "the GID is none of its plane");
    else if (m->sqpn < qpn_first || m->sqpn >= number_24)
        refuse(c, "the number of the send queue pair", m->sqpn, "in 2..16777215");
    else if (m->rqpn < qpn_first || m->rqpn >= number_24)
        refuse(c, "the number of the receive queue pair", m->rqpn, "in 2..16777215");
    else if (m->sqpsn >= number_24 || m->rqpsn >= number_24)
        refuse(c, "a PSN", m->sqpsn >= number_24 ? m->sqpsn : m->rqpsn, "in 0..16777215");
    else if (m->rkey == MCSW_CONTROL_RKEY)
        refuse(c, "the key of memory", m->rkey, "below 4294967295, which marks control packets");
    else
        return true;
    return false;
}

static void probe(struct mcd_connection *c)
{
    uint8_t out[TK_MCSW_FRAME_MAX];
    struct tk_mcsw_frame f = tk_mcsw_begin(out, TK_MCSW_INFO);

    tk_mcsw_put_info(&f, &info);
    mcd_control_send(c, out, tk_mcsw_end(&f, out));
}

static void with_member(struct mcd_connection *c, unsigned type, struct tk_mcsw_frame *f,
                        uint32_t number)
{
    uint32_t what = type == TK_MCSW_REPAIR ? (uint32_t)tk_mcsw_get(f, 4) : 0;
    struct tk_mcsw_member m;

    tk_mcsw_get_member(f, &m);
    if (!good_member(c, &m))
        return;
    if (type == TK_MCSW_JOIN)
        mcd_group_join(c, number, &m);
    else if (what == 0 || what > TK_MCSW_REPAIR_WINDOW)
        refuse(c, "what is repaired,", what, "in 1..8");
    else
        mcd_group_repair(c, number, what, &m);
}

static void take(struct mcd_connection *c, unsigned type, struct tk_mcsw_frame *f)
{
    uint32_t number = (uint32_t)tk_mcsw_get(f, 4);

    if (c->joins) {
        mcd_control_error(c, TK_MCSW_E_STATE, "a join of this connection is not answered yet");
        return;
    }
    switch ((enum tk_mcsw_type)type) {
    case TK_MCSW_PROBE:
        probe(c);
        break;
    case TK_MCSW_CREATE:
        if (number < 2 || number > info.members)
            refuse(c, "the number of members", number, "in 2 to the most of this switch");
        else
            mcd_group_create(c, number);
        break;
    case TK_MCSW_JOIN:
    case TK_MCSW_REPAIR:
        with_member(c, type, f, number);
        break;
    case TK_MCSW_MARK:
        mcd_group_mark(c, number, (uint32_t)tk_mcsw_get(f, 4));
        break;
    case TK_MCSW_LEAVE:
        mcd_group_leave(c, number, (uint32_t)tk_mcsw_get(f, 4));
        break;
    case TK_MCSW_DESTROY:
        mcd_group_destroy(c, number);
        break;
    default:
        break;
    }
}

const struct mcd_control_calls mcd_request_calls = {.take = take, .gone = mcd_group_lose};
