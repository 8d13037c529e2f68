#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# gasnetrun_ibv --report writes a page about a job, however the job ends and on whatever hosts it runs, keeps its status, leaves
# nothing behind, and says what the page lacks.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
command -v python3 >/dev/null || skip "python3 is not here"
export GASNET_SUPERNODE_MAXSIZE=1
tool=$top_builddir/contrib/report/gasnet_report

# holds FILE RANKS HOSTS [WORD...]: the data of the page are of so many ranks with statistics and hosts, and contain the words.
holds()
{
    python3 - "$@" >"$scratch/holds" 2>&1 <<'END' || failed "$(cat "$scratch/holds")"
import json, re, sys
name, ranks, hosts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
page = open(name, encoding="utf-8").read()
data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
if not data or not page.rstrip().endswith("</html>"):
    sys.exit(f"{name}: not a whole page")
text = data.group(1)
print(text[:2000])
model = json.loads(text)
