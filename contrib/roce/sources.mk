# SPDX-License-Identifier: BSD-3-Clause
# RoCE v2 packets and the end of a connection, without sockets: what softhca's wire between hosts is made of. A new source file is
# added here.
roce_sources = \
    $(patsubst %,contrib/roce/packet/%.c,crc crc_clmul crc_table frame icrc opcode packet pcap) \
    $(patsubst %,contrib/roce/endpoint/%.c,answer datagram endpoint execute queue refuse requester responder response timer window)
$(call variant,roce,$$(AM_CPPFLAGS) -I$$(srcdir)/contrib/roce $$(AM_CFLAGS) -fvisibility=hidden $$(pic))
roce_objects := $(call objects,roce,$(roce_sources))
roce_library = contrib/roce/libroce.a
$(call archive,$(roce_library),$(roce_objects))
