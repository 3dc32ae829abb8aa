/*
 * Measured values as a tidy table, CSV or JSON: one value a row. Rows are written as they come, so
 * that the number of prompts does not matter; files appear when they are complete.
 */
#include "study/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_tokens.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "qkv/version.h"

typedef struct texts {
    char **at;
    size_t n;
} texts;

struct qkv_table_writer {
    qkv_table_names names; /* the caller's, until the head is written */
    qkv_prompt *prompts;   /* the same, as this library knows them */
    texts metrics;         /* copies: rows name them after their measure may be gone */
    texts variants;        /* without the baseline */
    qkv_output out;
    int is_open;
    int in_memory;
    int json;
    size_t n_rows;
};

static const char *variant_name(const qkv_table_writer *w, size_t variant) {
    if (variant == 0) return "baseline";
    return variant <= w->variants.n ? w->variants.at[variant - 1] : "";
}

/* ---- CSV ---- */

static void append_index(qkv_text *line, int32_t index) {
    if (index >= 0) qkv_text_printf(line, "%d", (int)index);
    qkv_text_puts(line, ",");
}

static void append_csv_row(qkv_text *line, const qkv_table_writer *w, int32_t prompt,
                           const qkv_measurement *row) {
    qkv_text variant = {0};
    const char *name = variant_name(w, row->variant);
    qkv_text_append_utf8(&variant, name, strlen(name));
    line->failed |= variant.failed;
    append_index(line, prompt);
    qkv_csv_append(line, variant.data ? variant.data : "");
    qkv_text_puts(line, ",");
    append_index(line, row->layer);
    append_index(line, row->head);
    qkv_text_printf(line, isnan(row->value) ? "%s,nan\n" : "%s,%.12g\n", w->metrics.at[row->metric],
                    row->value);
    qkv_text_release(&variant);
}

/* ---- JSON ---- */

static void append_json_index(qkv_text *line, const char *key, int32_t index) {
    qkv_text_printf(line, index >= 0 ? "\"%s\": %d, " : "\"%s\": null, ", key, (int)index);
}

/* Variants by their number, metrics by their name: names stand once, at the top. */
static void append_json_row(qkv_text *line, const qkv_table_writer *w, int32_t prompt,
                            const qkv_measurement *row) {
    qkv_text_puts(line, "{");
    append_json_index(line, "prompt", prompt);
    append_json_index(line, "variant", (int32_t)row->variant);
    append_json_index(line, "layer", row->layer);
    append_json_index(line, "head", row->head);
    qkv_text_puts(line, "\"metric\": ");
    qkv_json_append(line, w->metrics.at[row->metric]);
    /* JSON has no number for what is infinite. */
    qkv_text_printf(line, isfinite(row->value) ? ", \"value\": %.12g}" : ", \"value\": null}",
                    row->value);
}

static json_t *describe_prompt(const qkv_prompt *prompt, const qkv_model *model) {
    json_t *text = json_null();
    if (prompt->text) {
        text =
            qkv_json_string(prompt->text, prompt->length ? prompt->length : strlen(prompt->text));
    }
    return json_pack("{s:o, s:o, s:o}", "text", text, "tokens",
                     qkv_json_token_ids(prompt->tokens, prompt->n_tokens), "token_strings",
                     qkv_json_token_strings(model, prompt->tokens, prompt->n_tokens));
}

static json_t *describe_prompts(const qkv_table_writer *w) {
    json_t *list = json_array();
    for (size_t i = 0; i < w->names.n_prompts; i++) {
        qkv_json_push(list, describe_prompt(&w->prompts[i], w->names.model));
    }
    return list;
}

static json_t *describe_variants(const qkv_table_writer *w) {
    json_t *list = json_array();
    for (size_t v = 0; v <= w->variants.n; v++) {
        qkv_json_push(list, qkv_json_text(variant_name(w, v)));
    }
    return list;
}

static json_t *describe_metrics(const qkv_table_writer *w) {
    json_t *list = json_array();
    for (size_t i = 0; i < w->metrics.n; i++) {
        const qkv_metric_info *info = qkv_measure_info(w->names.measure, i);
        qkv_json_push(list,
                      json_pack("{s:s, s:s}", "name", w->metrics.at[i], "formula", info->formula));
    }
    return list;
}

