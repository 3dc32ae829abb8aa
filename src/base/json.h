/* JSON beyond what jansson offers. */
#ifndef QKV_BASE_JSON_H
#define QKV_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/text.h"

/* As json_loadb and json_dumps, and the same under every locale of the host. `flags` are jansson's, `where` may be
 * NULL; what qkv_json_dump returns is freed with free(). It is NULL when memory is short, was short when the value
 * was built, or when there is no value; jansson's own forgets keys then. */
json_t *qkv_json_parse(const char *text, size_t length, size_t flags, json_error_t *where);
/* 1 when that gave NULL for want of memory, and not because of the text. */
int qkv_json_lacked_memory(const json_t *value, const json_error_t *where);
char *qkv_json_dump(const json_t *value, size_t flags);
/* The same into a stream: 0, or -1 when memory is or was short. Whether it could be written is the stream's to
 * tell. */
int qkv_json_print(const json_t *value, FILE *stream, size_t flags);

/*
 * Building objects and lists. `value` is taken over, also where this fails. It fails when memory is short,
 * which a NULL for `value` says too. Then the object or list is spoiled: it is of no type any more, and neither
 * it nor what it is part of can be rendered, copied or read as what it was meant to be. So a long series needs
 * one check, at its end, and nothing is ever left out unnoticed. 0 or -1, as jansson's json_object_set_new and
 * json_array_append_new, which are used nowhere else. `into` may be NULL: one that could not be made.
 */
int qkv_json_put(json_t *into, const char *key, json_t *value);
int qkv_json_push(json_t *into, json_t *value);
int qkv_json_replace(json_t *into, size_t index, json_t *value);
/* All members of `from`; those that are there already are kept, or replaced. */
int qkv_json_put_missing(json_t *into, const json_t *from);
int qkv_json_put_all(json_t *into, const json_t *from);
/* Another object with the same members, which are not copied. NULL when memory is short, or for what is not an object. */
json_t *qkv_json_copy(const json_t *object);
/* 1 when it could not be made, or was spoiled. Parts of it are not looked at. */
int qkv_json_is_spoiled(const json_t *value);

/* About how many bytes parsing would take: small values, such as {}, take hundreds of times their text. To
 * be asked before a stranger's text is parsed. */
size_t qkv_json_cost(const char *text, size_t length);

/* A string of bytes that need not be UTF-8: malformed ones become escapes. NULL when memory is
 * short. */
json_t *qkv_json_string(const char *bytes, size_t length);
/* The same of a whole C string. */
json_t *qkv_json_text(const char *text);

/* null where the number is not finite. */
json_t *qkv_json_real(double value);
/* The words between commas, without spaces around them, as a list of strings; "" is an empty list. */
json_t *qkv_json_words(const char *text);

/* A text that is UTF-8 as a string in quotes, as part of a line that is put together by hand. */
void qkv_json_append(qkv_text *line, const char *text);

/* A number that reads back as the same double; one that is whole, however it was written, as an
 * integer. NULL when memory is short; null for what is not finite. */
json_t *qkv_json_exact(double value);
/* A value as compact text, keys as they come. Unlike jansson's, numbers are as short as they can be;
 * what is not ASCII is escaped. */
void qkv_json_append_value(qkv_text *text, const json_t *value);

#endif
