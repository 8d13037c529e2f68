# SPDX-License-Identifier: BSD-3-Clause
"""softhca seen from Python (pyverbs, preloaded): every kind of object that makes sense is made and
used, and what is not offered raises a clean PyverbsRDMAError. Run by pyverbs.sh; one line per case,
exit status 1 when one failed. Owns nothing beyond each case."""

import errno
import sys
import traceback
from types import SimpleNamespace

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx, PollCqAttr
from pyverbs.device import DM, AllocDmAttr, Context, get_device_list
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import DMMR, MR, MW
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from pyverbs.wq import WQ, RwqIndTable, RwqIndTableInitAttr, WQInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

BYTES = 4096
QKEY = 0x1234
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
          e.IBV_ACCESS_REMOTE_ATOMIC)
CASES = []


def case(function):
    CASES.append(function)
    return function


def refused(call, *args, error=errno.EOPNOTSUPP):
    try:
        call(*args)
    except PyverbsRDMAError as reason:
        assert reason.error_code == error, f'{reason}'
    else:
        raise AssertionError(f'{call} was not refused')


def wait(cq):
    for _ in range(1000000):
        n, wcs = cq.poll(1)
        if n:
            return wcs[0]
    raise AssertionError('no completion')


def succeeds(cq, opcode):
    wc = wait(cq)
    assert (wc.status, wc.opcode) == (e.IBV_WC_SUCCESS, opcode), f'{wc}'
    return wc


def attributes(dest_qpn, lid):
    attr = QPAttr(port_num=1)
    attr.qp_access_flags = ACCESS
    attr.dest_qp_num = dest_qpn
    attr.ah_attr = AHAttr(dlid=lid, port_num=1)
    attr.path_mtu = e.IBV_MTU_1024
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
    attr.retry_cnt = attr.rnr_retry = 7
    attr.timeout = 14
    attr.min_rnr_timer = 12
    attr.qkey = QKEY
    return attr


def end(qp_type=e.IBV_QPT_RC, send_ops=None, shared=False, channel=False):
    """A context with all that one side of a connection needs."""
    s = SimpleNamespace(ctx=Context(name='softhca0'))
    s.lid = s.ctx.query_port(1).lid
    s.pd = PD(s.ctx)
    s.channel = CompChannel(s.ctx) if channel else None
    s.scq = CQ(s.ctx, 64)
    s.rcq = CQ(s.ctx, 64, None, s.channel)
    s.mr = MR(s.pd, BYTES, ACCESS)
    s.srq = SRQ(s.pd, SrqInitAttr(SrqAttr(max_wr=16, max_sge=1))) if shared else None
    cap = QPCap(max_send_wr=16, max_recv_wr=0 if shared else 16, max_inline_data=64)
    if send_ops is None:
        init = QPInitAttr(qp_type=qp_type, scq=s.scq, rcq=s.rcq, srq=s.srq, cap=cap, sq_sig_all=1)
        s.qp = QP(s.pd, init)
    else:
        mask = e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
        s.qp = QPEx(s.ctx, QPInitAttrEx(qp_type=qp_type, scq=s.scq, rcq=s.rcq, cap=cap,
                                        sq_sig_all=1, comp_mask=mask, pd=s.pd,
                                        send_ops_flags=send_ops))
    return s


def pair(**kwargs):
    a, b = end(**kwargs), end(**kwargs)
    for side, other in ((a, b), (b, a)):
        side.qp.to_rts(attributes(other.qp.qp_num, other.lid))
    return a, b


def sge(s, length=100, offset=0):
    return SGE(s.mr.buf + offset, length, s.mr.lkey)


def send(s, opcode=e.IBV_WR_SEND, remote=None, length=100, atomic=None, ah=None, imm=0):
    wr = SendWR(opcode=opcode, num_sge=1, sg=[sge(s, length)], imm_data=imm,
                send_flags=e.IBV_SEND_SIGNALED)
    if ah:
        wr.set_wr_ud(ah, remote.qp.qp_num, QKEY)
    elif atomic:
        wr.set_wr_atomic(remote.mr.rkey, remote.mr.buf, *atomic)
    elif remote:
        wr.set_wr_rdma(remote.mr.rkey, remote.mr.buf)
    s.qp.post_send(wr)


def receive(s, length=BYTES):
    (s.srq or s.qp).post_recv(RecvWR(num_sge=1, sg=[sge(s, length)]))


@case
def device():
    names = [d.name.decode() for d in get_device_list()]
    assert 'softhca0' in names
    with Context(name='softhca0') as ctx:
        attr = ctx.query_device_ex()
        assert attr.hca_core_clock == 1000000 and attr.max_dm_size > 0
        assert attr.odp_caps.general_caps == 0 and attr.phys_port_cnt_ex == 1
        assert ctx.query_port(1).state == e.IBV_PORT_ACTIVE
        assert len(ctx.query_gid_table(16)) >= 1
        clock = ctx.query_rt_values_ex()[1]
        assert clock < ctx.query_rt_values_ex()[1]


