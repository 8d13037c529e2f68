#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The options of configure that set defaults of the library: each legal form sets the default that
# it names, every other form is refused in one line, and the library uses the default. The test
# stops configure where it looks for a compiler: by then it has parsed the options.
# shellcheck source=tests/install/common.sh
. "${top_srcdir:?}/tests/install/common.sh"
make_scratch
cd "$scratch" || exit 1

# gives 'HCAS|PORTS|FENCED' OPTION...
gives()
{
    want=$1
    shift
    "$top_srcdir/configure" -q CC=/bin/false "$@" >log 2>&1
    # The compiler's part of the log repeats the defines behind a bar.
    got=$(for name in MAX_HCAS IBV_PORTS FENCED_PUTS; do
        sed -n "s/^#define TK_DEFAULT_$name \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" config.log | tail -n 1
    done | paste -s -d '|')
    [ "$got" = "$want" ] || fail "configure $*: '$got', not '$want'"
    rm -f config.log
}

# refuses WORDS OPTION...
refuses()
{
    words=$1
    shift
    "$top_srcdir/configure" -q CC=/bin/false "$@" >log 2>&1 && fail "configure takes $*"
    grep -q -e "^configure: error: $words" log || fail "configure $* does not say '$words' but: $(head -n 3 log)"
    rm -f config.log
}

gives '1||0'
gives '2||0' --enable-ibv-multirail
gives '4||0' --with-ibv-max-hcas=4
gives '1||0' --with-ibv-max-hcas=1 --enable-ibv-multirail
gives '1||0' --disable-ibv-multirail --with-ibv-max-hcas=4
gives '40|mlx5_0:1,2++mlx5_3|1' --with-ibv-ports=mlx5_0:1,2++mlx5_3 --with-ibv-fenced-puts --with-ibv-max-hcas=40
gives '1||0' --without-ibv-ports --without-ibv-fenced-puts
gives '1||0' --enable-segment-everything --disable-segment-large
refuses '--enable-segment-large=some is neither yes nor no' --enable-segment-large=some
refuses 'of --enable-segment-fast, -large and -everything only one' --enable-segment-large --enable-segment-everything
refuses '--enable-ibv-multirail=4 is neither yes nor no' --enable-ibv-multirail=4
refuses '--with-ibv-max-hcas=0 is not a number from 1 to 9999' --with-ibv-max-hcas=0
refuses '--with-ibv-max-hcas=yes is not a number' --with-ibv-max-hcas
refuses '--with-ibv-ports needs a list' --with-ibv-ports
refuses '--with-ibv-ports=a: is not of the form' --with-ibv-ports=a:
refuses '--with-ibv-ports=a b is not of the form' '--with-ibv-ports=a b'
refuses '--with-ibv-fenced-puts=maybe is neither 0 nor 1' --with-ibv-fenced-puts=maybe

# Directories that .mak, .pc and -rpath could not quote
takes_apart='has a character that makefiles and linkers of clients take apart; choose a directory of letters'
blank=$(printf '/opt/a\tb')
for directory in '/opt/a b' "$blank" '/opt/a#b' '/opt/a,b' "/opt/a'b"; do
    refuses "--prefix=$directory $takes_apart" "--prefix=$directory"
done
for option in exec-prefix libdir docdir; do
    refuses "--$option=/opt/a b $takes_apart" "--$option=/opt/a b"
done
# shellcheck disable=SC2016 # make's variable
gives '1||0' --prefix=/opt/a-b_1.2+c=@~/é '--libdir=${exec_prefix}/lib64' '--docdir=${datarootdir}/doc/${PACKAGE_TARNAME}'

# The other options, one NAME of a define after another: has WANT NAME OPTION...
has()
{
    want=$1 name=$2
    shift 2
    "$top_srcdir/configure" -q CC=/bin/false "$@" >log 2>&1
    got=$(sed -n "s/^#define TK_$name \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" config.log | tail -n 1)
    [ "$got" = "$want" ] || fail "configure $*: TK_$name is '$got', not '$want'"
    rm -f config.log
}
# kinds 'CLASSES' OPTION...: the enabled memory kinds
kinds()
{
    want=$1
    shift
    "$top_srcdir/configure" -q CC=/bin/false "$@" >log 2>&1
    got=$(sed -n "s/^tk_kinds='\(.*\)'$/\1/p" config.log)
    got=$(sed -n "s/^TRUNKLINE_KIND_.*_LINE='define TRUNKLINE_KIND_\(.*\) 1'$/ \1/p" config.log | tr -d '\n')
    [ "$got" = "$want" ] || fail "configure $*: memory kinds are '$got', not '$want'"
    rm -f config.log
}
kinds ' CUDA_UVA HIP ZE'
kinds ' CUDA_UVA HIP ZE' --enable-memory-kinds --enable-kind-cuda-uva --enable-kind-hip=probe --with-cuda-home=/opt/cuda \
    --with-cuda-cflags=-I/opt/cuda/include --with-cuda-ldflags=-L/opt/cuda/lib --with-cuda-libs=-lcuda --with-hip-home=/opt/rocm
