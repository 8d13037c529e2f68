# SPDX-License-Identifier: BSD-3-Clause
# Sorts the sources of conduit/ by how often they must be compiled, so that the libraries of the three threading modes share
# all objects that are the same in them. Input: the names of all .c and .h files of conduit/, from the top of the source tree,
# which is also where it runs; output: variables for make.
#     conduit_client   reach base/client_mode.h: one object for each of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR
#     conduit_threads  reach base/mode.h: one with TK_THREADED=0, for SEQ and PARSYNC, and one with TK_THREADED=1, for PAR
#     conduit_any      reach neither: one object
#     conduit_segment  those of the three that reach base/segment_mode.h: others are the same for all kinds of segments
#     conduit_traced   those of the three that reach base/traced.h or, for GASNET_TRACE, gasnetex.h: the trace twins share all others
#                      with the release libraries
# Only what is included counts, not #if, so a source may be sorted too high, at the price of an object; one that is sorted too
# low does not compile, because without these headers what they define does not exist (gasnet-tools/guard.h has the rest).
# contrib/check/modes.sh proves it. Public headers are looked into as well: they include none of the three.
BEGIN {
    folders = split("conduit/ conduit/include/ conduit/include/ibv-conduit/", folder, " ")
    what["conduit/base/client_mode.h"] = "client"
    what["conduit/base/mode.h"] = "threads"
    what["conduit/base/segment_mode.h"] = "segment"
    what["conduit/base/traced.h"] = what["conduit/include/gasnetex.h"] = "traced"
}

{ file[++files] = $0; known[$0] = 1 }

# As the compiler looks for a header: beside the file that includes it, then in the folders of -I.
function found(name, from,    i, path)
{
    path = from
    sub(/[^\/]*$/, "", path)
    if (path name in known)
        return path name
    for (i = 1; i <= folders; i++)
        if (folder[i] name in known)
            return folder[i] name
    return ""
}

# What `from` includes, and all that does in turn. The marks are those of the source that is looked at.
function walk(from, source,    i, to)
{
    seen[from] = source
    if (from in what)
        reaches[source, what[from]] = 1
    if (!(from in included))
        read(from)
    for (i = 1; i <= included[from]; i++) {
        to = includes[from, i]
        if (seen[to] != source)
            walk(to, source)
    }
}

function read(from,    line, part, to)
{
    included[from] = 0
    while ((getline line < from) > 0)
        if (line ~ /^[ \t]*#[ \t]*include[ \t]*"/) {
            split(line, part, "\"")
            to = found(part[2], from)
            if (to != "")
                includes[from, ++included[from]] = to
        }
    close(from)
}

END {
    for (i = 1; i <= files; i++) {
        source = file[i]
        if (source !~ /\.c$/)
            continue
        walk(source, source)
        class = (source, "client") in reaches ? "client" : (source, "threads") in reaches ? "threads" : "any"
        list[class] = list[class] " " source
        if ((source, "segment") in reaches)
            list["segment"] = list["segment"] " " source
        if ((source, "traced") in reaches)
            list["traced"] = list["traced"] " " source
    }
    classes = split("any threads client segment traced", name, " ")
    for (i = 1; i <= classes; i++)
        print "conduit_" name[i] " =" list[name[i]]
}