@case
def rc_messages(shared=False):
    a, b = pair(shared=shared)
    a.mr.write('x' * 100, 100)
    receive(b)
    send(a, e.IBV_WR_SEND_WITH_IMM, imm=77)
    succeeds(a.scq, e.IBV_WC_SEND)
    wc = succeeds(b.rcq, e.IBV_WC_RECV)
    assert (wc.byte_len, wc.imm_data, wc.qp_num) == (100, 77, b.qp.qp_num)
    assert b.mr.read(100, 0) == b'x' * 100


@case
def shared_receives():
    rc_messages(shared=True)


@case
def rc_remote_memory():
    a, b = pair()
    a.mr.write('w' * 100, 100)
    send(a, e.IBV_WR_RDMA_WRITE, b)
    succeeds(a.scq, e.IBV_WC_RDMA_WRITE)
    assert b.mr.read(100, 0) == b'w' * 100
    b.mr.write('r' * 100, 100)
    send(a, e.IBV_WR_RDMA_READ, b)
    succeeds(a.scq, e.IBV_WC_RDMA_READ)
    assert a.mr.read(100, 0) == b'r' * 100


@case
def rc_atomics():
    a, b = pair()
    b.mr.write((5).to_bytes(8, sys.byteorder), 8)
    send(a, e.IBV_WR_ATOMIC_FETCH_AND_ADD, b, 8, (3, 0))
    succeeds(a.scq, e.IBV_WC_FETCH_ADD)
    assert int.from_bytes(a.mr.read(8, 0), sys.byteorder) == 5
    send(a, e.IBV_WR_ATOMIC_CMP_AND_SWP, b, 8, (8, 1))
    succeeds(a.scq, e.IBV_WC_COMP_SWAP)
    assert int.from_bytes(b.mr.read(8, 0), sys.byteorder) == 1


@case
def uc():
    a, b = pair(qp_type=e.IBV_QPT_UC)
    receive(b)
    send(a)
    succeeds(a.scq, e.IBV_WC_SEND)
    succeeds(b.rcq, e.IBV_WC_RECV)


@case
def ud():
    a, b = pair(qp_type=e.IBV_QPT_UD)
    receive(b)
    send(a, remote=b, ah=AH(a.pd, attr=AHAttr(dlid=b.lid, port_num=1)))
    succeeds(a.scq, e.IBV_WC_SEND)
    wc = succeeds(b.rcq, e.IBV_WC_RECV)
    assert (wc.byte_len, wc.src_qp) == (140, a.qp.qp_num)
    receive(a)
    send(b, remote=a, ah=AH(b.pd, wc=wc, grh=b.mr.buf, port_num=1))
    succeeds(a.rcq, e.IBV_WC_RECV)


@case
def xrc():
    ctx = Context(name='softhca0')
    pd, lid = PD(ctx), ctx.query_port(1).lid
    domain = XRCD(ctx, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, 0o100,
                                    -1))
    cq = CQ(ctx, 16)
    mr = MR(pd, BYTES, ACCESS)
    attr = SrqInitAttrEx(max_wr=4)
    attr.srq_type = e.IBV_SRQT_XRC
    attr.pd, attr.xrcd, attr.cq = pd, domain, cq
    attr.comp_mask = (e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_PD |
                      e.IBV_SRQ_INIT_ATTR_CQ | e.IBV_SRQ_INIT_ATTR_XRCD)
    srq = SRQ(ctx, attr)
    target = QP(ctx, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_RECV, comp_mask=e.IBV_QP_INIT_ATTR_XRCD,
                                  xrcd=domain))
    source = QP(ctx, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_SEND, comp_mask=e.IBV_QP_INIT_ATTR_PD,
                                  pd=pd, scq=cq, sq_sig_all=1, cap=QPCap(max_send_wr=4)))
    target.to_rts(attributes(source.qp_num, lid))
    source.to_rts(attributes(target.qp_num, lid))
    srq.post_recv(RecvWR(num_sge=1, sg=[SGE(mr.buf, 100, mr.lkey)]))
    wr = SendWR(num_sge=1, sg=[SGE(mr.buf + 200, 50, mr.lkey)])
    wr.set_qp_type_xrc(srq.get_srq_num())
    source.post_send(wr)
    # The CQ holds two completions of any kind.
    refused(cq.resize, 1, error=errno.EINVAL)
    assert sorted(wait(cq).opcode for _ in range(2)) == [e.IBV_WC_SEND, e.IBV_WC_RECV]


@case
def extended_posting():
    a, b = pair(send_ops=e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_RDMA_WRITE)
    receive(b)
    a.mr.write('q' * 100, 100)
    a.qp.wr_start()
    a.qp.wr_id = 5
    a.qp.wr_flags = e.IBV_SEND_SIGNALED
    a.qp.wr_rdma_write(b.mr.rkey, b.mr.buf + 1000)
    a.qp.wr_set_sge(sge(a))
    a.qp.wr_send()
    a.qp.wr_set_inline_data(a.mr.buf, 10)
    a.qp.wr_complete()
    succeeds(a.scq, e.IBV_WC_RDMA_WRITE)
    succeeds(a.scq, e.IBV_WC_SEND)
    assert succeeds(b.rcq, e.IBV_WC_RECV).byte_len == 10
    assert b.mr.read(100, 1000) == b'q' * 100
    a.qp.wr_start()
    a.qp.wr_send_inv(1)
    refused(a.qp.wr_complete)


