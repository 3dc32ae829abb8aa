/*
 * Two recipes: that of a file, and that of what was made again. What they state (the layer, the
 * edits of a panel, ...) must agree. Digests say whether the values are the same; samples, extremes
 * and norms by how much they are not.
 */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/sized.h"
#include "study/reproduce.h"

/* ---- numbers ---- */

static int same_text(const json_t *a, const json_t *b, const char *key) {
    const char *left = json_string_value(json_object_get(a, key));
    const char *right = json_string_value(json_object_get(b, key));
    return left && right && strcmp(left, right) == 0;
}

/* A value that is missing in one of them alone differs without end. */
static double distance(const json_t *a, const json_t *b) {
    if (json_is_null(a) && json_is_null(b)) return 0;
    if (!json_is_number(a) || !json_is_number(b)) return INFINITY;
    return fabs(json_number_value(a) - json_number_value(b));
}

/* The norm is not a value of the panel: it counts where all that are known agree. */
static double panel_distance(const json_t *a, const json_t *b) {
    static const char *const keys[] = {"least", "most"};
    const json_t *left = json_object_get(a, "sample"), *right = json_object_get(b, "sample");
    double largest = json_array_size(left) == json_array_size(right) ? 0 : INFINITY;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        largest = fmax(largest, distance(json_object_get(a, keys[i]), json_object_get(b, keys[i])));
    }
    for (size_t i = 0; i < json_array_size(left); i++) {
        largest = fmax(largest, distance(json_array_get(left, i), json_array_get(right, i)));
    }
    if (largest > 0) return largest;
    return distance(json_object_get(a, "norm"), json_object_get(b, "norm"));
}

static int same_shapes(const json_t *a, const json_t *b) {
    if (!json_is_array(a) || json_array_size(a) != json_array_size(b)) return 0;
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *left = json_object_get(json_array_get(a, i), "shape");
        const json_t *right = json_object_get(json_array_get(b, i), "shape");
        if (!json_is_array(left) || !json_equal((json_t *)left, (json_t *)right)) return 0;
    }
    return 1;
}

static size_t index_of(const json_t *panel, const char *key) {
    const json_int_t value = json_integer_value(json_object_get(panel, key));
    return value > 0 ? (size_t)value : 0;
}

static void compare_panels(const json_t *a, const json_t *b, qkv_reproduction_difference *own) {
    own->n_panels = json_array_size(a);
    for (size_t i = 0; i < own->n_panels; i++) {
        const json_t *left = json_array_get(a, i), *right = json_array_get(b, i);
        if (same_text(left, right, "digest")) continue;
        const double largest = panel_distance(left, right);
        if (own->n_different++ && !(largest > own->largest)) continue;
        own->largest = largest;
        own->row = index_of(left, "row");
        own->col = index_of(left, "col");
    }
}

/* ---- what recipes state ---- */

typedef struct statement {
    const char *key;
    enum { TEXT, INTEGER, LIST } type;
    int is_compared; /* here; else its type alone is looked at, and the value elsewhere */
} statement;

static const statement of_recipe[] = {
    {"site", TEXT, 1},  {"layer", INTEGER, 1}, {"head", INTEGER, 1},
    {"range", LIST, 0}, {"digest", TEXT, 0},
};

static const statement of_panel[] = {
    {"row", INTEGER, 1}, {"col", INTEGER, 1}, {"input", INTEGER, 1}, {"edits", TEXT, 1},
    {"digest", TEXT, 0}, {"sample", LIST, 0}, {"texts", TEXT, 1},
};

enum {
    N_OF_RECIPE = sizeof of_recipe / sizeof *of_recipe,
    N_OF_PANEL = sizeof of_panel / sizeof *of_panel
};

/* The range follows from values; with other versions it may move as they may. */
static const double RANGE_TOLERANCE = 1e-4;

/* Of a key in a panel, or of the recipe where `panel` is 0. */
static int fail_values(const char *key, size_t panel, const json_t *given, const json_t *made,
                       qkv_error *err) {
    qkv_text place = {0}, left = {0}, right = {0};
    qkv_text_printf(&place, "\"%s\"", key);
    if (panel) qkv_text_printf(&place, " of panel %zu", panel);
    qkv_json_append_value(&left, given);
    qkv_json_append_value(&right, made);
    const int failed = place.failed || left.failed || right.failed;
    const int status = failed ? qkv_fail_memory(err)
                              : qkv_fail(err, QKV_ERR_FORMAT,
                                         "it is not the same: %s is %.150s in the recipe, and "
                                         "%.150s made again",
                                         place.data, left.data, right.data);
    qkv_text_release(&place);
    qkv_text_release(&left);
    qkv_text_release(&right);
    return status;
}

