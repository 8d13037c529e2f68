/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that gasnet_report writes, for it and for gasnetrun_ibv --report. */
#ifndef TRUNKLINE_COMMON_REPORT_FILE_H
#define TRUNKLINE_COMMON_REPORT_FILE_H

#include <stdbool.h>

/* Whether writing a report to this name destroys nothing but a report: there is no such file, or it
 * is empty, or no regular file, or it begins as a page does (as the data of one: is_json). A file
 * that can't be read is left to the writer's error. */
bool tk_report_is_replaceable(const char *name, bool is_json);

#endif
