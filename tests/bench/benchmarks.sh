#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/bench/benchmarks: a part that fails or lacks its tools keeps its old section and is named; the others are measured, and stay after
# a signal; the head of the page says which sections are of which commit; neither the page itself nor files that git does not know are
# uncommitted changes; the seconds of the parts are printed. With a make that prints what it is told, in a tree of its own.
set -u
command -v git >/dev/null || { echo "skipped: no git"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
tree=$dir/tree page=$dir/tree/doc/benchmarks.md
export HANGING='' BROKEN='' BENCH_LOOK_SECONDS=0.1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

fail()
{
    echo "benchmarks.sh: $*" >&2
    cat "$dir/out" "$page" >&2
    exit 1
}

# run STATUS ARGUMENTS
run()
{
    local wanted=$1 status
    shift
    PATH=$dir/bin:$PATH "$tree/tests/bench/benchmarks" "$@" >"$dir/out" 2>&1
    status=$?
    [ $status -eq "$wanted" ] || fail "benchmarks $*: status $status, not $wanted"
}

# has FILE WORDS, hasnt FILE WORDS: one of its lines
has()
{
    grep -q -- "$2" "$1" || fail "${1##*/} has no line with '$2'"
}

hasnt()
{
    ! grep -q -- "$2" "$1" || fail "${1##*/} has a line with '$2'"
}

# section PART: of the page
section()
{
    awk -v heading="(\`make bench-$1\`)" '/^## / { on = index($0, heading) } on' "$page" >"$dir/section"
}

mkdir -p "$dir/bin" "$tree/tests/bench" "$tree/doc"
cp "${top_srcdir:?}/tests/bench/benchmarks" "$tree/tests/bench/"
cat >"$dir/bin/make" <<'END'
#!/bin/sh
case $* in
*bench-kv) [ -n "$BROKEN" ] && { echo "kv: no server" >&2; exit 2; } ;;
*bench-rails) [ -n "$HANGING" ] && exec sleep 60 ;;
*bench-instructions) [ -n "$BROKEN" ] && { echo "SKIP: no callgrind"; exit 2; } ;;
esac
echo "  CC  some.c"
echo "table of $*"
END
mkdir -p "$tree/contrib/pictures" "$tree/doc/pictures"
cat >"$tree/contrib/pictures/make-pictures" <<'END'
#!/bin/sh
[ -n "$BROKEN" ] && { echo "make-pictures: no rows" >&2; exit 2; }
echo "picture of $2" >"$3"
END
chmod 755 "$dir/bin/make" "$tree/contrib/pictures/make-pictures"
printf '# Benchmarks\n\n## K (`make bench-kv`)\n\n2026-01-02, commit abc1234; some CPU.\n\n    old table\n' >"$page"
git -C "$tree" init -q && git -C "$tree" add . && git -C "$tree" -c user.name=a -c user.email=a@b commit -q -m a || fail "no repository"
head=$(git -C "$tree" rev-parse --short HEAD)
echo generated >"$tree/untracked"

BROKEN=yes run 1 --any-load kv rma instructions
has "$dir/out" "failed, and kept as it was: kv: kv: no server"
has "$dir/out" "failed, and kept as it was: instructions: left out: no callgrind"
has "$dir/out" "no picture: .*part verbs"
section kv && has "$dir/section" "old table"
section rma && has "$dir/section" "table of .*bench-rma" && has "$dir/section" "commit $head; "
hasnt "$page" "some.c"
has "$page" "The sections are of 2 commits"
has "$page" "^- 2026-01-02, abc1234: kv$"
run 0 --any-load kv
section kv && has "$dir/section" "commit $head; "
has "$page" "^All sections are of commit $head\.$"
run 0 --any-load
has "$dir/out" "aim 900: met"
[ "$(grep -c '^==> *[0-9]* *[a-z-]*$' "$dir/out")" -eq "$(grep -c '^## ' "$page")" ] || fail "not each part has its seconds"
has "$page" "^All sections are of commit $head\.$"
has "$tree/doc/pictures/benchmarks.svg" "picture of"
echo old >"$tree/doc/pictures/benchmarks.svg"
BROKEN=yes run 1 --any-load rma
has "$dir/out" "failed, and kept as it was: the picture: make-pictures: no rows"
has "$tree/doc/pictures/benchmarks.svg" "old"
run 0 --check
run 2 --check kv
run 2 --out

# A signal ends the part that runs, and keeps the ones before it.
HANGING=yes PATH=$dir/bin:$PATH "$tree/tests/bench/benchmarks" --any-load collectives rails kv >"$dir/out" 2>&1 &
hanging=$!
for ((i = 0; i < 200; i++)); do
    ! grep -q '==> Two rails' "$dir/out" || break
    sleep 0.05
done
sed -i 's/table of .*bench-\(collectives\|rails\)/earlier &/' "$page"
kill $hanging
wait $hanging
[ $? -eq 1 ] || fail "a signal is not status 1"
has "$dir/out" "stopped; 1 parts are in"
section collectives && hasnt "$dir/section" "earlier"
section rails && has "$dir/section" "earlier"
echo "# changed" >>"$tree/tests/bench/benchmarks"
run 0 --any-load kv
has "$page" "^- [0-9-]*, $head and uncommitted changes: kv$"
sed -i 's/, rma,/,/' "$page"
run 1 --check
run 0 --head
run 0 --check
has "$page" "rails, working-set, rma, atomics\|working-set, rma, atomics"

# By hand, without what make sets: one line.
for script in kv rma pairs_table; do
    env -u GASNETRUN -u top_builddir "$top_srcdir/tests/bench/$script" >"$dir/out" 2>&1
    [ $? -eq 2 ] && [ "$(wc -l <"$dir/out")" -eq 1 ] || fail "$script without GASNETRUN"
    has "$dir/out" "^$script: GASNETRUN and top_builddir are not set: run it by make bench-"
done
