#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* A number is an allocation and a place in a list; an object has a table of its own from the start. */
size_t qkv_json_cost(const char *text, size_t length) {
    enum { OF_VALUE = 64, OF_TABLE = 256 };
    size_t cost = length;
    int in_string = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            in_string = !in_string;
        else if (in_string)
            i += text[i] == '\\';
        else if (text[i] == ',')
            cost += OF_VALUE;
        else if (text[i] == '{' || text[i] == '[')
            cost += OF_TABLE;
    }
    return cost;
}

json_t *qkv_json_parse(const char *text, size_t length, size_t flags, json_error_t *where) {
    const qkv_locale host = qkv_locale_enter();
    json_t *value = json_loadb(text, length, flags, where);
    qkv_locale_leave(host);
    return value;
}

char *qkv_json_dump(const json_t *value, size_t flags) {
    const qkv_locale host = qkv_locale_enter();
    char *text = json_dumps(value, flags);
    qkv_locale_leave(host);
    return text;
}

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

json_t *qkv_json_exact(double value) {
    static const double MOST_WHOLE = 9007199254740992.0; /* 2^53 */
    if (!isfinite(value)) return json_null();
    const int whole = value == floor(value) && fabs(value) < MOST_WHOLE && !signbit(value);
    return whole ? json_integer((json_int_t)value) : json_real(value);
}

static void append_scalar(qkv_text *text, const json_t *value) {
    if (json_is_real(value)) {
        qkv_text_append_number(text, json_real_value(value));
        return;
    }
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    if (dump)
        qkv_text_puts(text, dump);
    else
        text->failed = 1;
    free(dump);
}

static void append_object(qkv_text *text, const json_t *object) {
    const char *key, *before = "";
    json_t *member;
    qkv_text_puts(text, "{");
    json_object_foreach((json_t *)object, key, member) {
        qkv_text_puts(text, before);
        json_t *name = json_string(key);
        qkv_json_append_value(text, name);
        json_decref(name);
        qkv_text_puts(text, ":");
        qkv_json_append_value(text, member);
        before = ",";
    }
    qkv_text_puts(text, "}");
}

void qkv_json_append_value(qkv_text *text, const json_t *value) {
    if (!value) {
        text->failed = 1;
    } else if (json_is_object(value)) {
        append_object(text, value);
    } else if (json_is_array(value)) {
        qkv_text_puts(text, "[");
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i) qkv_text_puts(text, ",");
            qkv_json_append_value(text, json_array_get(value, i));
        }
        qkv_text_puts(text, "]");
    } else {
        append_scalar(text, value);
    }
}
