/*
 * Growing text and UTF-8.
 *
 * A qkv_text starts as {0} and is freed with qkv_text_release. Appending after memory ran short
 * does nothing and leaves `failed` set, so that a long series of appends needs one check at its
 * end.
 */
#ifndef QKV_BASE_TEXT_H
#define QKV_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct qkv_text {
    char *data; /* NUL-terminated once anything was appended */
    size_t length;
    size_t capacity;
    int failed;
} qkv_text;

void qkv_text_append(qkv_text *text, const char *bytes, size_t length);
void qkv_text_puts(qkv_text *text, const char *string);
void qkv_text_printf(qkv_text *text, const char *format, ...) QKV_PRINTF(2, 3);
/* The shortest decimal number that reads back as the same double. */
void qkv_text_append_number(qkv_text *text, double value);
void qkv_text_release(qkv_text *text);

/* Decodes one code point: returns how many bytes it took (1 to 4), 0 at the end. A malformed byte
 * gives U+FFFD and 1. */
size_t qkv_utf8_decode(const char *bytes, size_t length, uint32_t *code);
/* Encodes one code point into 1 to 4 bytes and returns how many. */
size_t qkv_utf8_encode(uint32_t code, char out[4]);
int qkv_utf8_valid(const char *bytes, size_t length);

/* How many bytes the first `most` characters take. */
size_t qkv_utf8_prefix(const char *bytes, size_t length, size_t most);

/* How many bytes at the end are the beginning of a character whose rest is still to come. */
size_t qkv_utf8_unfinished(const char *bytes, size_t length);

/* A piece of text made fit for one line of a terminal, table or label: control characters become
 * their escapes (\n, \t, \xNN; \uNNNN for those that turn or break lines), malformed UTF-8 becomes
 * \xNN. */
void qkv_text_append_visible(qkv_text *text, const char *bytes, size_t length);

/* The same, cut after `most` characters, with an ellipsis: for names that a file brings along. */
void qkv_text_append_short(qkv_text *text, const char *bytes, size_t length, size_t most);
#define QKV_ELLIPSIS "\xe2\x80\xa6"

/* One character of that, NUL-terminated; returns how many bytes it stands for. Needs no memory. */
enum { QKV_VISIBLE_SIZE = 16 };
size_t qkv_visible_next(const char *bytes, size_t length, char out[QKV_VISIBLE_SIZE]);

/* As it is where it is UTF-8, else made visible: for formats that hold nothing but UTF-8. */
void qkv_text_append_utf8(qkv_text *text, const char *bytes, size_t length);

/* Characters of ASCII, whatever the host's locale says about other bytes. */
int qkv_is_space(char byte);
int qkv_is_letter(char byte);
char qkv_lower(char byte);
int qkv_equal_ignoring_case(const char *a, const char *b);

/* 1 when a file begins as text does: with no NUL among its first 8 bytes, where safetensors has a
 * length, whose first byte may be a brace or a space. */
int qkv_begins_as_text(const void *bytes, size_t n);

/* What a word for n things ends with: "" for one of them, else "s". */
const char *qkv_plural(uint64_t n);

/* For qsort and bsearch of an array of strings: by their bytes. */
int qkv_compare_strings(const void *a, const void *b);

#endif
