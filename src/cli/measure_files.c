/*
 * Measured values as a tidy table, CSV or JSON: one value a row. Rows are written as they come, so
 * that the number of prompts does not matter; the files appear when they are complete.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/measure.h"
#include "qkv/version.h"

const char *measure_variant_name(const measure_names *names, size_t variant) {
    return variant ? names->variants->items[variant - 1].value : "baseline";
}

/* ---- CSV ---- */

/* UTF-8, in quotes where it has to be. */
static void write_field(FILE *file, const char *bytes) {
    qkv_text text = {0};
    qkv_text_append_utf8(&text, bytes, strlen(bytes));
    const int quoted = text.data && strpbrk(text.data, ",\"\r\n");
    if (quoted) putc('"', file);
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] == '"') putc('"', file);
        putc(text.data[i], file);
    }
    if (quoted) putc('"', file);
    qkv_text_release(&text);
}

static void write_index(FILE *file, int32_t index) {
    if (index >= 0) fprintf(file, "%d", (int)index);
    putc(',', file);
}

static void write_csv_row(FILE *file, const measure_names *names, int prompt,
                          const qkv_measurement *row) {
    write_index(file, prompt);
    write_field(file, measure_variant_name(names, row->variant));
    putc(',', file);
    write_index(file, row->layer);
    write_index(file, row->head);
    qkv_print(file, isnan(row->value) ? "%s,nan\n" : "%s,%.12g\n",
              qkv_measure_text(names->measure, row->metric), row->value);
}

/* ---- JSON ---- */

static void write_json_index(FILE *file, const char *key, int32_t index) {
    fprintf(file, index >= 0 ? "\"%s\": %d, " : "\"%s\": null, ", key, (int)index);
}

/* Variants by their number, metrics by their name: names stand once, at the top. */
static void write_json_row(FILE *file, const measure_names *names, int prompt,
                           const qkv_measurement *row) {
    putc('{', file);
    write_json_index(file, "prompt", prompt);
    write_json_index(file, "variant", (int32_t)row->variant);
    write_json_index(file, "layer", row->layer);
    write_json_index(file, "head", row->head);
    fprintf(file, "\"metric\": \"%s\", ", qkv_measure_text(names->measure, row->metric));
    /* JSON has no number for what is infinite. */
    qkv_print(file, isfinite(row->value) ? "\"value\": %.12g}" : "\"value\": null}", row->value);
}

static json_t *describe_prompts(const measure_names *names) {
    json_t *list = json_array();
    for (size_t i = 0; i < names->n_prompts; i++) {
        const cli_prompt *prompt = &names->prompts[i];
        json_t *tokens = json_array();
        for (size_t t = 0; t < prompt->n_tokens; t++) {
            json_array_append_new(tokens, json_integer(prompt->tokens[t]));
        }
        json_t *text = prompt->text ? qkv_json_string(prompt->text, prompt->length) : json_null();
        json_array_append_new(list, json_pack("{s:o, s:o}", "text", text, "tokens", tokens));
    }
    return list;
}

static json_t *describe_metrics(const measure_names *names) {
    json_t *list = json_array();
    for (size_t i = 0; qkv_measure_text(names->measure, i); i++) {
        const qkv_metric_info *info = qkv_measure_info(names->measure, i);
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "name", qkv_measure_text(names->measure, i),
                                        "formula", info->formula));
    }
    return list;
}

static int write_json_head(FILE *file, const measure_names *names, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(names->model, hash, err);
    if (status != QKV_OK) return status;
    const char *path = qkv_model_get_info(names->model)->path;
    json_t *variants = json_array();
    for (size_t v = 0; v <= names->variants->n; v++) {
        const char *name = measure_variant_name(names, v);
        json_array_append_new(variants, qkv_json_text(name));
    }
    json_t *json = json_pack("{s:s, s:o, s:s, s:o, s:o, s:o}", "qkv_version", qkv_version(),
                             "model", qkv_json_text(qkv_path_base(path)), "model_hash", hash,
                             "prompts", describe_prompts(names), "variants", variants, "metrics",
                             describe_metrics(names));
    char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    if (!text) return qkv_fail_memory(err);
    text[strlen(text) - 2] = '\0'; /* the end of the object, which the rows go into */
    fprintf(file, "%s,\n \"rows\": [", text);
    free(text);
    return QKV_OK;
}

/* ---- files ---- */

int measure_files_open(measure_files *files, const cli_list *outputs, const measure_names *names,
                       qkv_error *err) {
    files->items = qkv_calloc(outputs->n, sizeof *files->items);
    if (!files->items) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        measure_file *file = &files->items[i];
        const char *path = outputs->items[i].value;
        status = qkv_output_open(&file->out, path, err);
        if (status != QKV_OK) break;
        files->n++;
        file->open = 1;
        file->json = strcmp(qkv_path_suffix(path), "json") == 0;
        if (file->json) {
            status = write_json_head(file->out.stream, names, err);
        } else {
            fputs("prompt,variant,layer,head,metric,value\n", file->out.stream);
        }
    }
    return status;
}

static void add_to_file(measure_file *file, const measure_names *names, int prompt,
                        const qkv_table *table) {
    FILE *stream = file->out.stream;
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        qkv_measurement row = QKV_MEASUREMENT_INIT;
        qkv_table_get(table, i, &row);
        if (file->json) {
            fputs(file->n_rows++ ? ",\n  " : "\n  ", stream);
            write_json_row(stream, names, prompt, &row);
        } else {
            write_csv_row(stream, names, prompt, &row);
        }
    }
}

/* A full disk is told at the first prompt it happens at. */
int measure_files_add(measure_files *files, const measure_names *names, int prompt,
                      const qkv_table *table, qkv_error *err) {
    for (size_t i = 0; i < files->n; i++) {
        measure_file *file = &files->items[i];
        add_to_file(file, names, prompt, table);
        if (ferror(file->out.stream)) {
            file->open = 0;
            return qkv_output_finish(&file->out, err); /* which says why */
        }
    }
    return QKV_OK;
}

int measure_files_finish(measure_files *files, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < files->n && status == QKV_OK; i++) {
        measure_file *file = &files->items[i];
        if (file->json) fputs("\n ]\n}\n", file->out.stream);
        status = qkv_output_finish(&file->out, err);
        file->open = 0;
    }
    return status;
}

void measure_files_release(measure_files *files) {
    for (size_t i = 0; i < files->n; i++) {
        if (files->items[i].open) qkv_output_abandon(&files->items[i].out);
    }
    free(files->items);
    *files = (measure_files){0};
}
