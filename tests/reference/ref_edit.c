/* See ref_edit.h. Means are computed anew for each element: slow, and hard to get wrong. */
#include "reference/ref_edit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "reference/ref_cases.h"
#include "reference/ref_other.h"

static const struct {
    const char *text;
    int n_numbers;
} op_table[REF_OP_COUNT] = {
#define REF_OP_ENTRY(id, text, n) [REF_##id] = {text, n},
    REF_OP_LIST(REF_OP_ENTRY)
#undef REF_OP_ENTRY
};

int ref_has(uint64_t set, int index) {
    return set == 0 || (set >> index & 1) != 0;
}

int ref_in(ref_range range, int index) {
    return range.end == 0 || (index >= range.begin && index < range.end);
}

static int is_mask(ref_op op) {
    return op == REF_MASK || op == REF_MASK_RULE || op == REF_MASK_CACHE || op == REF_MASK_BAND;
}

int ref_allows(qkv_site site, ref_op op) {
    const int is_map = site == QKV_SITE_SCORES || site == QKV_SITE_PATTERN;
    if (ref_is_input(site) && (op == REF_MEAN_HEAD || op == REF_MEAN_OTHERS)) return 0;
    if (is_mask(op) || op == REF_H2O || op == REF_H2O_EVAL || op == REF_SNAPKV)
        return site == QKV_SITE_SCORES;
    if (ref_is_late(op)) return site == QKV_SITE_K_ROT || site == QKV_SITE_V;
    if (op == REF_MEAN_SET || op == REF_MEAN_POSITION || op == REF_PATCH_FAR) return !is_map;
    if (!ref_is_compression(op)) return !(ref_takes_vector(op) && is_map);
    return site == QKV_SITE_K || site == QKV_SITE_K_ROT || site == QKV_SITE_V ||
           site == QKV_SITE_Z || site == QKV_SITE_RESID_POST || ref_is_input(site);
}

/* ---- text ---- */

static void put(char *out, size_t size, const char *text) {
    const size_t used = strlen(out);
    if (used + strlen(text) >= size) abort();
    memcpy(out + used, text, strlen(text) + 1);
}

static void put_set(char *out, size_t size, uint64_t set) {
    if (set == 0) put(out, size, "*");
    for (int i = 0, first = 1; i < 64 && set; i++) {
        char number[16];
        if ((set >> i & 1) == 0) continue;
        snprintf(number, sizeof number, "%s%d", first ? "" : ",", i);
        put(out, size, number);
        first = 0;
    }
}

static void put_range(char *out, size_t size, ref_range range) {
    char text[32] = ":";
    if (range.end == range.begin + 1)
        snprintf(text, sizeof text, "%d", range.begin);
    else if (range.end)
        snprintf(text, sizeof text, "%d:%d", range.begin, range.end);
    put(out, size, text);
}

static void put_tokens(const ref_edit *edit, char *out, size_t size) {
    const int pairs = edit->op == REF_PATCH_FAR;
    if (!edit->rows.end && !edit->cols.end && !pairs) return;
    put(out, size, "[");
    put_range(out, size, edit->rows);
    if (pairs) {
        char text[48];
        const int end = edit->rows.end, shift = REF_SHIFT;
        snprintf(text, sizeof text, end ? "<-%d:%d" : "<-%d:", edit->rows.begin + shift,
                 end + shift);
        put(out, size, text);
    }
    if (edit->site == QKV_SITE_SCORES || edit->site == QKV_SITE_PATTERN) {
        put(out, size, ",");
        put_range(out, size, edit->cols);
    }
    put(out, size, "]");
}

int ref_takes_vector(ref_op op) {
    return op == REF_ADD_VECTOR || op == REF_REMOVE_VECTOR || op == REF_SET_VECTOR;
}

