/*
 * Operations and ε. An operation that takes a number ("scale") is combined with every ε; one that
 * says all itself ("mean:head", "scale:0.5") stands alone. Each is tried on every target here, so
 * that the notation's own messages tell what is wrong.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/number_list.h"
#include "base/text.h"
#include "run/ops/operation.h"
#include "sweep/spec.h"
#include "sweep/sweep.h"

/* ---- ε ---- */

typedef struct numbers {
    double *items;
    size_t n, capacity;
} numbers;

static int add_number(numbers *list, double value, qkv_error *err) {
    return QKV_PUSH(list->items, list->capacity, list->n, value) ? QKV_OK : qkv_fail_memory(err);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* There may be many: sorted, so that it takes no longer than reading them. */
static int check_repeated(const numbers *list, qkv_error *err) {
    int status = QKV_OK;
    if (list->n < 2) return QKV_OK;
    double *sorted = qkv_calloc(list->n, sizeof *sorted);
    if (!sorted) return qkv_fail_memory(err);
    memcpy(sorted, list->items, list->n * sizeof *sorted);
    qsort(sorted, list->n, sizeof *sorted, by_value);
    for (size_t i = 1; i < list->n && status == QKV_OK; i++) {
        if (sorted[i - 1] == sorted[i])
            status = qkv_fail(err, QKV_ERR_SYNTAX, "epsilon %g is given twice", sorted[i]);
    }
    free(sorted);
    return status;
}

/* The number that is written at `text`. */
static int add_written(numbers *list, const char *text, size_t length, double value,
                       qkv_error *err) {
    if (isnan(value))
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "epsilon wants " QKV_NUMBER_LIST_WAYS "; '%.*s' is not a number",
                        (int)length, text);
    if (value == 0 && !qkv_text_is_zero(text, length))
        return qkv_fail(err, QKV_ERR_PLAN, "epsilon %.*s is too small; write 0", (int)length, text);
    return add_number(list, value, err);
}

static int add_text(numbers *list, const char *text, qkv_error *err) {
    char *all = NULL;
    int status = qkv_number_list_expand(&all, text, err);
    const char *at = all, *word;
    size_t length;
    double value;
    while (status == QKV_OK && qkv_number_list_next(&at, &word, &length, &value))
        status = add_written(list, word, length, value, err);
    free(all);
    return status;
}

static int read_epsilons(const qkv_spec *spec, numbers *list, qkv_error *err) {
    json_t *items;
    const char *text = json_string_value(json_object_get(spec->object, "epsilon"));
    if (text) return add_text(list, text, err);
    int status = qkv_spec_list(spec, "epsilon", &items, err);
    for (size_t i = 0; i < json_array_size(items) && status == QKV_OK; i++) {
        const json_t *item = json_array_get(items, i);
        const char *word = json_string_value(item);
        const double value = json_is_number(item) ? json_number_value(item) : (double)NAN;
        status = word           ? add_text(list, word, err)
                 : isnan(value) ? add_written(list, "this", strlen("this"), value, err)
                                : add_number(list, value, err);
    }
    json_decref(items);
    return status;
}

/* ---- operations ---- */

/* Those whose one number may come from the list of ε. */
static int takes_epsilon(const char *op, size_t length) {
    const char *name;
    for (size_t i = 0; (name = qkv_op_name(i)); i++) {
        if (strlen(name) == length && memcmp(name, op, length) == 0)
            return (qkv_op_flags((qkv_op)i) & QKV_EDIT_HAS_NUMBER) != 0;
    }
    return 0;
}

/* Every target must take the operation, in the first of the layers and heads. */
static int try_setting(const qkv_spec *spec, const char *text, qkv_error *err) {
    const qkv_sweep *s = spec->sweep;
    int status = QKV_OK;
    int32_t layer = s->layers[0] < 0 ? 0 : s->layers[0];
    for (size_t i = 0; i < s->n_targets && status == QKV_OK; i++) {
        char edit[QKV_EDIT_SIZE];
        const char *site = qkv_site_name(s->targets[i]);
        int n = s->heads[0] < 0
                    ? snprintf(edit, sizeof edit, "%s@%d=%s", site, layer, text)
                    : snprintf(edit, sizeof edit, "%s@%d.h%d=%s", site, layer, s->heads[0], text);
        if (n > QKV_EDIT_SIZE - 16)
            return qkv_fail(err, QKV_ERR_SYNTAX, "operation '%s' is too long", text);
        status = qkv_plan_add_variant(spec->plan, edit, NULL, err);
    }
    return status;
}

