/* JSON beyond what jansson offers. */
#ifndef QKV_BASE_JSON_H
#define QKV_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/text.h"

/* As json_loadb and json_dumps, and the same under every locale of the host. `flags` are jansson's,
 * `where` may be NULL; what qkv_json_dump returns is freed with free(). */
json_t *qkv_json_parse(const char *text, size_t length, size_t flags, json_error_t *where);
char *qkv_json_dump(const json_t *value, size_t flags);

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
/* The words between commas, without blanks around them, as a list of strings; "" is an empty list. */
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
