/*
 * qkv show: files of tensors, as a table or as JSON, and the numbers of one tensor: matrices with what
 * the file says about their axes, token strings where those are tokens.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "cli/columns.h"
#include "cli/show.h"
#include "qkv/store_reader.h"

enum { MOST_VALUES = 20000, LABEL_WIDTH = 11, NAME_WIDTH = 20, SHAPE_WIDTH = 16 };

typedef struct shown_file {
    qkv_store_reader *file;
    json_t *metadata;
} shown_file;

/* What the metadata says about a tensor; NULL: nothing. */
static json_t *entry_of(const shown_file *f, const char *name) {
    return json_object_get(json_object_get(f->metadata, "tensors"), name);
}

static void append_shape(qkv_text *out, const qkv_store_item *item) {
    for (int32_t d = 0; d < item->n_dims; d++)
        qkv_text_printf(out, "%s%" PRId64, d ? "," : "", item->shape[d]);
}

/* "head, query, key": a list of texts. */
static void append_words(qkv_text *out, const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        qkv_text_puts(out, i ? ", " : "");
        qkv_text_append_visible(out, word ? word : "?", strlen(word ? word : "?"));
    }
}

/* ---- the table ---- */

static void print_item(const shown_file *f, const qkv_store_item *item) {
    const json_t *entry = entry_of(f, item->name);
    qkv_text name = {0}, shape = {0}, axes = {0};
    qkv_text_append_visible(&name, item->name, strlen(item->name));
    append_shape(&shape, item);
    append_words(&axes, json_object_get(entry, "axes"));
    printf("%-*s  %-5s  %-*s%s\n", NAME_WIDTH, cli_shown(&name), item->type,
           axes.length ? SHAPE_WIDTH : 0, item->n_dims ? cli_shown(&shape) : "scalar",
           cli_shown(&axes));
    qkv_text_release(&name);
    qkv_text_release(&shape);
    qkv_text_release(&axes);
}

static void print_table(const shown_file *f, const char *path) {
    static const char *const left_out[] = {"tensors", NULL};
    qkv_store_item item = QKV_STORE_ITEM_INIT;
    size_t n = 0;
    while (qkv_store_reader_item(f->file, n, NULL)) n++;
    const char *format = qkv_store_reader_format(f->file);
    printf("%s: %s, %zu tensor%s\n\n", path, format, n, qkv_plural(n));
    show_object(f->metadata, left_out);
    if (strcmp(format, "npy") == 0)
        printf(".npy has no place for metadata: write .npz or .safetensors to keep it\n");
    if (json_object_size(f->metadata) || strcmp(format, "npy") == 0) putchar('\n');
    printf("%-*s  %-5s  %-*s%s\n", NAME_WIDTH, "tensor", "type", SHAPE_WIDTH, "shape", "axes");
    for (size_t i = 0; qkv_store_reader_item(f->file, i, &item); i++) print_item(f, &item);
}

static json_t *describe_item(const shown_file *f, const qkv_store_item *item) {
    json_t *shape = json_array(), *entry = entry_of(f, item->name);
    for (int32_t d = 0; d < item->n_dims; d++) qkv_json_push(shape, json_integer(item->shape[d]));
    json_t *all = json_pack("{s:o, s:s, s:o}", "name", qkv_json_text(item->name), "type",
                            item->type, "shape", shape);
    if (json_is_object(entry)) qkv_json_put_missing(all, entry);
    return all;
}

static int print_json(const shown_file *f, qkv_error *err) {
    qkv_store_item item = QKV_STORE_ITEM_INIT;
    json_t *tensors = json_array(), *metadata = qkv_json_copy(f->metadata);
    json_object_del(metadata, "tensors");
    for (size_t i = 0; qkv_store_reader_item(f->file, i, &item); i++)
        qkv_json_push(tensors, describe_item(f, &item));
    return cli_print_json(json_pack("{s:s, s:o, s:o}", "format", qkv_store_reader_format(f->file),
                                    "metadata", metadata, "tensors", tensors),
                          err);
}

/* ---- one tensor ---- */

typedef struct shown_tensor {
    qkv_store_item item;
    size_t index;
    double *values;
    const json_t *entry;
    const json_t *strings; /* of the tokens, as many as there are; NULL: not known */
} shown_tensor;

/* Token strings: the file's own, or those of the prompt that a figure's panel has. */
static const json_t *find_strings(const shown_file *f, const json_t *entry) {
    const json_t *prompts = json_object_get(f->metadata, "prompts");
    const json_t *number = json_object_get(entry, "prompt");
    if (!json_is_integer(number)) return json_object_get(f->metadata, "token_strings");
    return json_object_get(json_array_get(prompts, (size_t)json_integer_value(number)),
                           "token_strings");
}

static int find_tensor(shown_tensor *t, const shown_file *f, const char *name, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    t->item = (qkv_store_item)QKV_STORE_ITEM_INIT;
    for (t->index = 0; qkv_store_reader_item(f->file, t->index, &t->item); t->index++) {
        if (strcmp(t->item.name, name) == 0) {
            t->entry = entry_of(f, name);
            t->strings = find_strings(f, t->entry);
            return QKV_OK;
        }
        qkv_nearest_try(&near, t->item.name);
    }
    return cli_usage(err, "--tensor: there is no '%s'%s; without it all are listed", name,
                     qkv_nearest_hint(&near));
}

