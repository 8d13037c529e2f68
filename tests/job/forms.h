/* SPDX-License-Identifier: BSD-3-Clause */
/* The seventeen argument counts of active messages, as lists for macros: PARAMETERS_3 declares
 * three parameters, ARGUMENTS_3 names them, VALUES_3 takes them from an array v. Each begins with a
 * comma, so that a count of zero is nothing at all. */
#ifndef TESTS_JOB_FORMS_H
#define TESTS_JOB_FORMS_H

/* clang-format off: a table */
#define FOR_EACH_COUNT(X)                                                                          \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)

#define PARAMETERS_0
#define PARAMETERS_1  , gex_AM_Arg_t a0
#define PARAMETERS_2  PARAMETERS_1, gex_AM_Arg_t a1
#define PARAMETERS_3  PARAMETERS_2, gex_AM_Arg_t a2
#define PARAMETERS_4  PARAMETERS_3, gex_AM_Arg_t a3
#define PARAMETERS_5  PARAMETERS_4, gex_AM_Arg_t a4
#define PARAMETERS_6  PARAMETERS_5, gex_AM_Arg_t a5
#define PARAMETERS_7  PARAMETERS_6, gex_AM_Arg_t a6
#define PARAMETERS_8  PARAMETERS_7, gex_AM_Arg_t a7
#define PARAMETERS_9  PARAMETERS_8, gex_AM_Arg_t a8
#define PARAMETERS_10 PARAMETERS_9, gex_AM_Arg_t a9
#define PARAMETERS_11 PARAMETERS_10, gex_AM_Arg_t a10
#define PARAMETERS_12 PARAMETERS_11, gex_AM_Arg_t a11
#define PARAMETERS_13 PARAMETERS_12, gex_AM_Arg_t a12
#define PARAMETERS_14 PARAMETERS_13, gex_AM_Arg_t a13
#define PARAMETERS_15 PARAMETERS_14, gex_AM_Arg_t a14
#define PARAMETERS_16 PARAMETERS_15, gex_AM_Arg_t a15

#define ARGUMENTS_0
#define ARGUMENTS_1  , a0
#define ARGUMENTS_2  ARGUMENTS_1, a1
#define ARGUMENTS_3  ARGUMENTS_2, a2
#define ARGUMENTS_4  ARGUMENTS_3, a3
#define ARGUMENTS_5  ARGUMENTS_4, a4
#define ARGUMENTS_6  ARGUMENTS_5, a5
#define ARGUMENTS_7  ARGUMENTS_6, a6
#define ARGUMENTS_8  ARGUMENTS_7, a7
#define ARGUMENTS_9  ARGUMENTS_8, a8
#define ARGUMENTS_10 ARGUMENTS_9, a9
#define ARGUMENTS_11 ARGUMENTS_10, a10
#define ARGUMENTS_12 ARGUMENTS_11, a11
#define ARGUMENTS_13 ARGUMENTS_12, a12
#define ARGUMENTS_14 ARGUMENTS_13, a13
#define ARGUMENTS_15 ARGUMENTS_14, a14
#define ARGUMENTS_16 ARGUMENTS_15, a15

#define VALUES_0
#define VALUES_1  , v[0]
#define VALUES_2  VALUES_1, v[1]
#define VALUES_3  VALUES_2, v[2]
#define VALUES_4  VALUES_3, v[3]
#define VALUES_5  VALUES_4, v[4]
#define VALUES_6  VALUES_5, v[5]
#define VALUES_7  VALUES_6, v[6]
#define VALUES_8  VALUES_7, v[7]
#define VALUES_9  VALUES_8, v[8]
#define VALUES_10 VALUES_9, v[9]
#define VALUES_11 VALUES_10, v[10]
#define VALUES_12 VALUES_11, v[11]
#define VALUES_13 VALUES_12, v[12]
#define VALUES_14 VALUES_13, v[13]
#define VALUES_15 VALUES_14, v[14]
#define VALUES_16 VALUES_15, v[15]
/* clang-format on */

#endif
