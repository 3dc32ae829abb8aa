/*
 * A place in the text of an edit or a capture, for those who read it: notation.c and notation_ops.c.
 */
#ifndef QKV_RUN_NOTATION_CURSOR_H
#define QKV_RUN_NOTATION_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "run/notation/indices.h"
#include "run/notation/notation.h"

typedef struct qkv_cursor {
    const qkv_notation *notation;
    const char *kind; /* "edit" or "capture", for messages */
    const char *text; /* NUL-terminated copy of the whole */
    const char *at;
    const char *part;  /* where what is being read begins: what a message is about */
    const char *stops; /* characters that end it */
    const char *pairs; /* after the '[' of tokens with '<-'; NULL: they have none */
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

/* A finite number that F32 holds in full precision, up to `stop` (0: the rest). `what` it is, for messages. */
int qkv_cursor_float(qkv_cursor *c, char stop, float *value, const char *what);

/* ,seed=N, or nothing. */
int qkv_cursor_seed(qkv_cursor *c, qkv_edit *edit);

/* The rest of the text, read by an operation whose arguments have names (qkv_arguments_read). */
int qkv_cursor_read(qkv_cursor *c, qkv_edit *edit,
                    int (*parse)(qkv_edit *, const char *, qkv_error *));

/* The tokens that selectors may name. */
qkv_axis qkv_cursor_tokens(const qkv_cursor *c);

/* OP[:ARGS], after the '=' (notation_ops.c). */
int qkv_notation_op(qkv_cursor *c, qkv_edit *edit);

/*
 * Arguments of operations that have several, by name: `sink=4,recent=256`.
 */

/* One argument: a whole number, or one of some words. */
typedef struct qkv_argument {
    const char *name;
    int64_t *value; /* keeps what it has where the argument is not given */
    int64_t least, most;
    const char *words; /* "avg|max": the value is the number of the word; NULL: a number */
    int is_needed;
} qkv_argument;

/* Reads all of the text. A message says what is wrong without naming the edit. */
int qkv_arguments_read(const char *text, const qkv_argument *list, size_t n, qkv_error *err);

#endif