static int write_json_head(const qkv_table_writer *w, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(w->names.model, hash, err);
    if (status != QKV_OK) return status;
    const qkv_model_info *info = qkv_model_get_info(w->names.model);
    json_t *json = json_pack("{s:s, s:o, s:s, s:o, s:o, s:o}", "qkv_version", qkv_version(),
                             "model", qkv_json_text(qkv_path_model(info->path)), "model_hash", hash,
                             "prompts", describe_prompts(w), "variants", describe_variants(w),
                             "metrics", describe_metrics(w));
    if (info->notices[0]) qkv_json_put(json, "model_notices", qkv_json_text(info->notices));
    char *text = json ? qkv_json_dump(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    if (!text) return qkv_fail_memory(err);
    text[strlen(text) - 2] = '\0'; /* the end of the object, which the rows go into */
    fprintf(w->out.stream, "%s,\n \"rows\": [", text);
    free(text);
    return QKV_OK;
}

/* ---- beginning ---- */

static int read_format(qkv_table_writer *w, const char *format, const char *what, qkv_error *err) {
    w->json = strcmp(format, "json") == 0;
    if (w->json || strcmp(format, "csv") == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: a table is csv or json", what);
}

static int read_prompts(qkv_table_writer *w, qkv_error *err) {
    const size_t n = w->names.n_prompts;
    w->prompts = qkv_calloc(n, sizeof *w->prompts);
    if (!w->prompts) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        qkv_prompt *prompt = &w->prompts[i];
        const int status =
            qkv_sized_read_item(prompt, sizeof *prompt, w->names.prompts, i, "qkv_prompt", err);
        if (status != QKV_OK) return status;
        if (prompt->n_tokens && !prompt->tokens) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "the tokens of prompt %zu are missing", i);
        }
    }
    return QKV_OK;
}

static int add_copy(texts *list, size_t *capacity, const char *text, qkv_error *err) {
    char *copy = qkv_strdup(text);
    if (copy && QKV_PUSH(list->at, *capacity, list->n, copy)) return QKV_OK;
    free(copy);
    return qkv_fail_memory(err);
}

static int copy_names(qkv_table_writer *w, qkv_error *err) {
    const qkv_table_names *names = &w->names;
    size_t capacity = 0;
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && qkv_measure_text(names->measure, i); i++) {
        status = add_copy(&w->metrics, &capacity, qkv_measure_text(names->measure, i), err);
    }
    capacity = 0;
    for (size_t i = 0; status == QKV_OK && i < names->n_variants; i++) {
        if (!names->variants[i]) {
            return qkv_fail(err, QKV_ERR_ARGUMENT, "the text of variant %zu is missing", i + 1);
        }
        status = add_copy(&w->variants, &capacity, names->variants[i], err);
    }
    return status;
}

static int read_names(qkv_table_writer *w, const qkv_table_names *given, qkv_error *err) {
    const qkv_table_names defaults = QKV_TABLE_NAMES_INIT;
    w->names = defaults;
    int status = qkv_sized_read(&w->names, sizeof w->names, given, "qkv_table_names", err);
    if (status != QKV_OK) return status;
    const qkv_table_names *names = &w->names;
    if (!names->measure || (w->json && !names->model)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a table needs its measure%s",
                        w->json ? " and its model" : "");
    }
    if ((names->n_prompts && !names->prompts) || (names->n_variants && !names->variants)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompts or variants of a table are missing");
    }
    status = read_prompts(w, err);
    return status == QKV_OK ? copy_names(w, err) : status;
}

static int write_head(qkv_table_writer *w, qkv_error *err) {
    w->is_open = 1;
    if (w->json) return write_json_head(w, err);
    fputs("prompt,variant,layer,head,metric,value\n", w->out.stream);
    return QKV_OK;
}

/* `path` NULL: into memory. */
static int begin(qkv_table_writer **out, const char *path, const char *format,
                 const qkv_table_names *names, qkv_error *err) {
    qkv_table_writer *w = qkv_calloc(1, sizeof *w);
    if (!w) return qkv_fail_memory(err);
    w->in_memory = !path;
    int status = read_format(w, format, path ? path : format, err);
    if (status == QKV_OK) status = read_names(w, names, err);
    if (status == QKV_OK) {
        status = path ? qkv_output_open(&w->out, path, err) : qkv_output_open_memory(&w->out, err);
    }
    if (status == QKV_OK) status = write_head(w, err);
    if (status == QKV_OK) {
        *out = w;
        return QKV_OK;
    }
    qkv_table_writer_free(w);
    return status;
}

int qkv_table_writer_open(qkv_table_writer **out, const char *path, const qkv_table_names *names,
                          qkv_error *err) {
    if (!out) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no place for a writer");
    *out = NULL;
    if (!path) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no file to write a table to");
    return begin(out, path, qkv_path_suffix(path), names, err);
}

