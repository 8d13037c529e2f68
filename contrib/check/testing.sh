#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Counts the tests as doc/testing.md does, and fails when a number there is off by more than a tenth: one more test needs no update,
# a kind of tests that was removed or has doubled does. A number stands in the second column of a table, behind the words that name
# it here; elsewhere the page has none that could grow old.
# usage: testing.sh              (through make check)
#        testing.sh --update     writes the numbers as they are; in a configured tree, with top_builddir
#        testing.sh --count      prints them
set -u
export LC_ALL=C
cd "${top_srcdir:-$(dirname "$0")/../..}" || exit 2
built=${top_builddir:-.}
page=doc/testing.md
bad=0

files() { find "$@" | grep -c .; }
code() { find "$@" -type f -name '*.[chS]' ! -path '*/fuzz/*' -print0 | xargs -0 cat | grep -c '[^[:space:]]'; }

# cases FOLDER...: what cmocka runs there
cases()
{
    find "$@" -name '*.c' -print0 | xargs -0 cat | awk '
        /CMUnitTest [a-z_]+\[\] = {/ { inside = 1; sub(/.*{/, "") }
        inside { count += gsub(/[A-Za-z_]+\(/, "") }
        /};/ { inside = 0 }
        END { print count + 0 }'
}

# rows FILE NAME: of the table of that name, by their braces
rows()
{
    awk -v name=" $2[]" '
        index($0, name) && /= {$/ { inside = 1; next }
        /^}/ { inside = 0 }
        inside { gsub(/"[^"]*"/, ""); count += gsub(/{/, "") }
        END { print count + 0 }' "$1"
}

# exit_cells part|whole: of the matrix of exits
exit_cells()
(
    sanitizer=no # what the lines of the script ask for
    eval "$(sed -n '/^all_scenarios=/p; /^is_for_threads/p; /^sizes=/p; /^part()/,/^}/p; /^whole()/,/^}/p' tests/job/exit_matrix.sh)"
    "$1" | grep -c .
)

# tier VARIABLE: how many tests make knows; none in a tree that lacks what some of them need
tier()
{
    printf 'show:\n\t@$(info $(if $(filter yes,$(have_cmocka)),$(words $(%s)))):\n' "$1" |
        env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$built" -f - -f Makefile show 2>/dev/null |
        grep -x '[0-9]*' # make may configure again first, and say so
}

# What the page says, and how many there are
counts()
{
    echo "lines of the product|$(code common conduit spawner contrib/softhca contrib/softgpu contrib/roce contrib/mcswitch contrib/trace contrib/report contrib/info)"
    echo "lines of tests|$(find tests -name '*.[ch]' -o -name '*.cc' -o -name '*.sh' -o -name '*.py' | sort | xargs cat | grep -c '[^[:space:]]')"
    echo "assertions|$(find tests -name '*.[ch]' -print0 | xargs -0 cat | grep -v '#' | grep -oE '\b(assert_[a-z_]+|CHECK[A-Z_]*|EXPECT[A-Z_]*)\(' | grep -c .)"
    echo "rules with a number|$(grep -cE '^\| ([0-9]+|[KSH][0-9]+) \|' tests/rules.md)"

    echo "unit cases of the library|$(cases tests/unit)"
    echo "unit cases of the launcher|$(cases tests/launcher)"
    echo "unit cases of packets and the switch|$(cases tests/roce tests/mcswitch)"
    echo "unit cases of the workloads|$(cases tests/workloads)"
    echo "programs against the software device|$(find tests/softhca -name '*.c' -exec grep -l '^int main' {} + | grep -c .)"
    echo "programs against the software accelerator|$(find tests/softgpu -name '*.c' -exec grep -l '^int main' {} + | grep -c .)"
    echo "programs that run as jobs|$(grep -c '^$(call job,' tests/job/programs.mk)"
    echo "scripts that run them|$(files tests/job -name '*.sh' ! -name common.sh ! -name accelerator.sh)"
    echo "mistakes of clients|$(grep -cE '^ *wrong [0-9]+ ' tests/job/misuse.sh)"
    echo "ways out of a job, by size, mode and transport|$(exit_cells whole)"
    echo "of these in make check|$(exit_cells part)"
    echo "scripts of the launcher|$(files tests/launcher -name '*.sh' ! -name lib.sh ! -name fake_ssh.sh)"
    echo "names of the interface|$(cat tests/interface/{names,tools-names,platform-names,compat}.txt | grep -c '^[^#]')"
    echo "scripts of the installed copy|$(files tests/install -name '*.sh' ! -name common.sh)"
    echo "scripts in virtual machines|$(files tests/vm -name 'guest-*.sh' ! -name guest-lib.sh ! -name guest-all.sh)"
    echo "recorded conversations of the kernel|$(files tests/roce/frames -name '*.pcap')"
    echo "rules of the house|$(files contrib/check -name '*.sh')"

    echo "kinds of faults of the software device|$(rows contrib/softhca/fault/fault_parse.c kinds)"
    echo "tests that use them|$(grep -rlE 'SOFTHCA_FAULT|softhca fault|"(delay|late|drop|rnr|error|enomem|kill|unplug)[:"]' tests --include='*.c' --include='*.sh' | grep -c .)"
    echo "links that break between machines|$(grep -cE '^ *(breaks|refused) ' tests/vm/guest-failures.sh)"
    echo "targets of fuzzing|$(cat contrib/*/fuzz/targets.c | grep -oE '\{"[a-z]+", ' | wc -l)"
    echo "inputs that are kept|$(files tests/softhca/corpus tests/roce/corpus tests/mcswitch/core/golden -type f)"

    echo "programs under weak memory|$(grep -rhE '^(static )?const struct weak_program [a-z_]+ = ' tests/unit --include='test_*.c' | grep -c .)"
    echo "scenarios of the simulated switch|$(rows tests/mcswitch/sim/scenarios.c scenarios)"

    echo "orders of memory taken out|$(grep -rhE '\bassert_(wrong|lost)\(|\bweak_assert_(wrong|lost)\(' tests/unit --include='test_*.c' | grep -vc static)"
    echo "faults in the switch|$(($(rows tests/mcswitch/sim/mutants.c mutants) - 1))"
    echo "faults in the workloads|$(cat tests/workloads/*/*_parameters.c | grep -cE '^ *\[[a-z_]+\] = \{"[a-z-]+", "[A-Za-z0-9]+", ')"

    echo "make check|$(tier TESTS)"
    echo "make check-quick|$(tier quick_tests)"
    echo "make check-sanitizer|$(tier sanitizer_tests)"
    echo "make check-tsan|$(tier tsan_tests)"
    echo "make check-kinds|$(tier accelerator_tests)"
    echo "make check-vm|$(tier vm_tests)"
}

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
counts >"$work/counts"
case ${1-} in
--count)
    cat "$work/counts"
    exit
    ;;
--update)
    awk -F '|' -v OFS='|' '
        NR == FNR { count[$1] = $2; next }
        /^\|/ { name = $2; gsub(/^ +| +$/, "", name); if (count[name] != "") $3 = " " count[name] " " }
        { print }' "$work/counts" $page >"$work/page" && cat "$work/page" >$page
    exit
    ;;
esac

# What is not counted in this tree is not compared. A tenth, so that what is fewer than ten is exact.
awk -F '|' -v page=$page '
    NR == FNR { count[$1] = $2; next }
    /^\|/ {
        name = $2
        gsub(/^ +| +$/, "", name)
        if (name in count) {
            seen[name]++
            off = $3 - count[name]
            if (count[name] != "" && (off < 0 ? -off : off) > int(count[name] / 10))
                print page " says " $3 + 0 " of \"" name "\", and there are " count[name] ": run contrib/check/testing.sh --update"
        } else if ($3 ~ /^ *[0-9]+ *$/)
            print page ":" FNR ": \"" name "\" is counted by nobody"
        next
    }
    {
        gsub(/`[^`]*`/, "")
        if (/(^|[^0-9A-Za-z.-])[0-9][0-9]+($|[^0-9A-Za-z-])/)
            print page ":" FNR ": a number that nobody counts: put it into a table"
    }
    END {
        for (name in count)
            if (seen[name] != 1)
                print page " has \"" name "\" " seen[name] + 0 " times"
    }' "$work/counts" $page >"$work/wrong"
if [ -s "$work/wrong" ]; then
    cat "$work/wrong"
    bad=1
fi
[ "$(wc -l <"$work/counts")" -ge 25 ] || { echo "only $(wc -l <"$work/counts") numbers were counted"; bad=1; }
exit $bad
