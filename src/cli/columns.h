/* Text for a terminal: how wide it is (characters of East Asia take two columns, accents none), and what
 * of it may be printed. */
#ifndef QKV_CLI_COLUMNS_H
#define QKV_CLI_COLUMNS_H

#include <stddef.h>

#include "base/text.h"
#include "qkv/model.h"

/* Of text that qkv_text_append_visible made. */
size_t cli_columns(const char *text);
/* Prints it with blanks behind it up to a width. */
void cli_print_padded(const char *text, size_t width);

/* A token between quotes, so that blanks show, control characters as their escapes; an id without
 * text as #ID. */
void cli_append_token(qkv_text *out, const qkv_model *model, int32_t token);

/* Control characters as escapes, except line breaks and tabs: texts must not drive the terminal. */
void cli_append_printable(qkv_text *out, const char *text, size_t length);

#endif