void ref_vector_name(const ref_shape *shape, char *out, size_t size) {
    char heads[16] = "", tokens[16] = "";
    if (shape->tokens) snprintf(tokens, sizeof tokens, "t%d", shape->tokens);
    if (shape->heads) snprintf(heads, sizeof heads, "h%d", shape->heads);
    snprintf(out, size, "%s%sw%d", tokens, heads, shape->width);
}

ref_shape ref_vector_named(const char *name) {
    ref_shape shape = {0};
    for (; *name == 't' || *name == 'h' || *name == 'w'; name += strspn(name, "0123456789")) {
        int *part = *name == 't' ? &shape.tokens : *name == 'h' ? &shape.heads : &shape.width;
        *part = atoi(++name);
    }
    return shape;
}

/* What an edit says after its operation. */
static void put_arguments(const ref_edit *edit, char *out, size_t size) {
    char text[64] = "";
    if (ref_takes_vector(edit->op)) {
        ref_vector_name(&edit->vector, text, sizeof text);
        put(out, size, text);
        text[0] = '\0';
        if (edit->op == REF_ADD_VECTOR) snprintf(text, sizeof text, ",by=%.9g", edit->a);
    } else if (op_table[edit->op].n_numbers == 1) {
        snprintf(text, sizeof text, ":%.9g", edit->a);
    } else if (op_table[edit->op].n_numbers == 2) {
        snprintf(text, sizeof text, ":%.9g,%.9g", edit->a, edit->b);
    }
    put(out, size, text);
    if (edit->op != REF_NOISE && edit->op != REF_RESAMPLE) return;
    snprintf(text, sizeof text, ",seed=%d", edit->seed);
    put(out, size, text);
}

void ref_edit_text(const ref_edit *edit, char *out, size_t size) {
    out[0] = '\0';
    if (edit->op == REF_FREEZE) put(out, size, "freeze:");
    put(out, size, qkv_site_name(edit->site));
    if (ref_has_layer(edit->site)) {
        put(out, size, "@");
        put_set(out, size, edit->layers);
    }
    if (edit->head_kind) {
        put(out, size, edit->head_kind == 'h' ? ".h" : ".g");
        put_set(out, size, edit->heads);
    }
    put_tokens(edit, out, size);
    if (edit->channels.end) {
        put(out, size, "{");
        put_range(out, size, edit->channels);
        put(out, size, "}");
    }
    if (edit->op == REF_FREEZE) return;
    put(out, size, "=");
    if (strchr(op_table[edit->op].text, '%')) {
        char numbers[64];
        snprintf(numbers, sizeof numbers, op_table[edit->op].text, (int)edit->a, (int)edit->b);
        put(out, size, numbers);
        return;
    }
    put(out, size, op_table[edit->op].text);
    put_arguments(edit, out, size);
}

/* ---- values ---- */

double *ref_at(const ref_view *view, int head, int row, int col) {
    return view->data + (size_t)head * view->head_stride + (size_t)row * view->row_stride +
           (size_t)col;
}

static double mean_head(const ref_view *v, int row, int col) {
    double sum = 0;
    for (int h = 0; h < v->n_head; h++) sum += *ref_at(v, h, row, col);
    return sum / v->n_head;
}

/* Without the head itself, and those that see the same. */
static double mean_others(const ref_view *v, int own, int row, int col) {
    const int alike = v->n_alike ? v->n_alike : 1;
    double sum = 0, n = 0;
    for (int h = 0; h < v->n_head; h++) {
        if (h / alike == own / alike) continue;
        sum += *ref_at(v, h, row, col);
        n++;
    }
    return sum / n;
}

static double mean_row(const ref_view *v, int head, int col) {
    double sum = 0;
    for (int t = 0; t < v->n_row; t++) sum += *ref_at(v, head, t, col);
    return sum / v->n_row;
}

static double mean_col(const ref_view *v, int head, int row) {
    double sum = 0;
    for (int c = 0; c < v->n_col; c++) sum += *ref_at(v, head, row, c);
    return sum / v->n_col;
}

