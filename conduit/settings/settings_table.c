/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of settings, made from settings.def. Constant data, no lock. */
#include "config.h"

#include <stddef.h>

#include "settings/settings.h"

#define AT(field) offsetof(struct tk_settings, field)

const struct tk_setting tk_setting_table[] = {
#define TK_INT(field, name, def, min, max, unit, scope, help)                                      \
    {name, TK_SETTING_INT, AT(field),        def,  min,        max, NULL,                          \
     NULL, unit,           TK_SCOPE_##scope, help, TK_FORM_ANY},
#define TK_REAL(field, name, def, min, max, unit, scope, help)                                     \
    {name, TK_SETTING_REAL,  AT(field), def,        min, max, NULL, NULL,                          \
     unit, TK_SCOPE_##scope, help,      TK_FORM_ANY},
#define TK_SIZE(field, name, def, min, max, unit, scope, help)                                     \
    {name, TK_SETTING_SIZE,  AT(field), def,        min, max, NULL, NULL,                          \
     unit, TK_SCOPE_##scope, help,      TK_FORM_ANY},
#define TK_BOOL(field, name, def, scope, help)                                                     \
    {name, TK_SETTING_BOOL,  AT(field), def,        0, 1, NULL, NULL,                              \
     "",   TK_SCOPE_##scope, help,      TK_FORM_ANY},
#define TK_TEXT(field, name, def, scope, help)                                                     \
    {name, TK_SETTING_TEXT, AT(field), 0, 0, 0, def, NULL, "", TK_SCOPE_##scope, help, TK_FORM_ANY},
#define TK_FORM(field, name, def, form, scope, help)                                               \
    {name, TK_SETTING_TEXT, AT(field), 0, 0, 0, def, NULL, "", TK_SCOPE_##scope,                   \
     help, TK_FORM_##form},
#define TK_CHOICE(field, name, def, words, scope, help)                                            \
    {name, TK_SETTING_CHOICE, AT(field), 0,          0, 0, def, words,                             \
     "",   TK_SCOPE_##scope,  help,      TK_FORM_ANY},
#define TK_ONE_OF(field, name, def, words, unit, scope, help)                                      \
    {name,  TK_SETTING_INT, AT(field),        def,  INT32_MIN,  INT32_MAX, NULL,                   \
     words, unit,           TK_SCOPE_##scope, help, TK_FORM_ANY},
#define TK_RETIRED(name, help)                                                                     \
    {name, TK_SETTING_RETIRED, 0, 0, 0, 0, NULL, NULL, "", TK_SCOPE_RANK, help, TK_FORM_ANY},
#define TK_IGNORED(name, help)                                                                     \
    {name, TK_SETTING_IGNORED, 0, 0, 0, 0, NULL, NULL, "", TK_SCOPE_RANK, help, TK_FORM_ANY},
#define TK_TOOLS(name, def, form, help)                                                            \
    {name, TK_SETTING_TOOLS, 0, 0, 0, 0, def, NULL, "", TK_SCOPE_RANK, help, TK_FORM_##form},
#define TK_SWITCH(name, def, help)                                                                 \
    {name, TK_SETTING_SWITCH, 0, 0, 0, 1, def, NULL, "", TK_SCOPE_RANK, help, TK_FORM_ANY},
#include "settings/settings.def"
};

const size_t tk_setting_count = sizeof(tk_setting_table) / sizeof(tk_setting_table[0]);
