#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The simulated scenarios of the multicast switch at the lengths of doc/multicast.md; some ten seconds on two processors.
exec "${top_builddir:-.}/tests/mcswitch/sim/scenarios" whole
