#include "base/json.h"

#include <string.h>

#include "base/text.h"

json_t *qkv_json_string(const char *bytes, size_t length) {
    qkv_text utf8 = {0};
    qkv_text_append_utf8(&utf8, bytes, length);
    json_t *string = utf8.failed ? NULL : json_stringn(utf8.length ? utf8.data : "", utf8.length);
    qkv_text_release(&utf8);
    return string;
}

json_t *qkv_json_text(const char *text) {
    return qkv_json_string(text, strlen(text));
}