kinds ' CUDA_UVA ZE' --disable-kind-hip
kinds '' --disable-memory-kinds
kinds ' HIP' --disable-memory-kinds --enable-kind-hip
refuses '--enable-kind-ze=maybe is neither yes, probe nor no' --enable-kind-ze=maybe
refuses '--enable-memory-kinds=some is neither yes, probe nor no' --enable-memory-kinds=some
has 65536 MAX_MEDIUM
has 952 MAX_MEDIUM_LUB_TEXT --with-ibv-max-medium=1024
has 262144 MAX_MEDIUM --with-ibv-max-medium=262144
has ssh DEFAULT_SPAWNER
has mpi DEFAULT_SPAWNER --with-ibv-spawner=mpi
has local DEFAULT_SPAWNER --with-ibv-spawner=local
has '1.5 GiB' DEFAULT_PHYSMEM_MAX '--with-ibv-physmem-max=1.5 GiB'
has -1 DEFAULT_USE_XRC
has 0 DEFAULT_USE_XRC --disable-ibv-xrc
has ' ibv-rcv-thread=no ibv-odp=yes ibv-serialize-poll-cq=no' UNUSED_OPTIONS --disable-ibv-rcv-thread \
    --enable-ibv-odp --disable-ibv-serialize-poll-cq
for size in 512 1000 524288 yes; do
    refuses "--with-ibv-max-medium=$size is not a power of two from 1024 to 262144" --with-ibv-max-medium=$size
done
refuses '--with-ibv-spawner=rsh is not one of ssh, local, mpi, pmi' --with-ibv-spawner=rsh
refuses '--with-ibv-physmem-max=much is neither a size nor a fraction' --with-ibv-physmem-max=much
refuses '--enable-ibv-xrc=2 is neither yes nor no' --enable-ibv-xrc=2
refuses '--enable-ibv-srq=0 is neither yes nor no' --enable-ibv-srq=0
"$top_srcdir/configure" --help >log
for option in with-ibv-max-medium with-ibv-spawner with-ibv-physmem-max enable-ibv-physmem-probe disable-ibv-rcv-thread \
    disable-ibv-snd-thread disable-ibv-conn-thread disable-ibv-srq disable-ibv-xrc disable-ibv-odp disable-ibv-serialize-poll-cq; do
    grep -q -e "--$option" log || fail "configure --help does not list --$option"
done

# Buffers and rings for the smallest and the largest message.
cat >fits.c <<END
#include "config.h"
#include "transport/shm/shm_private.h"
#include "transport/verbs/data/buffer.h"
_Static_assert(tk_message_max == TK_MAX_MEDIUM, "the limit is what configure was told");
_Static_assert(tk_buffer_stride >= tk_am_buffer_size && tk_buffer_size == tk_message_max, "any message fits a buffer");
_Static_assert(tk_message_max - 8 - 4 * tk_max_args >= 512, "the interface's least Medium fits");
_Static_assert(tk_shm_lines <= tk_ring_lines_max && tk_message_max <= tk_shm_payload / 2, "a ring holds two");
_Static_assert(tk_message_max / tk_ring_line < TK_RING_SLOT / tk_shm_slots, "positions in a ring stay apart");
_Static_assert(tk_ring_slot_max + tk_message_max / tk_ring_line < tk_tag_bit, "a slot's word can say how many lines");
END
for size in 1024 262144; do
    sed "s/^#define TK_MAX_MEDIUM .*/#define TK_MAX_MEDIUM $size/" "$top_builddir/config.h" >config.h
    # shellcheck disable=SC2046 # options
    ${TRUNKLINE_TEST_CC:-cc} -fsyntax-only -DGASNET_SEQ=1 -I. -I"$top_srcdir" -I"$top_srcdir/conduit" -I"$top_srcdir/conduit/include" \
        -I"$top_srcdir/conduit/include/ibv-conduit" -I"$top_builddir/conduit/include" \
        $(pkg-config --cflags hwloc pmix libibverbs librdmacm) fits.c || fail "messages of $size bytes"
