/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of transport/verbs share. A device in use has the objects that serve all its
 * ports; a rail is one port in use; a connection is one RC queue pair to one peer over a rail. Each
 * pair of ranks has the same number of connections, one of which is primary: it carries everything
 * small, in order. The others carry pieces of large transfers, and the notices by which another one
 * becomes primary when a connection dies (failover/failover.c).
 *
 * Locks: a connection's lock guards its credits, its receive queue and the order of its sends. The
 * lock of a pool or of a lane may be taken under it. The locks of the completion queues are only
 * tried, and are released before a completion is handled. */
#ifndef TK_VERBS_PRIVATE_H
#define TK_VERBS_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "bootstrap/host_table.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/library.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/device_private.h"
#include "transport/verbs/verbs_state.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/conn/qp_state.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/atomic.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/events.h"
#include "transport/verbs/mcast/link.h"
#include "transport/verbs/verbs.h"

#endif
