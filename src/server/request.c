#include "server/request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

/* ---- the whole ---- */

int qkv_request_parse(json_t **out, const char *body, size_t n_body, qkv_error *err) {
    json_error_t where;
    *out = n_body ? qkv_json_parse(body, n_body, JSON_REJECT_DUPLICATES, &where) : json_object();
    if (!*out && !n_body) return qkv_fail_memory(err);
    if (!*out)
        return qkv_fail(err, QKV_ERR_SYNTAX, "the request is not JSON: %s (line %d, column %d)",
                        where.text, where.line, where.column);
    if (json_is_object(*out)) return QKV_OK;
    json_decref(*out);
    *out = NULL;
    return qkv_fail(err, QKV_ERR_SYNTAX, "the request is JSON, but not an object");
}

int qkv_request_lists(const char *list, const char *word) {
    const size_t n = strchr(word, ' ') ? 0 : strlen(word);
    for (const char *at = list; n && (at = strstr(at, word)); at += n) {
        const int begins = at == list || at[-1] == ' ';
        if (begins && (at[n] == ' ' || at[n] == '\0')) return 1;
    }
    return 0;
}

static int fail_field(const char *field, const char *what, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` %s", field, what);
}

static int check_fields(const json_t *request, const char *fields, qkv_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)request, key, value) {
        if (qkv_request_lists("model client slot seq", key) || qkv_request_lists(fields, key))
            continue;
        qkv_text shown = {0};
        qkv_text_append_short(&shown, key, strlen(key), 40);
        const int status =
            qkv_fail(err, QKV_ERR_ARGUMENT, "there is no field `%s` here; there are: %s",
                     shown.data ? shown.data : "", fields);
        qkv_text_release(&shown);
        return status;
    }
    return QKV_OK;
}

/* Copies a short name; letters, digits, - and _, so that it can be shown anywhere. */
static int read_name(const json_t *request, const char *field, char out[QKV_REQUEST_NAME_SIZE],
                     qkv_error *err) {
    const char *text = NULL;
    out[0] = '\0';
    const int status = qkv_request_text(request, field, QKV_REQUEST_NAME_SIZE - 1, &text, err);
    if (status != QKV_OK || !text) return status;
    for (const char *at = text; *at; at++) {
        if (!qkv_is_letter(*at) && !strchr("0123456789-_", *at))
            return fail_field(field, "is made of letters, digits, - and _", err);
    }
    memcpy(out, text, strlen(text) + 1);
    return QKV_OK;
}

int qkv_request_read(const json_t *request, const char *fields, qkv_request_common *common,
                     qkv_error *err) {
    *common = (qkv_request_common){0};
    int status = check_fields(request, fields, err);
    if (status == QKV_OK) status = qkv_request_text(request, "model", 4096, &common->model, err);
    if (status == QKV_OK) status = read_name(request, "client", common->client, err);
    if (status == QKV_OK) status = read_name(request, "slot", common->slot, err);
    if (status == QKV_OK)
        status = qkv_request_integer(request, "seq", 0, INT64_MAX, &common->seq, err);
    return status;
}

/* ---- fields ---- */

/* The value of a field; NULL where there is none, or where it is null. */
static const json_t *find(const json_t *request, const char *field) {
    const json_t *value = json_object_get(request, field);
    return value && !json_is_null(value) ? value : NULL;
}

int qkv_request_need(const json_t *request, const char *field, qkv_error *err) {
    return find(request, field) ? QKV_OK : fail_field(field, "is missing", err);
}

int qkv_request_text(const json_t *request, const char *field, size_t most, const char **text,
                     qkv_error *err) {
    const json_t *value = find(request, field);
    if (!value) return QKV_OK;
    if (!json_is_string(value)) return fail_field(field, "is a text", err);
    if (json_string_length(value) > most)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has %zu bytes; %zu are the most", field,
                        json_string_length(value), most);
    *text = json_string_value(value);
    return QKV_OK;
}

int qkv_request_file_name(const json_t *request, const char **name, qkv_error *err) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const int status = qkv_request_text(request, "name", QKV_REQUEST_FILE_NAME, name, err);
    if (status != QKV_OK) return status;
    if (!**name || strspn(*name, "-.") || (*name)[strspn(*name, letters)])
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`name` is of letters, digits, '-', '_' and '.', and begins with a letter, "
                        "a digit or '_'");
    return QKV_OK;
}

static int check_integer(const json_t *value, const char *field, int64_t least, int64_t most,
                         int64_t *out, qkv_error *err) {
    if (!json_is_integer(value)) return fail_field(field, "is a whole number", err);
    *out = json_integer_value(value);
    if (*out >= least && *out <= most) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is %lld; give %lld to %lld", field,
                    (long long)*out, (long long)least, (long long)most);
}

int qkv_request_integer(const json_t *request, const char *field, int64_t least, int64_t most,
                        int64_t *value, qkv_error *err) {
    const json_t *found = find(request, field);
    return found ? check_integer(found, field, least, most, value, err) : QKV_OK;
}

static int check_real(const json_t *value, const char *field, double *out, qkv_error *err) {
    if (!json_is_number(value)) return fail_field(field, "is a number", err);
    *out = json_number_value(value);
    return isfinite(*out) ? QKV_OK : fail_field(field, "is not finite", err);
}

int qkv_request_real(const json_t *request, const char *field, double least, double most,
                     double *value, qkv_error *err) {
    const json_t *found = find(request, field);
    if (!found) return QKV_OK;
    const int status = check_real(found, field, value, err);
    if (status != QKV_OK || (*value >= least && *value <= most)) return status;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is %g; give %g to %g", field, *value, least, most);
}

int qkv_request_flag(const json_t *request, const char *field, int *value, qkv_error *err) {
    const json_t *found = find(request, field);
    if (!found) return QKV_OK;
    if (!json_is_boolean(found)) return fail_field(field, "is true or false", err);
    *value = json_is_true(found);
    return QKV_OK;
}

/* The list of a field, NULL where there is none. */
static int find_list(const json_t *request, const char *field, size_t limit, const json_t **list,
                     qkv_error *err) {
    *list = find(request, field);
    if (!*list) return QKV_OK;
    if (!json_is_array(*list)) return fail_field(field, "is a list", err);
    if (json_array_size(*list) <= limit) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has %zu items; %zu are the most", field,
                    json_array_size(*list), limit);
}

int qkv_request_integers(const json_t *request, const char *field, int64_t least, int64_t most,
                         size_t limit, int32_t **values, size_t *n, qkv_error *err) {
    const json_t *list;
    *values = NULL;
    *n = 0;
    int status = find_list(request, field, limit, &list, err);
    if (status != QKV_OK || !list) return status;
    const size_t count = json_array_size(list);
    *values = qkv_calloc(count, sizeof **values);
    if (!*values) return qkv_fail_memory(err);
    for (size_t i = 0; i < count && status == QKV_OK; i++) {
        int64_t value = 0;
        status = check_integer(json_array_get(list, i), field, least, most, &value, err);
        (*values)[i] = (int32_t)value;
    }
    if (status == QKV_OK) {
        *n = count;
        return QKV_OK;
    }
    free(*values);
    *values = NULL;
    return status;
}

int qkv_request_reals(const json_t *request, const char *field, size_t limit, double **values,
                      size_t *n, qkv_error *err) {
    const json_t *list;
    *values = NULL;
    *n = 0;
    int status = find_list(request, field, limit, &list, err);
    if (status != QKV_OK || !list) return status;
    const size_t count = json_array_size(list);
    *values = qkv_calloc(count, sizeof **values);
    if (!*values) return qkv_fail_memory(err);
    for (size_t i = 0; i < count && status == QKV_OK; i++) {
        status = check_real(json_array_get(list, i), field, &(*values)[i], err);
    }
    if (status == QKV_OK) {
        *n = count;
        return QKV_OK;
    }
    free(*values);
    *values = NULL;
    return status;
}
