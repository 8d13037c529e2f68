# SPDX-License-Identifier: BSD-3-Clause
# The multicast switch: the core without I/O, the daemon, the core between two captures, and the simulator. A new source file is added
# here. Installed only with --enable-mcswitch.
mcsw_core_sources = $(patsubst %,contrib/mcswitch/core/%.c,aggregate control copy deparse icrc_cache layout lock neighbour parse request response \
    strict switch table)
mcsw_flags = $(AM_CPPFLAGS) -I$(srcdir)/contrib/mcswitch -I$(srcdir)/contrib/roce $(AM_CFLAGS)
$(call variant,mcsw,$$(mcsw_flags))
mcsw_library = contrib/mcswitch/libmcsw.a
$(call archive,$(mcsw_library),$(call objects,mcsw,$(mcsw_core_sources)))

$(call variant,mcsw-alone,$$(mcsw_flags))
$(call variant,sim,$$(mcsw_flags))
$(call variant,mcswitchd,$$(mcsw_flags) -I$$(srcdir)/conduit)
mcswitch_client_sources = common/sha256.c conduit/mcswitch/client.c conduit/mcswitch/protocol.c
mcswitchd_sources = $(mcswitch_client_sources) common/number.c \
    $(patsubst %,contrib/mcswitch/daemon/%.c,admin bridge control frames group loop main options port request stat switch wire)
mcswitchd = contrib/mcswitch/mcswitchd
$(call program,$(mcswitchd),$(call objects,mcswitchd,$(mcswitchd_sources)),$(mcsw_library) $(roce_library))

mcsw_replay = contrib/mcswitch/replay/mcsw-replay
$(call program,$(mcsw_replay),$(call objects,mcsw-alone,$(patsubst %,contrib/mcswitch/replay/%.c,main setup)),$(mcsw_library) $(roce_library))
$(if $(filter yes,$(enable_mcswitch)),$(eval all_products += $(mcswitchd) $(mcsw_replay)))

# Broadcasts among simulated members. options.c is compiled with each program, because a build with the switch's mutants knows one
# more.
sim_library = contrib/mcswitch/libsim.a
$(call archive,$(sim_library),$(call objects,sim,$(patsubst %,contrib/mcswitch/sim/%.c,card control controller hostile ledger member net queue \
    report switches traffic world)))
mcsw_sim = contrib/mcswitch/mcsw-sim
$(call program,$(mcsw_sim),$(call objects,sim,$(patsubst %,contrib/mcswitch/sim/%.c,main options)),$(sim_library) $(mcsw_library) $(roce_library))

# The speed of the core alone; nothing of it is part of make check, because a busy machine says nothing about the code.
$(call program,contrib/mcswitch/bench/mcsw-bench,$(call objects,mcsw-alone,contrib/mcswitch/bench/main.c),$(mcsw_library) $(roce_library))
bench-mcsw: contrib/mcswitch/bench/mcsw-bench
	contrib/mcswitch/bench/mcsw-bench
.PHONY: bench-mcsw
extra_products += $(mcswitchd) $(mcsw_replay) $(mcsw_sim) contrib/mcswitch/bench/mcsw-bench
