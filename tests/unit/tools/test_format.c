/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Texts about data types, operations, tokens and memory: they are names, fit into the requested
 * size, and contain the right numbers. */
#include "config.h"

#include <sys/mman.h>

#include "gasnetex.h"
#include "gasnet_tools.h"
#include "unit.h"

static void names_need_the_size_that_they_report(void **state)
{
    char text[1024];
    assert_int_equal(gasnett_format_dt(text, GEX_DT_DBL), strlen("GEX_DT_DBL") + 1);
    assert_string_equal(text, "GEX_DT_DBL");
    assert_int_equal(gasnett_format_dt(NULL, GEX_DT_DBL), strlen("GEX_DT_DBL") + 1);
    gasnett_format_op(text, GEX_OP_FADD | GEX_OP_USER_NC);
    assert_string_equal(text, "GEX_OP_FADD|GEX_OP_USER_NC");
    gasnett_format_ti(text, GEX_TI_ALL);
    assert_string_equal(text, "GEX_TI_SRCRANK|GEX_TI_ENTRY|GEX_TI_IS_REQ|GEX_TI_IS_LONG|GEX_TI_EP");
    for (int bit = 0; bit < 32; bit++) {
        assert_int_equal(gasnett_format_op(NULL, 1u << bit), gasnett_format_op(text, 1u << bit));
        assert_int_equal(gasnett_format_op(NULL, 1u << bit), strlen(text) + 1);
    }
    gasnett_format_dt(text, 0x80000000u);
    assert_string_equal(text, "0x80000000");
}

static void lists_fit_and_are_summed_up(void **state)
{
    enum { count = 50 };
    void *const top = (void *)(UINTPTR_MAX - 100000);
    gex_Memvec_t list[count];
    void *addresses[count];
    for (int i = 0; i < count; i++) {
        list[i] = (gex_Memvec_t){(char *)top + 100 * i, (size_t)i + 1};
        addresses[i] = list[i].gex_addr;
    }
    char *text = malloc(gasnett_format_memveclist_bufsz(count));
    gasnett_memveclist_stats_t s = gasnett_format_memveclist(text, count, list);
    assert_true(strlen(text) < gasnett_format_memveclist_bufsz(count));
    assert_int_equal(s.minsz, 1);
    assert_int_equal(s.maxsz, count);
    assert_int_equal(s.totalsz, count * (count + 1) / 2);
    assert_ptr_equal(s.minaddr, top);
    assert_ptr_equal(s.maxaddr, (char *)top + 100 * (count - 1) + count - 1);
    gasnett_addrlist_stats_t a = gasnett_format_addrlist(text, count, addresses, 10);
    assert_ptr_equal(a.maxaddr, (char *)top + 100 * (count - 1) + 9);
    s = gasnett_format_memveclist(text, 0, NULL);
    assert_null(s.minaddr);
    free(text);
}

static void transfers_tell_their_bytes(void **state)
{
    const gex_Memvec_t to[] = {{NULL, 6}}, from[] = {{NULL, 2}, {NULL, 4}};
    void *const places[] = {NULL, NULL};
    const ptrdiff_t strides[] = {PTRDIFF_MIN, PTRDIFF_MAX};
    const size_t counts[] = {3, 5};
    char text[2048];
    assert_true(gasnett_format_putvgetv_bufsz(1, 2) < sizeof(text));
    assert_int_equal(gasnett_format_putvgetv(text, GEX_TM_INVALID, 7, 1, to, 2, from), 6);
    unit_assert_says(text, "rank 7");
    assert_int_equal(gasnett_format_putigeti(text, GEX_TM_INVALID, 0, 2, places, 8, 1, places, 16),
                     16);
    assert_int_equal(gasnett_format_putsgets(text, NULL, GEX_TM_INVALID, 0, NULL, strides, NULL,
                                             strides, 4, counts, 2),
                     60);
    assert_true(strlen(text) < gasnett_format_putsgets_bufsz(2));
    gasnett_format_strides(text, 2, strides);
    assert_true(strlen(text) < gasnett_format_strides_bufsz(2));
}

static void diagnostics_pass_in_each_section_and_take_no_handlers(void **state)
{
    gex_AM_Entry_t *table = NULL;
    int count = -1;
    gasnett_diagnostic_gethandlers(&table, &count);
    assert_non_null(table);
    assert_int_equal(count, 0);
    static const char *const sections[] = {"", "A", "H", "L", "T", "none of these"};
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        assert_int_equal(
            gasnett_run_diagnostics(1000, 4, sections[i], GEX_TM_INVALID, NULL, 0, NULL), 0);
}

static void pages_can_be_had(void **state)
{
    char *pages = gasnett_mmap(2 * GASNETT_PAGESIZE);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal((uintptr_t)pages % GASNETT_PAGESIZE, 0);
    assert_int_equal(pages[2 * GASNETT_PAGESIZE - 1], 0);
    munmap(pages, 2 * GASNETT_PAGESIZE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_need_the_size_that_they_report),
    cmocka_unit_test(lists_fit_and_are_summed_up),
    cmocka_unit_test(transfers_tell_their_bytes),
    cmocka_unit_test(diagnostics_pass_in_each_section_and_take_no_handlers),
    cmocka_unit_test(pages_can_be_had),
};
UNIT_MAIN(tests)