double ref_noise(const ref_edit *edit, int layer, int head, int row, int col) {
    const int place[] = {(int)edit->site, layer, head, row, col};
    uint64_t key = (uint64_t)edit->seed;
    for (size_t i = 0; i < sizeof place / sizeof *place; i++)
        key = qkv_random_mix(key, (uint64_t)place[i]);
    return (double)qkv_random_gaussian(key);
}

double ref_vector_value(const ref_shape *shape, int head, int row, int col) {
    const int h = shape->heads ? head : 0, t = shape->tokens ? row : 0;
    return (double)(float)(0.4 * sin(1.0 + 0.9 * col + 2.3 * h + 0.7 * t) + 0.05);
}

/* The vector's row for this head and token of x, which may have more heads than it. */
static double vector_at(const ref_edit *edit, const ref_view *own, int head, int row, int col) {
    const int heads = edit->vector.heads ? edit->vector.heads : 1;
    return ref_vector_value(&edit->vector, head * heads / own->n_head, row, col);
}

/* x - (x.u)u with u = v / |v|. */
static double without(const ref_edit *edit, const ref_view *own, int head, int row, int col) {
    double length = 0, along = 0;
    for (int c = 0; c < own->n_col; c++) length += pow(vector_at(edit, own, head, row, c), 2);
    length = sqrt(length);
    for (int c = 0; c < own->n_col; c++)
        along += *ref_at(own, head, row, c) * vector_at(edit, own, head, row, c) / length;
    return *ref_at(own, head, row, col) - along * vector_at(edit, own, head, row, col) / length;
}

/* A score that is masked: all that are selected, or all but what the numbers leave. */
static double masked(const ref_edit *edit, double x, int query, int key) {
    if (edit->op == REF_MASK_BAND) return abs(query - key) < (int)edit->a ? x : -INFINITY;
    if (edit->op == REF_MASK) return -INFINITY;
    if (key < (int)edit->a) return x;
    return key <= query && key > query - (int)edit->b ? x : -INFINITY;
}

double ref_edit_value(const ref_edit *edit, const ref_view *own, const ref_view *source, int head,
                      int row, int col) {
    const double x = *ref_at(own, head, row, col);
    switch (edit->op) {
    case REF_SCALE:
        return edit->a * x;
    case REF_SET:
        return edit->a;
    case REF_ZERO:
        return 0;
    case REF_ADD:
        return x + edit->a;
    case REF_MEAN_HEAD:
        return mean_head(own, row, col);
    case REF_MEAN_OTHERS:
        return mean_others(own, head, row, col);
    case REF_MEAN_TOKEN:
        return mean_row(own, head, col);
    case REF_MEAN_DIM:
        return mean_col(own, head, row);
    case REF_CLAMP:
        return x < edit->a ? edit->a : x > edit->b ? edit->b : x;
    case REF_MASK:
    case REF_MASK_RULE:
    case REF_MASK_CACHE:
    case REF_MASK_BAND:
        return masked(edit, x, row, col);
    case REF_PATCH:
    case REF_FREEZE:
        return *ref_at(source, head * source->n_head / own->n_head, row, col);
    case REF_ADD_VECTOR:
        return x + edit->a * vector_at(edit, own, head, row, col);
    case REF_SET_VECTOR:
        return vector_at(edit, own, head, row, col);
    case REF_REMOVE_VECTOR:
        return without(edit, own, head, row, col);
    case REF_NOISE:
    case REF_MEAN_SET:
    case REF_MEAN_POSITION:
    case REF_RESAMPLE:
    case REF_PATCH_FAR:
    case REF_H2O:
    case REF_H2O_EVAL:
    case REF_SNAPKV:
    case REF_QUANT_CHANNEL:
    case REF_QUANT_TOKEN:
    case REF_QUANT_EVERY:
    case REF_LATE_CHANNEL:
    case REF_LATE_TOKEN:
    case REF_OP_COUNT:
        break;
    }
    abort();
}