done

# The table of settings, compiled with another default.
sed 's/^#define TK_DEFAULT_IBV_PORTS .*/#define TK_DEFAULT_IBV_PORTS "mlx5_9"/' "$top_builddir/config.h" >config.h
cat >show.c <<END
#include "config.h"
#include "settings/settings.h"
int main(void)
{
    tk_settings_print(stdout);
    return 0;
}
END
# shellcheck disable=SC2086 # a command and its options
${TRUNKLINE_TEST_CC:-cc} -I. -I"$top_srcdir" -I"$top_srcdir/conduit" -o show show.c "$top_srcdir/conduit/settings/settings_table.c" \
    "$top_srcdir/conduit/settings/settings_print.c" || fail "the table of settings does not compile by itself"
./show | grep -A1 '^GASNET_IBV_PORTS$' | grep -q 'default mlx5_9' || fail "GASNET_IBV_PORTS has not the default of the build"

# Compares --help with configure's defaults and with the settings.
"$top_srcdir/configure" --help | awk '/^  --/ { printf "\n" } { sub(/^ +/, " "); printf "%s", $0 }' >help # one line an option
"$top_srcdir/configure" -q CC=/bin/false >log 2>&1
# says OPTION TEXT
says()
{
    grep -e "^ --$1[ =@,[]" help | grep -qF -e "$2" || fail "configure --help: --$1 is '$(grep -e "^ --$1[ =@,[]" help)' and lacks '$2'"
}
while read -r option name; do
    value=$(sed -n "s/^#define TK_$name \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" config.log | tail -n 1)
    says "$option" "(default: ${value:-empty}"
done <<END
with-ibv-max-medium MAX_MEDIUM
with-ibv-spawner DEFAULT_SPAWNER
with-ibv-physmem-max DEFAULT_PHYSMEM_MAX
with-ibv-ports DEFAULT_IBV_PORTS
disable-ibv-xrc DEFAULT_USE_XRC
enable-ibv-multirail DEFAULT_MAX_HCAS
END
# If an option has no effect, the setting of the same name has none either, and both give the same
# reason.
grep -F 'accepted' help | grep -vF 'accepted, no effect: ' | grep -vF 'accepted, no effect, as GASNET_USE_FENCED_PUTS: ' && fail "configure --help: accepted, but with which effect?"
for row in "with-ibv-fenced-puts GASNET_USE_FENCED_PUTS" "enable-ibv-physmem-probe GASNET_PHYSMEM_PROBE"; do
    setting=${row#* }
    ./show | grep -A1 "^$setting\(,.*\)*$" | grep -q 'accepted, no effect' || fail "$setting acts, and configure --help says that it does not"
    says "${row% *}" "$(./show | grep -A2 "^$setting\(,.*\)*$" | sed -n '3s/^ *//p')"
done
# The other settings that help names exist and act.
grep -F 'accepted, no effect: ' help | grep -oE 'GASNET_[A-Z_]+' | grep -v '^GASNET_PHYSMEM_PROBE$' | sort -u >named
for setting in $(cat named); do
    ./show | grep -A1 "^$setting$" | grep -q '(default' || fail "configure --help refers to $setting, which does not act"
done
[ "$(wc -l <named)" -ge 5 ] || fail "configure --help refers to $(wc -l <named) settings only"
# Connecting needs no thread because ranks are connected on first use: the default of a setting.
./show | grep -A1 '^GASNET_CONNECT_STATIC$' | grep -q '(default 0;' && says enable-ibv-conn-thread 'when one first uses the other'
rm -f config.log

# The log of the start names such a default; a library without such a default has no such line.
# shellcheck disable=SC2086 # a command and its options
tell()
{
    ${TRUNKLINE_TEST_CC:-cc} "$@" -DGASNET_SEQ=1 -O1 -I"$top_srcdir" -I"$top_srcdir/conduit" -I"$top_srcdir/conduit/include" \
        -I"$top_srcdir/conduit/include/ibv-conduit" -I"$top_builddir/conduit/include" $(pkg-config --cflags hwloc pmix libibverbs librdmacm) \
        -c -o tell.o "$top_srcdir/conduit/start/report.c" || fail "tell.c does not compile by itself"
    strings -a tell.o
}
tell -I. | grep -q '^GASNET_IBV_PORTS=%s is the default of this build' || fail "the record does not name the default"
tell -I"$top_builddir" | grep 'default of this build' && fail "the record names a default that is none"
finish
