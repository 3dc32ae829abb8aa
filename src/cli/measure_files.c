/*
 * The files of `qkv measure`: one writer of the library for each, which get the same tables.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "cli/measure.h"
#include "qkv/version.h"

static int take_names(measure_files *files, const measure_names *names, qkv_error *err) {
    const size_t n_variants = names->variants->n;
    files->variants = qkv_calloc(n_variants, sizeof *files->variants);
    files->prompts = qkv_calloc(names->n_prompts, sizeof *files->prompts);
    if ((n_variants && !files->variants) || !files->prompts) return qkv_fail_memory(err);
    for (size_t i = 0; i < n_variants; i++) files->variants[i] = names->variants->items[i].value;
    for (size_t i = 0; i < names->n_prompts; i++) {
        const cli_prompt *prompt = &names->prompts[i];
        const qkv_prompt defaults = QKV_PROMPT_INIT;
        files->prompts[i] = defaults;
        files->prompts[i].text = prompt->text;
        files->prompts[i].length = prompt->length;
        files->prompts[i].tokens = prompt->tokens;
        files->prompts[i].n_tokens = prompt->n_tokens;
    }
    return QKV_OK;
}

int measure_files_open(measure_files *files, const cli_list *outputs, const char *format,
                       const measure_names *names, qkv_error *err) {
    qkv_table_names described = QKV_TABLE_NAMES_INIT;
    files->printed = SIZE_MAX;
    files->items = qkv_calloc(outputs->n, sizeof(qkv_table_writer *));
    int status = files->items ? take_names(files, names, err) : qkv_fail_memory(err);
    described.measure = names->measure;
    described.model = names->model;
    described.prompts = files->prompts;
    described.n_prompts = names->n_prompts;
    described.variants = files->variants;
    described.n_variants = names->variants->n;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        const char *path = outputs->items[i].value;
        if (cli_is_stdout(path)) files->printed = i;
        status = cli_is_stdout(path)
                     ? qkv_table_writer_new(&files->items[i], format, &described, err)
                     : qkv_table_writer_open(&files->items[i], path, &described, err);
        files->n += status == QKV_OK;
    }
    return status;
}

int measure_files_add(measure_files *files, int32_t prompt, const qkv_table *table,
                      qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < files->n && status == QKV_OK; i++) {
        status = qkv_table_writer_add(files->items[i], prompt, table, err);
    }
    return status;
}

static int print_table(qkv_table_writer *writer, qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    const int status = qkv_table_writer_take(writer, &bytes, &n_bytes, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

int measure_files_finish(measure_files *files, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < files->n && status == QKV_OK; i++) {
        status = i == files->printed ? print_table(files->items[i], err)
                                     : qkv_table_writer_finish(files->items[i], err);
    }
    return status;
}

void measure_files_release(measure_files *files) {
    for (size_t i = 0; i < files->n; i++) qkv_table_writer_free(files->items[i]);
    free((void *)files->items);
    free((void *)files->variants);
    free(files->prompts);
    *files = (measure_files){0};
}
