/*
 * A place in the text of an edit or a capture, for those who read it: notation.c and notation_ops.c.
 */
#ifndef QKV_RUN_NOTATION_CURSOR_H
#define QKV_RUN_NOTATION_CURSOR_H

#include "run/indices.h"
#include "run/notation.h"

typedef struct qkv_cursor {
    const qkv_notation *notation;
    const char *kind; /* "edit" or "capture", for messages */
    const char *text; /* NUL-terminated copy of the whole */
    const char *at;
    const char *part;  /* where what is being read begins: what a message is about */
    const char *stops; /* characters that end it */
    const char *pairs; /* behind the '[' of tokens with '<-'; NULL: they have none */
    qkv_error *err;
} qkv_cursor;

/* From here on messages are about the next part, up to one of `stops`. */
void qkv_cursor_begin(qkv_cursor *c, const char *stops);

/* Fails with a message that names the whole text, and notes which part it is about. */
int qkv_cursor_fail(qkv_cursor *c, int status, const char *format, ...) QKV_PRINTF(3, 4);

/* Goes past the character and returns 1 where it stands at the cursor. */
int qkv_cursor_take(qkv_cursor *c, char wanted);

/* A number without a sign at the cursor; 0 when there is none. */
int qkv_cursor_number(qkv_cursor *c, int64_t *value);

/* The tokens that selectors may name. */
qkv_axis qkv_cursor_tokens(const qkv_cursor *c);

/* OP[:ARGS], behind the '=' (notation_ops.c). */
int qkv_notation_op(qkv_cursor *c, qkv_edit *edit);

#endif
