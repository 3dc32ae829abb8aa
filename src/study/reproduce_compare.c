/*
 * The numbers of two recipes: those of a file, and those of what was made again. Digests say whether
 * the values are the same; samples, extremes and norms by how much they are not.
 */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/sized.h"
#include "study/reproduce.h"

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

/* The norm is no value of the panel: it counts where all that are known agree. */
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

static int compare(const qkv_reproduction *r, const char *recipe, qkv_reproduction_difference *out,
                   qkv_error *err) {
    json_t *made = recipe ? qkv_json_parse(recipe, strlen(recipe), JSON_ALLOW_NUL, NULL) : NULL;
    if (!made) return qkv_fail_memory(err);
    const json_t *a = json_object_get(r->tree, "panels"), *b = json_object_get(made, "panels");
    qkv_reproduction_difference own = {.same_shape = same_shapes(a, b)};
    own.same_versions = same_text(r->tree, made, "qkv_version");
    if (!r->is_plot) {
        own.same_versions &= same_text(r->tree, made, "ggml_version");
        own.same_versions &= same_text(r->tree, made, "backend");
    }
    if (own.same_shape) compare_panels(a, b, &own);
    own.same_bits = own.same_shape && own.n_different == 0 && own.n_panels > 0;
    json_decref(made);
    return qkv_sized_write(out, &own, sizeof own, "qkv_reproduction_difference", err);
}

int qkv_reproduction_compare_figure(const qkv_reproduction *r, const qkv_figure *figure,
                                    qkv_reproduction_difference *out, qkv_error *err) {
    qkv_figure_info info = QKV_FIGURE_INFO_INIT;
    QKV_NEED(err, r);
    QKV_NEED(err, out);
    const int status = qkv_figure_get_info(figure, &info, err);
    return status == QKV_OK ? compare(r, info.recipe, out, err) : status;
}

int qkv_reproduction_compare_plot(const qkv_reproduction *r, const qkv_plot *plot,
                                  qkv_reproduction_difference *out, qkv_error *err) {
    qkv_plot_info info = QKV_PLOT_INFO_INIT;
    QKV_NEED(err, r);
    QKV_NEED(err, out);
    const int status = qkv_plot_get_info(plot, &info, err);
    return status == QKV_OK ? compare(r, info.recipe, out, err) : status;
}
