/* Text for a terminal: how wide it is (characters of East Asia take two columns, accents none), and what
 * of it may be printed. */
#ifndef QKV_CLI_COLUMNS_H
#define QKV_CLI_COLUMNS_H

#include <stddef.h>

#include "base/text.h"
#include "qkv/model.h"

/* Of text that qkv_text_append_visible made. */
size_t cli_columns(const char *text);
/* What to print of a text: all of it, or nothing where memory was short. Then what is printed is incomplete, and
 * main ends with an error for all who print: cli_is_incomplete. */
const char *cli_shown(const qkv_text *text);
int cli_is_incomplete(void);

/* A token between quotes, so that spaces show, control characters as their escapes; an id without
 * text as #ID. */
void cli_append_token(qkv_text *out, const qkv_model *model, int32_t token);

/* Control characters as escapes, except line breaks and tabs: texts must not drive the terminal. */
void cli_append_printable(qkv_text *out, const char *text, size_t length);

#endif