/* The label of an index: a token's text, a head's name, a channel's number, or the index. */
static void append_label(qkv_text *out, const shown_tensor *t, int32_t axis, int64_t i) {
    const char *what =
        json_string_value(json_array_get(json_object_get(t->entry, "axes"), (size_t)axis));
    const json_t *list = NULL;
    if (what && (!strcmp(what, "query") || !strcmp(what, "key") || !strcmp(what, "token")))
        list = t->strings;
    if (what && !strcmp(what, "head")) list = json_object_get(t->entry, "heads");
    if (what && (!strcmp(what, "channel") || !strcmp(what, "vocabulary")))
        list = json_object_get(t->entry, "channels");
    /* Some of the tokens only, as rows of logits: their places are not known here. */
    if (list && (int64_t)json_array_size(list) != t->item.shape[axis]) list = NULL;
    const json_t *label = json_array_get(list, (size_t)i);
    const char *text = json_string_value(label);
    if (text)
        qkv_text_append_short(out, text, strlen(text), LABEL_WIDTH - 1);
    else if (json_is_integer(label))
        qkv_text_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(label));
    else
        qkv_text_printf(out, "%" PRId64, i);
}

/* Padded by characters, which are not bytes. */
static void print_label(const shown_tensor *t, int32_t axis, int64_t i, int to_the_right) {
    qkv_text label = {0};
    append_label(&label, t, axis, i);
    size_t width = 0;
    for (size_t k = 0; k < label.length; k++)
        width += ((unsigned char)label.data[k] & 0xc0) != 0x80;
    const int pad = width < LABEL_WIDTH ? (int)(LABEL_WIDTH - width) : 0;
    if (to_the_right) printf("%*s", pad, "");
    fputs(cli_shown(&label), stdout);
    if (!to_the_right) printf("%*s", pad, "");
    qkv_text_release(&label);
}

static void print_matrix(const shown_tensor *t, const double *values, int64_t rows, int64_t cols) {
    const int32_t last = t->item.n_dims - 1;
    printf("%*s", LABEL_WIDTH, "");
    for (int64_t c = 0; c < cols; c++) print_label(t, last, c, 1);
    putchar('\n');
    for (int64_t r = 0; r < rows; r++) {
        if (last > 0)
            print_label(t, last - 1, r, 0);
        else
            printf("%*s", LABEL_WIDTH, "");
        for (int64_t c = 0; c < cols; c++)
            qkv_print(stdout, "%*.4g", LABEL_WIDTH, values[r * cols + c]);
        putchar('\n');
    }
}

/* Matrix by matrix; what the axes before them stand at is said above each. Lengths of axes may be
 * multiplied only where there are values: beside an axis of length 0 they can be anything. */
static void print_tensor(const shown_tensor *t) {
    const qkv_store_item *item = &t->item;
    const int32_t n_dims = item->n_dims;
    const int64_t cols = n_dims ? item->shape[n_dims - 1] : 1;
    const int64_t rows = n_dims > 1 ? item->shape[n_dims - 2] : 1;
    const int64_t n = item->n_values ? item->n_values / (rows * cols) : 0;
    if (n_dims == 0) {
        qkv_print(stdout, "%.9g\n", t->values[0]);
        return;
    }
    for (int64_t m = 0; m < n; m++) {
        int64_t rest = m;
        if (m) putchar('\n');
        for (int32_t d = n_dims - 3; d >= 0; d--) {
            print_label(t, d, rest % item->shape[d], 0);
            rest /= item->shape[d];
        }
        if (n_dims > 2) putchar('\n');
        print_matrix(t, t->values + m * rows * cols, rows, cols);
    }
}

/* Of a tensor that has values: axes of one that has none can be of any length. */
static json_t *nest(const shown_tensor *t, int32_t axis, int64_t *at) {
    if (axis == t->item.n_dims) {
        const double value = t->values[(*at)++];
        return isfinite(value) ? json_real(value) : json_null();
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < t->item.shape[axis]; i++) qkv_json_push(list, nest(t, axis + 1, at));
    return list;
}

static int show_one(const shown_file *f, const show_args *args, qkv_error *err) {
    shown_tensor t = {0};
    int64_t at = 0;
    int status = find_tensor(&t, f, args->tensor, err);
    if (status == QKV_OK && t.item.n_values > MOST_VALUES)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s has %" PRId64 " values, too many to print; read the file with a "
                          "program (docs/files.md)",
                          t.item.name, t.item.n_values);
    if (status != QKV_OK) return status;
    t.values = qkv_calloc((size_t)t.item.n_values + 1, sizeof *t.values);
    if (!t.values) return qkv_fail_memory(err);
    status = qkv_store_reader_values(f->file, t.index, 0, t.item.n_values, t.values, err);
    if (status == QKV_OK && args->json) {
        json_t *all = describe_item(f, &t.item);
        qkv_json_put(all, "data", t.item.n_values ? nest(&t, 0, &at) : json_array());
        status = cli_print_json(all, err);
    } else if (status == QKV_OK) {
        print_tensor(&t);
    }
    free(t.values);
    return status;
}

int show_tensors(const char *path, const show_args *args, qkv_error *err) {
    shown_file f = {0};
    int status = qkv_store_reader_open(&f.file, path, err);
    if (status == QKV_OK) {
        const char *metadata = qkv_store_reader_metadata(f.file);
        f.metadata = qkv_json_parse(metadata, strlen(metadata), 0, NULL);
        if (!f.metadata) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK && args->tensor) {
        status = show_one(&f, args, err);
    } else if (status == QKV_OK && args->json) {
        status = print_json(&f, err);
    } else if (status == QKV_OK) {
        print_table(&f, path);
    }
    json_decref(f.metadata);
    qkv_store_reader_close(f.file);
    return status;
}
