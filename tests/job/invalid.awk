# SPDX-License-Identifier: BSD-3-Clause
# From the public headers, preprocessed: calls of each function with each object among its parameters invalid, the others valid.
# Writes C: a function for each, all in one line, and their table (invalid.h).
# usage: cc -E -P ... | awk -f invalid.awk
BEGIN {
    object["gex_Client_t"] = "client"
    object["gex_EP_t"] = "ep"
    object["gex_TM_t"] = object["gasnet_team_handle_t"] = "tm"
    object["gex_Segment_t"] = "segment"
    object["gex_MK_t"] = "mk"
    object["gex_AD_t"] = "ad"
    object["gex_Token_t"] = object["gasnet_token_t"] = "token"
    object["gex_AM_SrcDesc_t"] = "srcdesc"
    object["gex_Event_t"] = object["gasnet_handle_t"] = object["gasnet_coll_handle_t"] = "event"
    print "/* Made by invalid.awk. */"
    print "#include \"config.h\""
    print "#include \"tests/job/invalid.h\""
    lines = 3
}

{ text = text " " $0 }

END {
    while (gsub(/\{[^{}]*\}/, ";", text))
        continue
    count = split(text, declared, ";")
    for (i = 1; i <= count; i++)
        if (match(declared[i], /[ *](gex|gasnet)_[A-Za-z0-9_]+ *\(/) && declared[i] !~ /typedef/)
            one_function(substr(declared[i], 1, RSTART), substr(declared[i], RSTART + 1))
    print "const struct invalid_call invalid_calls[] = {"
    for (i = 1; i <= calls; i++)
        print "    {" entry[i] "},"
    print "};"
    print "const unsigned invalid_count = " calls + 0 ";"
}

# The type of a parameter, without its name.
function type_of(parameter)
{
    gsub(/^ +| +$/, "", parameter)
    if (parameter ~ /[*[]/)
        return parameter ~ /^(const )?gex_Event_t \*lc_opt/ ? "lc_opt" : "pointer"
    sub(/ [A-Za-z0-9_]+$/, "", parameter)
    return parameter
}

function valid(type)
{
    if (type == "lc_opt")
        return "GEX_EVENT_NOW"
    if (type == "pointer")
        return "(void *)invalid_buffer"
    if (type in object)
        return "valid_objects." object[type]
    return type ~ /^(size_t|uintptr_t)$/ ? "8" : "0"
}

function one_function(result, rest,    name, n, parameter, k, j, bad)
{
    name = rest
    sub(/ *\(.*/, "", name)
    sub(/^[^(]*\(/, "", rest)
    sub(/\)[^)]*$/, "", rest)
    n = split(rest, parameter, ",")
    for (k = 1; k <= n; k++)
        if (type_of(parameter[k]) in object && !((name, k) in was))
            one_call(result, name, parameter, n, k)
}

function one_call(result, name, parameter, n, bad,    args, j, type, returns)
{
    was[name, bad] = 1
    for (j = 1; j <= n; j++) {
        type = type_of(parameter[j])
        args = args (j > 1 ? ", " : "") (j == bad ? "invalid_objects." object[type] : valid(type))
    }
    returns = result ~ /(^|[^a-z_])int *$/ && name ~ /^gex_(EP|Segment|MK|System)_/
    calls++
    lines++
    print "static int call_" calls "(void) { " (returns ? "return " name "(" args ");" : "(void)" name "(" args "); return 0;") " }"
    type = type_of(parameter[bad])
    entry[calls] = "\"" name "\", \"" object[type] "\", " lines ", " (returns ? "true" : "false") ", call_" calls
}