static int fail_type(const statement *s, size_t panel, qkv_error *err) {
    static const char *const types[] = {"a text", "a whole number", "a list"};
    if (!panel) {
        return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" of the recipe is not %s", s->key,
                        types[s->type]);
    }
    return qkv_fail(err, QKV_ERR_FORMAT, "\"%s\" of panel %zu of the recipe is not %s", s->key,
                    panel, types[s->type]);
}

static int has_type(const json_t *value, const statement *s) {
    return s->type == TEXT      ? json_is_string(value)
           : s->type == INTEGER ? json_is_integer(value)
                                : json_is_array(value);
}

/* Charts state less than figures: what was made again says what there must be. */
static int check_types(const statement *list, size_t n, size_t panel, const json_t *given,
                       const json_t *made, qkv_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!json_object_get(made, list[i].key)) continue;
        if (!has_type(json_object_get(given, list[i].key), &list[i])) {
            return fail_type(&list[i], panel, err);
        }
    }
    return QKV_OK;
}

static int check_values(const statement *list, size_t n, size_t panel, const json_t *given,
                        const json_t *made, qkv_error *err) {
    for (size_t i = 0; i < n; i++) {
        const json_t *left = json_object_get(given, list[i].key);
        const json_t *right = json_object_get(made, list[i].key);
        if (!list[i].is_compared || !right) continue;
        if (!json_equal((json_t *)left, (json_t *)right)) {
            return fail_values(list[i].key, panel, left, right, err);
        }
    }
    return QKV_OK;
}

typedef int check_function(const statement *list, size_t n, size_t panel, const json_t *given,
                           const json_t *made, qkv_error *err);

static int check_all(check_function *check, const json_t *given, const json_t *made,
                     qkv_error *err) {
    const json_t *a = json_object_get(given, "panels"), *b = json_object_get(made, "panels");
    int status = check(of_recipe, N_OF_RECIPE, 0, given, made, err);
    for (size_t i = 0; i < json_array_size(a) && status == QKV_OK; i++) {
        status =
            check(of_panel, N_OF_PANEL, i + 1, json_array_get(a, i), json_array_get(b, i), err);
    }
    return status;
}

static int check_statements(const json_t *given, const json_t *made, qkv_error *err) {
    const size_t n_given = json_array_size(json_object_get(given, "panels"));
    const size_t n_made = json_array_size(json_object_get(made, "panels"));
    int status = check_all(check_types, given, made, err);
    if (status == QKV_OK && n_given != n_made) {
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          "it is not the same: the recipe has %zu panels, and made again there are "
                          "%zu",
                          n_given, n_made);
    }
    return status == QKV_OK ? check_all(check_values, given, made, err) : status;
}

/* What sums up the values: where they are the same, so must it be. */
static int check_sums(const json_t *given, const json_t *made,
                      const qkv_reproduction_difference *values, qkv_error *err) {
    const json_t *a = json_object_get(given, "range"), *b = json_object_get(made, "range");
    const double allowed = values->same_bits ? 0 : fmax(values->largest, RANGE_TOLERANCE);
    int differs = b && json_array_size(a) != json_array_size(b); /* charts have none */
    for (size_t i = 0; i < json_array_size(b) && !differs; i++) {
        differs = !(distance(json_array_get(a, i), json_array_get(b, i)) <= allowed);
    }
    if (differs) return fail_values("range", 0, a, b, err);
    a = json_object_get(given, "digest");
    b = json_object_get(made, "digest");
    if (!values->same_bits || !b || json_equal((json_t *)a, (json_t *)b)) return QKV_OK;
    return fail_values("digest", 0, a, b, err);
}

/* ---- both ---- */

int qkv_reproduction_compare(const qkv_reproduction *r, const char *recipe,
                             qkv_reproduction_difference *out, qkv_error *err) {
    QKV_NEED(err, r);
    QKV_NEED(err, recipe);
    QKV_NEED(err, out);
    json_t *made = qkv_json_parse(recipe, strlen(recipe), JSON_ALLOW_NUL, NULL);
    if (!json_is_object(made)) {
        json_decref(made);
        return qkv_fail(err, QKV_ERR_ARGUMENT, "what it is compared with is not a recipe");
    }
    const json_t *a = json_object_get(r->tree, "panels"), *b = json_object_get(made, "panels");
    int status = check_statements(r->tree, made, err);
    if (status != QKV_OK) return json_decref(made), status;
    qkv_reproduction_difference own = {.same_shape = same_shapes(a, b)};
    own.same_versions = same_text(r->tree, made, "qkv_version");
    if (r->study) {
        own.same_versions &= same_text(r->tree, made, "ggml_version");
        own.same_versions &= same_text(r->tree, made, "backend");
    }
    if (own.same_shape) compare_panels(a, b, &own);
    own.same_bits = own.same_shape && own.n_different == 0 && own.n_panels > 0;
    if (own.same_shape) status = check_sums(r->tree, made, &own, err);
    json_decref(made);
    if (status != QKV_OK) return status;
    return qkv_sized_write(out, &own, sizeof own, "qkv_reproduction_difference", err);
}
