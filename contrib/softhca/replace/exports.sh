#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes the exports of the replacement libibverbs.so.1 from those of the host's library: every version node, our own
# functions at their default versions, and for all the rest, older versions of our own names among it, a trampoline.
# Functions of ours that the host's library lacks, those of librdmacm, get a node of their own.
# usage: exports.sh READELF HOST-LIBRARY LIBSOFTHCA DIRECTORY; LIBSOFTHCA -: nothing is ours
# Writes into DIRECTORY: exports.map (version script), exports.inc (trampolines), exports.def (table of names).
set -eu
export LC_ALL=C
readelf=$1 host=$2 ours=$3 dir=$4

# Lines "name version kind size"; a version is @@V (default) or @V.
symbols()
{
    "$readelf" -W --dyn-syms "$1" | awk '
        $5 ~ /GLOBAL|WEAK/ && $7 != "UND" && $7 != "ABS" {
            at = index($8, "@")
            print at ? substr($8, 1, at - 1) : $8, at ? substr($8, at) : "-", $4, $3
        }' | sort -u
}

# The nodes in their order: "node parent".
nodes()
{
    "$readelf" -W -V "$1" | awk '
        /^Version definition/ { on = 1 }
        /^Version needs/ || /^Version symbols/ { on = 0 }
        !on { next }
        /Flags: BASE/ { base = 1; next }
        /Name:/ { if (node) print node, parent; node = $NF; parent = "" }
        /Parent/ { parent = $NF }
        END { if (node) print node, parent }'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
symbols "$host" >"$work/host"
: >"$work/ours"
[ "$ours" = - ] || symbols "$ours" | awk '{ print $1 }' >"$work/ours"
nodes "$host" >"$work/nodes"
[ -s "$work/host" ] && [ -s "$work/nodes" ] || {
    echo "exports.sh: $host has no versioned symbols" >&2
    exit 1
}

# Local is named by name, since "*" would also hide the trampolines, whose versions the assembler gives.
awk '
    FILENAME ~ /ours$/ { mine[$1] = 1; next }
    FILENAME ~ /host$/ {
        if (($1 in mine) && $2 ~ /^@@/) {
            node = substr($2, 3)
            own[node] = own[node] "        " $1 ";\n"
            public[$1] = 1
        }
        next
    }
    FNR == 1 {
        hidden = "        shca_export_*;\n"
        for (name in mine)
            if (name ~ /^r(dma_|socket$)/) extra = extra "        " name ";\n"
            else if (!(name in public)) hidden = hidden "        " name ";\n"
    }
    {
        printf "%s {\n", $1
        if ($1 in own) printf "    global:\n%s", own[$1]
        if (FNR == 1) printf "    local:\n%s", hidden
        printf "}%s;\n", $2 ? " " $2 : ""
    }
    END { if (extra) printf "SOFTHCA_1 {\n    global:\n%s};\n", extra }
' "$work/ours" "$work/host" "$work/nodes" >"$dir/exports.map"

# What a function answers when the host has no libibverbs: see forward.c.
awk '
    function missing(name) {
        if (name ~ /_str$/) return "SHCA_MISSING_TEXT"
        if (name ~ /^ibv_cmd_/) return "SHCA_MISSING_ERROR"
        if (name ~ /^ibv_(create|open|import|alloc|reg)_/ || name ~ /^_?verbs_(open_device|init_and_alloc_context)$/ ||
            name ~ /^ibv_get_(device_list|device_name|sysfs_path)$/ || name ~ /^rdma_(create_event_channel|get_devices)$/ || name ~ /^ibv_qp_to_qp_ex$/)
            return "SHCA_MISSING_NULL"
        if (name ~ /^(mult|mbps)_to_ibv_rate$/ || name ~ /^ibv_(is_fork_initialized|get_device_guid)$/)
            return "SHCA_MISSING_NULL"
        if (name ~ /^ibv_rate_to_/ || name ~ /sysfs_file$/ || name ~ /^ibv_(get_cq_event|get_async_event|get_pkey_index)$/ || name ~ /^r/ ||
            name ~ /^ibv_(rereg_mr|resolve_eth_l2_from_gid|get_device_index)$/)
            return "SHCA_MISSING_MINUS"
        return "SHCA_MISSING_ERROR"
    }
    FILENAME ~ /ours$/ { mine[$1] = 1; next }
    ($1 in mine) && $2 ~ /^@@/ { next }
    $2 == "-" { next }
    {
        version = $2
        gsub(/@/, "", version)
        if ($3 == "OBJECT") {
            printf "data %d, \"%s%s\", %d\n", n, $1, $2, $4 > inc
            printf "SHCA_EXPORT_DATA(%d, \"%s\", \"%s\", %d)\n", n, $1, version, $4 > def
        } else {
            printf "forward %d, \"%s%s\"\n", n, $1, $2 > inc
            printf "SHCA_EXPORT(%d, \"%s\", \"%s\", %s)\n", n, $1, version, missing($1) > def
        }
        n++
    }
' inc="$dir/exports.inc" def="$dir/exports.def" "$work/ours" "$work/host"
