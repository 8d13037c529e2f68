/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether two function types have the same call at machine level: as many parameters, of the same
 * sizes, pointers for pointers. Enumerations and structs may have other names. C++ only. */
#ifndef SAME_H
#define SAME_H

#include <cstddef>
#include <type_traits>

template <class Ours, class Theirs> struct same_type {
    static constexpr bool value = sizeof(Ours) == sizeof(Theirs) &&
                                  std::is_pointer<Ours>::value == std::is_pointer<Theirs>::value &&
                                  std::is_class<Ours>::value == std::is_class<Theirs>::value;
};

template <class Ours, class Theirs> struct same {
    static constexpr bool value = false;
};

template <class R, class... A, class S, class... B> struct same<R(A...), S(B...)> {
    template <class... P> struct list {
    };
    template <class P, class Q> struct all {
        static constexpr bool value = false;
    };
    template <class P, class... Ps, class Q, class... Qs>
    struct all<list<P, Ps...>, list<Q, Qs...>> {
        static constexpr bool value =
            same_type<P, Q>::value && all<list<Ps...>, list<Qs...>>::value;
    };
    template <class Last> struct all<list<>, Last> {
        static constexpr bool value = std::is_same<Last, list<>>::value;
    };
    static constexpr bool value = same_type<R, S>::value && all<list<A...>, list<B...>>::value;
};

#define SAME_PLACE(ours, field, theirs, their_field)                                               \
    (offsetof(ours, field) == offsetof(theirs, their_field) &&                                     \
     sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field))

#endif