static int add_setting(qkv_spec *spec, const char *op, size_t length, double epsilon,
                       qkv_error *err) {
    qkv_sweep *s = spec->sweep;
    qkv_setting setting = {.op = qkv_strndup(op, length), .epsilon = epsilon};
    qkv_text text = {0};
    qkv_text_append(&text, op, length);
    if (!isnan(epsilon)) {
        qkv_text_puts(&text, ":");
        qkv_text_append_number(&text, epsilon);
    }
    setting.text = text.data;
    int status = setting.op && !text.failed ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = try_setting(spec, setting.text, err);
    if (status == QKV_OK && !QKV_PUSH(s->settings, s->settings_capacity, s->n_settings, setting))
        status = qkv_fail_memory(err);
    if (status != QKV_OK) {
        free(setting.op);
        qkv_text_release(&text);
    }
    return status;
}

static int add_op(qkv_spec *spec, const char *op, const numbers *epsilons, int *used,
                  qkv_error *err) {
    size_t name = strcspn(op, ":");
    double own = NAN;
    if (!takes_epsilon(op, name)) return add_setting(spec, op, strlen(op), NAN, err);
    const char *number = op[name] == ':' ? op + name + 1 : "";
    if (qkv_parse_double(number, strlen(number), &own) &&
        (own != 0 || qkv_text_is_zero(number, strlen(number))))
        return add_setting(spec, op, name, own, err);
    if (op[name] == ':') return add_setting(spec, op, strlen(op), NAN, err);
    if (epsilons->n == 0)
        return qkv_fail(err, QKV_ERR_SYNTAX, "operation '%s' needs epsilon, or a number: %s:0.5",
                        op, op);
    int status = QKV_OK;
    *used = 1;
    for (size_t i = 0; i < epsilons->n && status == QKV_OK; i++)
        status = add_setting(spec, op, name, epsilons->items[i], err);
    return status;
}

/* In a text, commas also separate the numbers of one operation: what does not begin like an
 * operation belongs to the one before. */
static int continues(const char *piece) {
    return !qkv_is_letter(piece[0]) || strncmp(piece, "seed=", 5) == 0;
}

static int add_ops(qkv_spec *spec, const json_t *list, const numbers *epsilons, int *used,
                   qkv_error *err) {
    int is_text = json_is_string(json_object_get(spec->object, "ops"));
    size_t n = json_array_size(list);
    int status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK;) {
        qkv_text op = {0};
        const char *piece = json_string_value(json_array_get(list, i++));
        qkv_text_puts(&op, piece ? piece : "?");
        while (is_text && i < n && continues(json_string_value(json_array_get(list, i))))
            qkv_text_printf(&op, ",%s", json_string_value(json_array_get(list, i++)));
        status = op.failed ? qkv_fail_memory(err) : add_op(spec, op.data, epsilons, used, err);
        qkv_text_release(&op);
    }
    return status;
}

static int check_settings(const qkv_sweep *s, qkv_error *err) {
    int status = QKV_OK;
    if (s->n_settings < 2) return QKV_OK;
    const char **sorted = qkv_calloc(s->n_settings, sizeof *sorted);
    if (!sorted) return qkv_fail_memory(err);
    for (size_t i = 0; i < s->n_settings; i++) sorted[i] = s->settings[i].text;
    qsort(sorted, s->n_settings, sizeof *sorted, qkv_compare_strings);
    for (size_t i = 1; i < s->n_settings && status == QKV_OK; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = qkv_fail(err, QKV_ERR_SYNTAX, "operation '%s' is given twice", sorted[i]);
    }
    free(sorted);
    return status;
}

int qkv_spec_settings(qkv_spec *spec, qkv_error *err) {
    numbers epsilons = {0};
    json_t *list = NULL;
    int used = 0;
    int status = qkv_spec_list(spec, "ops", &list, err);
    if (status == QKV_OK) status = read_epsilons(spec, &epsilons, err);
    if (status == QKV_OK) status = check_repeated(&epsilons, err);
    if (status == QKV_OK && spec->sweep->n_targets == 0 && (list || epsilons.n))
        status = qkv_fail(err, QKV_ERR_SYNTAX, "no target is edited: leave out ops and epsilon");
    if (status == QKV_OK && spec->sweep->n_targets)
        status = list ? add_ops(spec, list, &epsilons, &used, err)
                      : add_op(spec, "scale", &epsilons, &used, err);
    if (status == QKV_OK) status = check_settings(spec->sweep, err);
    if (status == QKV_OK && epsilons.n && !used)
        status = qkv_fail(err, QKV_ERR_SYNTAX, "no operation takes epsilon; give ops scale");
    json_decref(list);
    free(epsilons.items);
    return status;
}
