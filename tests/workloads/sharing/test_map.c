/* SPDX-License-Identifier: BSD-3-Clause */
/* H1: connections, clients, rails and places are one to one, and every group of threads has its own
 * connections. */
#include "config.h"

#include "map.h"
#include "unit.h"

static void every_connection_has_a_place_of_its_own(void **state)
{
    for (uint32_t clients = 1; clients <= 8; clients++)
        for (uint32_t qps = clients; qps <= 64; qps += clients)
            for (uint32_t rails = 1; rails <= 4; rails++) {
                bool taken[8][4][64] = {{{false}}};
                uint32_t count[8] = {0};
                for (uint32_t i = 0; i < qps; i++) {
                    struct sharing_place place = sharing_map(i, qps, clients, rails);
                    assert_true(place.client < clients && place.rail == i % rails);
                    /* as many places on a rail as connections: all are used */
                    assert_true(place.local <= (qps / clients - 1) / rails);
                    assert_false(taken[place.client][place.rail][place.local]);
                    taken[place.client][place.rail][place.local] = true;
                    count[place.client]++;
                    assert_true(place.local == 0 ||
                                taken[place.client][place.rail][place.local - 1]);
                }
                for (uint32_t c = 0; c < clients; c++)
                    assert_int_equal(count[c], qps / clients);
            }
}

static void groups_own_all_connections(void **state)
{
    for (uint32_t threads = 1; threads <= 8; threads++)
        for (uint32_t degree = 1; degree <= threads; degree++) {
            unsigned owned[8] = {0};
            if (threads % degree)
                continue;
            for (uint32_t i = 0; i < 64; i++)
                owned[sharing_group(i, threads, degree)]++;
            for (uint32_t g = 0; g < threads / degree; g++)
                assert_true(owned[g] >= 64 / (threads / degree));
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_connection_has_a_place_of_its_own),
    cmocka_unit_test(groups_own_all_connections),
};
UNIT_MAIN(tests)
