# SPDX-License-Identifier: BSD-3-Clause
# One rank of a job, in a program that has the library opened at run time: Python, by ctypes. Every rank puts its number into the
# segment of the next one, and asks that for a sum until it has been answered a few hundred times; in PAR also from another thread.
#   loaded_late.py LIBRARY
import ctypes
import sys
import threading
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_uint, c_uint8, c_void_p

SHORT, REQUEST, REPLY = 1 << 0, 1 << 3, 1 << 4
QUESTIONS = 300
SEGMENT = 1 << 16


class Entry(ctypes.Structure):
    _fields_ = [("index", c_uint8), ("function", c_void_p), ("flags", c_uint), ("nargs", c_uint), ("cdata", c_void_p), ("name", c_char_p)]


library = ctypes.CDLL(sys.argv[1])
for name in "gex_Coll_BarrierNB", "gex_AM_PrepareRequestMedium", "gex_AM_SrcDescAddr", "gex_Segment_QueryAddr":
    getattr(library, name).restype = c_void_p
library.gex_AM_PrepareRequestMedium.argtypes = [c_void_p, c_uint, c_void_p, c_size_t, c_size_t, c_void_p, c_uint, c_uint]
library.trunkline_rails_error.restype = c_char_p
args_of = c_int32 * 3
client, ep, tm, segment = c_void_p(), c_void_p(), c_void_p(), c_void_p()
answers = []


# Three arguments: what has up to two goes another way, which takes them as one integer.
@CFUNCTYPE(None, c_void_p, c_int32, c_int32, c_int32)
def ask(token, a, b, c):
    library.trunkline_am_reply_short(c_void_p(token), c_int(answer_index), 0, 3, args_of(a + b + c, b, c))


@CFUNCTYPE(None, c_void_p, c_int32, c_int32, c_int32)
def answer(token, total, b, c):
    answers.append(total)


@CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
def prepared(token, buffer, nbytes):
    assert ctypes.string_at(buffer, nbytes) == b"prepared"


def ask_all(to):
    for i in range(QUESTIONS):
        before = len(answers)
        assert library.trunkline_am_request_short(tm, c_uint(to), c_int(ask_index), 0, 3, args_of(i, i, 1)) == 0
        while len(answers) == before:
            library.gasnet_AMPoll()
        assert answers[-1] == 2 * i + 1
    # What a thread keeps beside static TLS
    descriptor = library.gex_AM_PrepareRequestMedium(tm, to, None, 8, 8, None, 0, 0)
    ctypes.memmove(library.gex_AM_SrcDescAddr(c_void_p(descriptor)), b"prepared", 8)
    library.trunkline_am_commit_request_medium(c_void_p(descriptor), c_int(prepared_index), c_size_t(8), 0, None)
    assert library.trunkline_rails_error() == b""


def barrier():
    library.gex_Event_Wait(c_void_p(library.gex_Coll_BarrierNB(tm, 0)))


assert library.gex_Client_Init(byref(client), byref(ep), byref(tm), b"loaded late", None, None, 0) == 0
assert library.gex_Segment_Attach(byref(segment), tm, c_size_t(SEGMENT)) == 0
table = (Entry * 3)(
    Entry(0, ctypes.cast(ask, c_void_p), SHORT | REQUEST, 3, None, b"ask"),
    Entry(0, ctypes.cast(answer, c_void_p), SHORT | REPLY, 3, None, b"answer"),
    Entry(0, ctypes.cast(prepared, c_void_p), SHORT << 1 | REQUEST, 0, None, b"prepared"),
)
assert library.gex_EP_RegisterHandlers(ep, table, c_size_t(3)) == 0
ask_index, answer_index, prepared_index = (entry.index for entry in table)
rank, size = library.gex_TM_QueryRank(tm), library.gex_TM_QuerySize(tm)
other = (rank + 1) % size
barrier()
ask_all(other)
if "-par" in sys.argv[1]:
    for _ in range(2):
        thread = threading.Thread(target=ask_all, args=(other,))
        thread.start()
        thread.join()
barrier()
print("rank", rank, "was answered", len(answers), "times", flush=True)
library.gasnet_exit(0)