int qkv_table_writer_new(qkv_table_writer **out, const char *format, const qkv_table_names *names,
                         qkv_error *err) {
    if (!out) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no place for a writer");
    *out = NULL;
    if (!format) return qkv_fail(err, QKV_ERR_ARGUMENT, "a table is csv or json");
    return begin(out, NULL, format, names, err);
}

/* ---- rows ---- */

static int check_open(const qkv_table_writer *w, qkv_error *err) {
    if (w && w->is_open) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "the writer is finished, or has failed");
}

static int check_metrics(const qkv_table_writer *w, const qkv_table *table, qkv_error *err) {
    qkv_measurement row = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; qkv_table_get(table, i, &row); i++) {
        if (row.metric >= w->metrics.n) {
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "the table has more metrics than the measure it is written with");
        }
    }
    return QKV_OK;
}

/* A full disk is told at the first rows it happens at. */
int qkv_table_writer_add(qkv_table_writer *writer, int32_t prompt, const qkv_table *table,
                         qkv_error *err) {
    int status = check_open(writer, err);
    if (status == QKV_OK && !table) status = qkv_fail(err, QKV_ERR_ARGUMENT, "there is no table");
    if (status == QKV_OK) status = check_metrics(writer, table, err);
    for (size_t i = 0; status == QKV_OK && i < qkv_table_size(table); i++) {
        qkv_measurement row = QKV_MEASUREMENT_INIT;
        qkv_table_get(table, i, &row);
        qkv_text line = {0};
        if (writer->json) {
            qkv_text_puts(&line, writer->n_rows++ ? ",\n  " : "\n  ");
            append_json_row(&line, writer, prompt, &row);
        } else {
            append_csv_row(&line, writer, prompt, &row);
        }
        if (line.failed)
            status = qkv_fail_memory(err);
        else
            fwrite(line.data, 1, line.length, writer->out.stream);
        qkv_text_release(&line);
    }
    if (status != QKV_OK || !ferror(writer->out.stream)) return status;
    writer->is_open = 0;
    return qkv_output_finish(&writer->out, err); /* which says why */
}

static int end(qkv_table_writer *w, int in_memory, qkv_error *err) {
    const int status = check_open(w, err);
    if (status != QKV_OK) return status;
    if (w->in_memory != in_memory) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a table in a file must be finished, one in memory taken");
    }
    if (w->json) fputs("\n ]\n}\n", w->out.stream);
    w->is_open = 0;
    return QKV_OK;
}

int qkv_table_writer_finish(qkv_table_writer *writer, qkv_error *err) {
    const int status = end(writer, 0, err);
    return status == QKV_OK ? qkv_output_finish(&writer->out, err) : status;
}

int qkv_table_writer_take(qkv_table_writer *writer, char **bytes, size_t *n_bytes, qkv_error *err) {
    if (!bytes || !n_bytes) {
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no place for the bytes");
    }
    *bytes = NULL;
    *n_bytes = 0;
    const int status = end(writer, 1, err);
    return status == QKV_OK ? qkv_output_take(&writer->out, bytes, n_bytes, err) : status;
}

static void release_texts(texts *list) {
    for (size_t i = 0; i < list->n; i++) free(list->at[i]);
    free(list->at);
}

void qkv_table_writer_free(qkv_table_writer *writer) {
    if (!writer) return;
    if (writer->is_open) qkv_output_abandon(&writer->out);
    release_texts(&writer->metrics);
    release_texts(&writer->variants);
    free(writer->prompts);
    free(writer);
}

/* ---- one table ---- */

int qkv_table_write(const qkv_table *table, const char *path, const qkv_table_names *names,
                    qkv_error *err) {
    qkv_table_writer *writer = NULL;
    int status = qkv_table_writer_open(&writer, path, names, err);
    if (status == QKV_OK) status = qkv_table_writer_add(writer, 0, table, err);
    if (status == QKV_OK) status = qkv_table_writer_finish(writer, err);
    qkv_table_writer_free(writer);
    return status;
}

int qkv_table_render(const qkv_table *table, const char *format, const qkv_table_names *names,
                     char **bytes, size_t *n_bytes, qkv_error *err) {
    qkv_table_writer *writer = NULL;
    if (bytes) *bytes = NULL;
    if (n_bytes) *n_bytes = 0;
    int status = qkv_table_writer_new(&writer, format, names, err);
    if (status == QKV_OK) status = qkv_table_writer_add(writer, 0, table, err);
    if (status == QKV_OK) status = qkv_table_writer_take(writer, bytes, n_bytes, err);
    qkv_table_writer_free(writer);
    return status;
}
