#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

static const char SHORT[] = "out of memory";

/* jansson loses letters of a word, and itself, where it cannot have memory for the longest one. */
json_t *qkv_json_parse(const char *text, size_t length, size_t flags, json_error_t *where) {
    json_error_t own = {0};
    json_error_t *error = where ? where : &own;
    *error = (json_error_t){0};
    json_t *value = NULL;
    if (qkv_memory_allows(2 * length)) {
        const qkv_locale host = qkv_locale_enter();
        value = json_loadb(text, length, flags, error);
        /* A word that there is no memory for is a malformed one to jansson: a second look tells. */
        if (!value) value = json_loadb(text, length, flags, error);
        qkv_locale_leave(host);
    }
    /* jansson has a text for every other reason. */
    if (!value && !error->text[0]) snprintf(error->text, sizeof error->text, "%s", SHORT);
    return value;
}

int qkv_json_lacked_memory(const json_t *value, const json_error_t *where) {
    return !value && strcmp(where->text, SHORT) == 0;
}

static int append_piece(const char *piece, size_t length, void *text) {
    qkv_text_append(text, piece, length);
    return ((qkv_text *)text)->failed ? -1 : 0;
}

char *qkv_json_dump(const json_t *value, size_t flags) {
    qkv_text text = {0};
    const qkv_locale host = qkv_locale_enter();
    const int status = json_dump_callback(value, append_piece, &text, flags);
    qkv_locale_leave(host);
    if (status != 0 || text.failed) qkv_text_release(&text);
    return text.data;
}

int qkv_json_print(const json_t *value, FILE *stream, size_t flags) {
    const qkv_locale host = qkv_locale_enter();
    const int status = json_dumpf(value, stream, flags);
    qkv_locale_leave(host);
    return status;
}

/* jansson dumps, copies and frees nothing of a type that it does not know: the table of the object or list, some
 * hundred bytes, is lost. */
static int spoil(json_t *into) {
    if (into) {
        json_object_clear(into);
        json_array_clear(into);
        into->type = (json_type)(JSON_NULL + 1);
    }
    return -1;
}

int qkv_json_put(json_t *into, const char *key, json_t *value) {
    return json_object_set_new(into, key, value) == 0 ? 0 : spoil(into);
}

int qkv_json_push(json_t *into, json_t *value) {
    return json_array_append_new(into, value) == 0 ? 0 : spoil(into);
}

int qkv_json_replace(json_t *into, size_t index, json_t *value) {
    return json_array_set_new(into, index, value) == 0 ? 0 : spoil(into);
}

static int put_members(json_t *into, const json_t *from, int replaces) {
    const char *key;
    json_t *value;
    if (!json_is_object(into) || !json_is_object(from)) return spoil(into);
    json_object_foreach((json_t *)from, key, value) {
        if (!replaces && json_object_get(into, key)) continue;
        if (qkv_json_put(into, key, json_incref(value)) != 0) return -1;
    }
    return 0;
}

int qkv_json_put_missing(json_t *into, const json_t *from) {
    return put_members(into, from, 0);
}

int qkv_json_put_all(json_t *into, const json_t *from) {
    return put_members(into, from, 1);
}

json_t *qkv_json_copy(const json_t *object) {
    json_t *copy = json_is_object(object) ? json_object() : NULL;
    if (qkv_json_put_all(copy, object) == 0) return copy;
    json_decref(copy);
    return NULL;
}

int qkv_json_is_spoiled(const json_t *value) {
    return !value || value->type > JSON_NULL;
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
    char *quoted = string ? qkv_json_dump(string, JSON_ENCODE_ANY) : NULL;
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
        qkv_json_push(list, qkv_json_string(text + begin, end - begin));
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
    char *dump = qkv_json_dump(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
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
