/* qkv show: the results file of a sweep. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/show.h"
#include "qkv/sweep_reader.h"

typedef const char *(*name_at)(const qkv_sweep_reader *file, size_t index);

static json_t *list_names(const qkv_sweep_reader *file, name_at name) {
    json_t *list = json_array();
    const char *text;
    for (size_t i = 0; (text = name(file, i)); i++) qkv_json_push(list, qkv_json_text(text));
    return list;
}

/* Cells there are, and those whose values are stored: the same for every metric. */
static int count_cells(qkv_sweep_reader *file, size_t *n, size_t *stored, qkv_error *err) {
    qkv_sweep_rows *rows = NULL;
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    const char *metric = qkv_sweep_reader_metric(file, 0);
    const int status = qkv_sweep_reader_rows(file, metric ? metric : "", &rows, err);
    *n = qkv_sweep_rows_count(rows);
    *stored = 0;
    for (size_t i = 0; qkv_sweep_rows_get(rows, i, &row); i++) *stored += !row.missing;
    qkv_sweep_rows_free(rows);
    return status;
}

static json_t *describe(const qkv_sweep_reader *file, size_t n, size_t stored) {
    const qkv_sweep_reader_info *info = qkv_sweep_reader_get_info(file);
    json_t *all =
        json_pack("{s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "model",
                  qkv_json_text(info->model_path), "model_name", qkv_json_text(info->model_name),
                  "model_hash", info->model_hash, "spec_hash", info->spec_hash, "prompts",
                  (json_int_t)info->n_prompts, "cells", (json_int_t)n, "stored", (json_int_t)stored,
                  "metrics", list_names(file, qkv_sweep_reader_metric), "targets",
                  list_names(file, qkv_sweep_reader_target), "operations",
                  list_names(file, qkv_sweep_reader_op));
    if (all && info->model_notices[0])
        qkv_json_put(all, "model_notices", qkv_json_text(info->model_notices));
    return all;
}

int show_sweep(const char *path, const show_args *args, qkv_error *err) {
    static const char *const none[] = {NULL};
    qkv_sweep_reader *file = NULL;
    json_t *all = NULL;
    size_t n = 0, stored = 0;
    if (args->tensor) return cli_usage(err, "--tensor: %s is the results file of a sweep", path);
    int status = qkv_sweep_reader_open(&file, path, err);
    if (status == QKV_OK) status = count_cells(file, &n, &stored, err);
    if (status == QKV_OK && !(all = describe(file, n, stored))) status = qkv_fail_memory(err);
    if (status == QKV_OK && args->json) {
        status = cli_print_json(json_incref(all), err);
    } else if (status == QKV_OK) {
        printf("%s: results of a sweep, %s\n\n", path, stored == n ? "complete" : "unfinished");
        show_object(all, none);
    }
    json_decref(all);
    qkv_sweep_reader_close(file);
    return status;
}
