# SPDX-License-Identifier: BSD-3-Clause
"""One side of the transfers that make record-frames records: frames_peer.py server|client DEVICE GID_INDEX HOST PORT KIND.
KIND: rc (every operation, in one and in several packets, and a receiver that is not ready), uc, ud, bad_key, too_long, no_right
(three ways to be refused). Both sides meet over TCP on HOST:PORT, where the server listens. Transfers are told apart by
their sizes: 100 bytes is one packet, 3000 are three of a path MTU of 1024. Owns nothing beyond its run."""

import json
import socket
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

BYTES = 8192
QKEY = 0x11111111
WRITE = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
ALL = WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
TYPES = {'uc': e.IBV_QPT_UC, 'ud': e.IBV_QPT_UD}


class Side:
    def __init__(self, server, device, gid_index, host, port, kind):
        self.server, self.kind, self.gid_index = server, kind, gid_index
        self.ctx = Context(name=device)
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, 64)
        self.mr = MR(self.pd, BYTES, WRITE if kind == 'no_right' else ALL)
        self.mr.write(bytes(i * 7 & 255 for i in range(BYTES)), BYTES)
        init = QPInitAttr(qp_type=TYPES.get(kind, e.IBV_QPT_RC), scq=self.cq, rcq=self.cq, sq_sig_all=1,
                          cap=QPCap(max_send_wr=16, max_recv_wr=16))
        attr = QPAttr(port_num=1)
        if kind == 'ud':
            attr.qkey = QKEY
        self.qp = QP(self.pd, init, attr) if kind == 'ud' else QP(self.pd, init)
        self.line = self.meet(host, port)
        gid = self.ctx.query_gid(1, gid_index).gid
        self.psn = 0xfffffe if not server else 0x345678  # the requester's go over the end
        self.say(qpn=self.qp.qp_num, gid=gid, psn=self.psn, key=self.mr.rkey, at=self.mr.buf)
        self.peer = self.hear()
        self.route = AHAttr(gr=GlobalRoute(dgid=_gid(self.peer['gid']), sgid_index=gid_index, hop_limit=64), is_global=1,
                            port_num=1)
        self.connect()

    def meet(self, host, port):
        if self.server:
            listener = socket.create_server((host, port), reuse_port=True)
            return listener.accept()[0].makefile('rw')
        for _ in range(200):
            try:
                return socket.create_connection((host, port), timeout=30).makefile('rw')
            except OSError:
                time.sleep(0.1)
        raise SystemExit(f'nobody listens on {host}:{port}')

    def say(self, **words):
        self.line.write(json.dumps(words) + '\n')
        self.line.flush()

    def hear(self):
        return json.loads(self.line.readline())

    def connect(self):
        if self.kind == 'ud':
            self.ah = AH(self.pd, attr=self.route)
            return
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ALL
        attr.dest_qp_num, attr.rq_psn, attr.sq_psn = self.peer['qpn'], self.peer['psn'], self.psn
        attr.ah_attr = self.route
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.retry_cnt, attr.rnr_retry, attr.timeout, attr.min_rnr_timer = 6, 7, 18, 16
        self.qp.to_rts(attr)

    def receive(self, count):
        for i in range(count):
            self.qp.post_recv(RecvWR(wr_id=i, sg=[SGE(self.mr.buf, BYTES, self.mr.lkey)], num_sge=1))

    def done(self, status=e.IBV_WC_SUCCESS):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            n, wcs = self.cq.poll(1)
            if n:
                assert wcs[0].status == status, f'{wcs[0]}'
                return
        raise SystemExit(f'{self.kind}: no completion')

    def post(self, opcode, size, offset=0, imm=0, key=None, status=e.IBV_WC_SUCCESS):
        wr = SendWR(wr_id=1, num_sge=1, sg=[SGE(self.mr.buf, size, self.mr.lkey)], opcode=opcode, imm_data=imm)
        if self.kind == 'ud':
            wr.set_wr_ud(self.ah, self.peer['qpn'], QKEY)
        elif opcode in (e.IBV_WR_ATOMIC_FETCH_AND_ADD, e.IBV_WR_ATOMIC_CMP_AND_SWP):
            wr.set_wr_atomic(self.peer['key'], self.peer['at'], 3, 5)
        elif opcode not in (e.IBV_WR_SEND, e.IBV_WR_SEND_WITH_IMM):
            wr.set_wr_rdma(self.peer['key'] if key is None else key, self.peer['at'] + offset)
        self.qp.post_send(wr)
        self.done(status)


def _gid(text):
    from pyverbs.addr import GID
    return GID(text)


def client(s):
    s.hear()  # receives are posted
    if s.kind == 'ud':
        s.post(e.IBV_WR_SEND, 100)
        s.post(e.IBV_WR_SEND_WITH_IMM, 100, imm=0x12345678)
    elif s.kind == 'bad_key':
        s.post(e.IBV_WR_RDMA_WRITE, 100, key=s.peer['key'] ^ 0xff, status=e.IBV_WC_REM_ACCESS_ERR)
    elif s.kind == 'too_long':
        s.post(e.IBV_WR_RDMA_WRITE, 3000, offset=BYTES - 100, status=e.IBV_WC_REM_ACCESS_ERR)
    elif s.kind == 'no_right':
        s.post(e.IBV_WR_RDMA_READ, 100, status=e.IBV_WC_REM_ACCESS_ERR)
    else:
        for size in (0, 1, 100, 3000):
            s.post(e.IBV_WR_SEND, size)
            s.post(e.IBV_WR_SEND_WITH_IMM, size, imm=0x12345678)
            s.post(e.IBV_WR_RDMA_WRITE, size)
            s.post(e.IBV_WR_RDMA_WRITE_WITH_IMM, size, imm=0x9abcdef0)
        if s.kind == 'rc':
            for size in (1, 100, 3000):
                s.post(e.IBV_WR_RDMA_READ, size)
            s.post(e.IBV_WR_ATOMIC_FETCH_AND_ADD, 8)
            s.post(e.IBV_WR_ATOMIC_CMP_AND_SWP, 8)
            s.say(now=1)
            s.post(e.IBV_WR_SEND, 100)  # the receiver is not ready for a while
    s.say(end=1)
    s.hear()


def server(s):
    receives = {'ud': 2, 'rc': 12, 'uc': 12}.get(s.kind, 0)
    s.receive(receives)
    s.say(ready=1)
    if s.kind == 'rc':
        for _ in range(receives):
            s.done()
        s.hear()
        time.sleep(0.1)
        s.receive(1)
    s.hear()
    s.say(end=1)


def main():
    role, device, gid_index, host, port, kind = sys.argv[1:]
    side = Side(role == 'server', device, int(gid_index), host, int(port), kind)
    (server if role == 'server' else client)(side)


main()
