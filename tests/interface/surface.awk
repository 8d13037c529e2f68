# SPDX-License-Identifier: BSD-3-Clause
# Writes a source file that includes one public header and uses each of its names as names.txt says. Variables: header, mode
# (SEQ ...), language (c or c++). First file: missing.txt, whose names are left out; second: names.txt. How many names were
# used goes to standard error.
BEGIN {
    FS = " [|]( |$)"
    print "#include <" header ">"
    print "#include <stddef.h>\n#include <stdint.h>"
    if (language == "c++")
        print "#include <type_traits>\n#define SAME(expected, expression) static_assert(std::is_same<std::decay<decltype(expression)>::type, expected>::value, #expression)"
    else
        print "#define SAME(expected, expression) (void)_Generic((expression), expected: 0)\n#define static_assert _Static_assert"
    print "#define TEXT(x) #x\n#define TEXT_OF(x) TEXT(x)"
    unit = header
    gsub(/[^a-z]/, "_", unit)
    print "extern int check_" unit "(int number, void *pointer);"
}

FILENAME == ARGV[1] { if (!/^#/) missing[$1]; next }
/^#/ || $3 != header || ($1 in missing) { next }
{
    name = $1
    what = $5
    owner = name
    sub(/[.].*/, "", owner)
    if (owner in missing)
        next
    count++
}

# Like a prototype and a call; if it is not a macro, a pointer to it must fit as well.
$4 == "call" {
    result = what
    sub(/ *[(].*/, "", result)
    types = what
    sub(/^[^(]*[(]/, "", types)
    sub(/[)]$/, "", types)
    declared = passed = prototype = ""
    arguments = variable = 0
    n = types == "" ? 0 : split(types, type, /, */)
    for (i = 1; i <= n; i++) {
        if (type[i] == "...") {
            variable = 1
            continue
        }
        times = 1
        if (type[i] ~ /^[0-9]/) {
            times = type[i] + 0
            sub(/^[0-9]+ /, "", type[i])
        }
        while (times-- > 0) {
            comma = arguments++ ? ", " : ""
            declared = declared comma type[i] " a" arguments
            passed = passed comma "a" arguments
            prototype = prototype comma type[i]
        }
    }
    if (declared == "")
        declared = prototype = "void"
    use(passed)
    if (variable) {
        use(passed ", -1")
        use(passed ", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16")
    } else
        print "#ifndef " name "\nextern " result " (*const pointer_" name ")(" prototype ");\n" result " (*const pointer_" name ")(" prototype ") = " name ";\n#endif"
}

function use(arguments,  call, function_) {
    call = name "(" arguments ")"
    function_ = "use" ++uses "_" name "(" declared ")"
    print "void " function_ ";\nvoid " function_ "\n{"
    if (result != "void")
        print "    SAME(" result ", " call ");\n    (void)" call ";"
    else if (language == "c++")
        print "    static_assert(std::is_void<decltype(" call ")>::value, \"" name "\");\n    " call ";"
    else
        print "    (void)sizeof((0 ? (void)0 : " call "), 0);\n    " call ";"
    print "}"
}

$4 == "type" {
    if (what == "pointer")
        check("SAME(" name ", (" name ")0); static_assert(sizeof(" name ") == sizeof(void *), \"" name "\");")
    else if (what == "")
        print "typedef char size_of_" name "[sizeof(" name ")];"
    else
        print "typedef " alias(what, "same_" name) ";\nextern " name " object_" name ";\nextern same_" name " object_" name ";"
}
$4 == "field" {
    field = name
    sub(/^[^.]*[.]/, "", field)
    type_name = "field" ++fields
    print "typedef " alias(what, type_name) ";"
    check("{ " type_name " *of_field = &((" owner " *)pointer)->" field "; (void)of_field; }")
}
# "void (*)()" with the name where a declaration has it
function alias(declaration, new_name) {
    if (declaration ~ /[(][*][)]/)
        sub(/[(][*][)]/, "(*" new_name ")", declaration)
    else
        declaration = declaration " " new_name
    return declaration
}

$4 == "number" {
    print "#if !defined(" name ") || (" (what == "" ? name " + 0 < 0" : name " != (" what ")") ")\n#error \"" name " is not " what "\"\n#endif"
    check("static_assert((" name ") >= 0, \"" name "\");")
}
$4 == "constant" { check("static_assert((" name ") == (" what "), \"" name "\");") }
$4 == "value" {
    split(what, side, / *= */)
    check("SAME(" side[1] ", " name ");")
    if (side[2] != "")
        check("number += ((uintptr_t)" name " != (uintptr_t)" side[2] ");")
}
$4 == "string" { check("pointer = (void *)(uintptr_t)(\"\" " name " \"\");" (what == "" ? "" : " number += __builtin_strcmp(" name ", " what ") != 0;")) }
$4 == "token" {
    print "#ifndef " name "\n#error \"" name " is not defined\"\n#endif"
    if (what != "")
        check("number += __builtin_strcmp(TEXT_OF(" name "), \"" what "\") != 0;")
}
$4 == "initializer" { check("{ static " what " initialized = " name "; pointer = &initialized; }") }
$4 == "statement" { check("{ " what " }") }
$4 == "mode" { what = name == "GASNET_" mode ? "1" : "undefined" }
$4 == "feature" || $4 == "mode" {
    if (what == "undefined")
        print "#ifdef " name "\n#error \"" name " is defined\"\n#endif"
    else
        print "#if " (what == "1" ? "!defined(" name ") || " name " != 1" : "defined(" name ") && " name " != 1") "\n#error \"" name " is not 1\"\n#endif"
}

function check(statement) { checks = checks "    " statement "\n" }

END {
    print "int check_" unit "(int number, void *pointer)\n{\n" checks "    (void)pointer;\n    return number;\n}"
    print count + 0 >"/dev/stderr"
}
