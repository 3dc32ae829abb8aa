#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

void qkv_json_append(qkv_text *line, const char *text) {
    json_t *string = json_string(text);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    if (quoted)
        qkv_text_puts(line, quoted);
    else
        line->failed = 1;
    free(quoted);
    json_decref(string);
}

json_t *qkv_json_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *qkv_json_words(const char *text) {
    json_t *list = json_array();
    while (*text) {
        const size_t length = strcspn(text, ",");
        size_t begin = 0, end = length;
        while (begin < end && text[begin] == ' ') begin++;
        while (end > begin && text[end - 1] == ' ') end--;
        json_array_append_new(list, qkv_json_string(text + begin, end - begin));
        text += length + (text[length] == ',');
    }
    return list;
}