@case
def extended_completions():
    s = end()
    td = ParentDomain(s.ctx, ParentDomainInitAttr(pd=s.pd))
    flags = (e.IBV_WC_EX_WITH_BYTE_LEN | e.IBV_WC_EX_WITH_QP_NUM |
             e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
    cq = CQEX(s.ctx, CqInitAttrEx(cqe=8, wc_flags=flags, parent_domain=td,
                                  comp_mask=e.IBV_CQ_INIT_ATTR_MASK_PD))
    assert cq.start_poll(PollCqAttr()) == errno.ENOENT
    qp = QP(td, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(), sq_sig_all=1))
    qp.to_rts(attributes(qp.qp_num, s.lid))
    qp.post_recv(RecvWR(wr_id=3, num_sge=1, sg=[sge(s)]))
    before = s.ctx.query_rt_values_ex()[1]
    qp.post_send(SendWR(wr_id=4, num_sge=1, sg=[sge(s, 20, 2000)]))
    seen = []
    while len(seen) < 2:
        if cq.start_poll(PollCqAttr()) == 0:
            assert cq.status == e.IBV_WC_SUCCESS and cq.read_qp_num() == qp.qp_num
            assert cq.read_timestamp() >= before
            seen.append((cq.wr_id, cq.read_opcode()))
            cq.end_poll()
    assert sorted(seen) == [(3, e.IBV_WC_RECV), (4, e.IBV_WC_SEND)]


@case
def events():
    a, b = pair(channel=True)
    receive(b)
    b.rcq.req_notify()
    send(a)
    assert b.channel.get_cq_event(b.rcq) is None
    b.rcq.ack_events(1)
    succeeds(b.rcq, e.IBV_WC_RECV)
    # A wrong key breaks the target, whose program gets an event.
    b.mr.rereg(flags=e.IBV_REREG_MR_CHANGE_ACCESS, access=e.IBV_ACCESS_LOCAL_WRITE)
    send(a, e.IBV_WR_RDMA_WRITE, b)
    assert wait(a.scq).status == e.IBV_WC_SUCCESS
    assert wait(a.scq).status == e.IBV_WC_REM_ACCESS_ERR
    event = b.ctx.get_async_event()
    assert event.event_type == e.IBV_EVENT_QP_ACCESS_ERR
    event.ack()


@case
def device_memory():
    a, b = pair()
    dm = DM(b.ctx, AllocDmAttr(length=1024))
    dmmr = DMMR(b.pd, 512, ACCESS | e.IBV_ACCESS_ZERO_BASED, dm, 512)
    a.mr.write('d' * 100, 100)
    wr = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[sge(a)])
    wr.set_wr_rdma(dmmr.rkey, 4)
    a.qp.post_send(wr)
    succeeds(a.scq, e.IBV_WC_RDMA_WRITE)
    assert dm.copy_from_dm(516, 100) == b'd' * 100
    dmmr.close()
    dm.close()


@case
def resize():
    s = end()
    s.rcq.resize(1000)
    assert s.rcq.cqe >= 1000
    refused(s.rcq.resize, 1 << 30, error=errno.EINVAL)


@case
def not_offered():
    s = end()
    for kind in (e.IBV_MW_TYPE_1, e.IBV_MW_TYPE_2):
        refused(MW, s.pd, kind)
    refused(WQ, s.ctx, WQInitAttr(wq_pd=s.pd, wq_cq=s.rcq))
    refused(RwqIndTable, s.ctx, RwqIndTableInitAttr(1, []))
    refused(Flow, s.qp, FlowAttr())
    refused(CQEX, s.ctx, CqInitAttrEx(wc_flags=e.IBV_WC_EX_WITH_FLOW_TAG))
    refused(MR, s.pd, 64, e.IBV_ACCESS_ON_DEMAND)
    mask = e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
    refused(QPEx, s.ctx, QPInitAttrEx(qp_type=e.IBV_QPT_RC, scq=s.scq, rcq=s.rcq, cap=QPCap(),
                                      comp_mask=mask, pd=s.pd,
                                      send_ops_flags=e.IBV_QP_EX_WITH_TSO))
    refused(QP, s.pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=s.scq, rcq=s.rcq, cap=QPCap()))


def main():
    failed = 0
    for run in CASES:
        if len(sys.argv) > 1 and run.__name__ not in sys.argv[1:]:
            continue
        try:
            run()
            print(f'ok   {run.__name__}')
        except Exception:
            failed = 1
            print(f'FAIL {run.__name__}')
            traceback.print_exc()
    return failed


if __name__ == '__main__':
    sys.exit(main())
