/*
 * Prints the tables of a study that is made in C, as JSON: study_door MODEL KIND OPTIONS [PROMPT...]. A comparison is
 * one with the same model.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "support/study_maker.h"

enum { MOST_PROMPTS = 16 };

static json_t *cell(const qkv_study *study, size_t table, size_t row, size_t column) {
    double number = NAN;
    const char *text = NULL;
    if (qkv_study_get_value(study, table, row, column, &number, &text, NULL) != QKV_OK) return NULL;
    return text ? qkv_json_text(text) : qkv_json_exact(number);
}

static json_t *table_json(const qkv_study *study, size_t table, const qkv_study_table *size) {
    json_t *columns = json_array(), *rows = json_array();
    for (size_t c = 0; c < size->n_columns; c++)
        qkv_json_push(columns, qkv_json_text(qkv_study_column(study, table, c)));
    for (size_t r = 0; r < size->n_rows; r++) {
        json_t *row = json_array();
        for (size_t c = 0; c < size->n_columns; c++) qkv_json_push(row, cell(study, table, r, c));
        qkv_json_push(rows, row);
    }
    return json_pack("{s:s, s:o, s:o}", "name", size->name, "columns", columns, "rows", rows);
}

static int print_tables(const qkv_study *study) {
    qkv_study_table size = QKV_STUDY_TABLE_INIT;
    json_t *tables = json_array();
    for (size_t i = 0; qkv_study_get_table(study, i, &size, NULL) == QKV_OK; i++)
        qkv_json_push(tables, table_json(study, i, &size));
    const int failed = qkv_json_print(tables, stdout, JSON_REAL_PRECISION(17));
    json_decref(tables);
    return failed;
}

int main(int argc, char **argv) {
    qkv_prompt prompts[MOST_PROMPTS];
    qkv_study_kind kind = QKV_STUDY_KIND_INIT;
    qkv_session_options how = QKV_SESSION_OPTIONS_INIT;
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    qkv_study *study = NULL;
    qkv_error err = {0};
    if (argc < 4 || argc > 4 + MOST_PROMPTS) return 2;
    study_case of = {.kind = argv[2], .options = argv[3], .prompts = prompts};
    for (int i = 4; i < argc; i++) {
        prompts[of.n_prompts] = (qkv_prompt)QKV_PROMPT_INIT;
        prompts[of.n_prompts++].text = argv[i];
    }
    how.n_threads = 1;
    int status = qkv_study_get_kind(of.kind, &kind, &err);
    if (status == QKV_OK) status = qkv_model_open(&model, argv[1], &err);
    if (status == QKV_OK) status = qkv_session_new(&session, model, &how, &err);
    of.session = session;
    if (kind.n_models == 2) of.other = session;
    if (status == QKV_OK) status = study_make(&study, &of, &err);
    if (status != QKV_OK) fprintf(stderr, "%s\n", err.message);
    if (status == QKV_OK) status = print_tables(study);
    qkv_study_free(study);
    qkv_session_free(session);
    qkv_model_free(model);
    return status == QKV_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
