/*
 * Going through JSON text in place, member by member.
 *
 * For files whose bulk is one long array or object of strings, a vocabulary, where a tree of all
 * values would take many times the file's size. Values are spans of the text; small ones are handed
 * to jansson, which checks them in full.
 */
#ifndef QKV_FORMAT_JSON_SCAN_H
#define QKV_FORMAT_JSON_SCAN_H

#include <stddef.h>

#include "base/text.h"

typedef struct qkv_json_span {
    const char *text; /* NULL: no such value */
    size_t length;
} qkv_json_span;

typedef struct qkv_json_scan {
    const char *at, *end;
    int is_object, any;
} qkv_json_scan;

/* The whole text as one value; text NULL where it is none. */
qkv_json_span qkv_json_whole(const char *text, size_t length);

/* 1 when the value is an object or array, whose members can then be gone through. */
int qkv_json_open(qkv_json_scan *scan, qkv_json_span value);
/* 1 and the next member (key, of objects, with its quotes), 0 after the last, -1 when the text is
 * malformed. */
int qkv_json_next(qkv_json_scan *scan, qkv_json_span *key, qkv_json_span *value);

/* 1 when the value is the string. */
int qkv_json_equals(qkv_json_span value, const char *string);
/* Appends the bytes of a string value: 1, or 0 when it is not a string. */
int qkv_json_append_string(qkv_json_span value, qkv_text *out);
/* 1 when the value is a number. */
int qkv_json_number(qkv_json_span value, double *number);

#endif
