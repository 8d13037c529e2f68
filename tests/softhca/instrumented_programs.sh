#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# softhca preloaded into unusual programs: built with AddressSanitizer, run under valgrind, and two fabrics side by
# side.
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare "ibverbs-utils or valgrind" ibv_rc_pingpong ibv_devinfo valgrind

# Objects that live until the end (the helper thread) are no leaks.
together valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
    ibv_rc_pingpong -n 10 -c

cat >"$work/program.c" <<'C'
#include <infiniband/verbs.h>
int main(void)
{
    static char memory[4096];
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    ibv_free_device_list(list);
    return !mr || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || ibv_close_device(context);
}
C
# shellcheck disable=SC2086,SC2154 # the compiler may have options; work is the common file's
if ${TRUNKLINE_TEST_CC:-cc} -fsanitize=address "$work/program.c" -o "$work/program" -libverbs >"$work/out" 2>&1; then
    ASAN_OPTIONS=verify_asan_link_order=0 with "$work/program" >"$work/out" 2>&1 || {
        fail "a program with AddressSanitizer ended with $?"
        cat "$work/out"
    }
fi

# Two pairs at once, each in a fabric of its own; the numbers of their queue pairs may be the same.
# shellcheck disable=SC2030,SC2031 # each has its own files and port
(
    work=$work/left port=$((port + 100)) SOFTHCA_FABRIC=left-$$
    mkdir "$work" && together ibv_rc_pingpong -n 2000 -c
) &
left=$!
SOFTHCA_FABRIC=right-$$ together ibv_rc_pingpong -n 2000 -c
wait $left || fail "the other fabric"
finish
