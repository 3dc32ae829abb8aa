/* Pairs of prompts from a table: CSV, the same with tabs, or an object of JSON on each line. */
#include "study/patch.h"

#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/memory.h"

enum { CLEAN, CORRUPT, ANSWER, WRONG, N_KEYS, OTHER = N_KEYS };
static const char *const keys[N_KEYS] = {"clean", "corrupt", "answer", "wrong"};
static const char where[] = "`pairs`"; /* as messages call the table */

typedef struct patch_pairs {
    qkv_study *study;
    json_t *answers; /* [[answer, wrong], ...] */
} patch_pairs;

/* ---- rows ---- */

/* One pair: texts, NULL where the table has none. */
static int add_row(patch_pairs *p, const char *const row[N_KEYS], size_t line, qkv_error *err) {
    for (int i = CLEAN; i <= CORRUPT; i++) {
        if (!row[i] || !row[i][0])
            return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu: there is no %s prompt", where, line,
                            keys[i]);
    }
    for (int i = 0; i < N_KEYS; i++) {
        if (row[i] && !qkv_utf8_valid(row[i], strlen(row[i])))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu is not UTF-8 text", where, line);
    }
    json_t *answers = json_array();
    for (int i = ANSWER; i <= WRONG; i++)
        qkv_json_push(answers, row[i] && row[i][0] ? json_string(row[i]) : json_null());
    if (qkv_json_push(p->answers, answers) != 0) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (int i = CLEAN; i <= CORRUPT && status == QKV_OK; i++) {
        qkv_prompt prompt = QKV_PROMPT_INIT;
        prompt.text = row[i];
        status = qkv_study_add_prompt(p->study, &prompt, err);
    }
    return status;
}

/* ---- JSON lines ---- */

static int read_object(patch_pairs *p, const char *text, size_t length, size_t line,
                       qkv_error *err) {
    json_error_t problem;
    const char *row[N_KEYS] = {0};
    json_t *object = qkv_json_parse(text, length, JSON_REJECT_DUPLICATES, &problem);
    int status = QKV_OK;
    if (!json_is_object(object))
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu is not a JSON object%s%s", where, line,
                          object ? "" : ": ", object ? "" : problem.text);
    for (int i = 0; i < N_KEYS && status == QKV_OK; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        row[i] = json_string_value(value);
        if (value && !row[i] && !json_is_null(value))
            status = qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu: %s is not a text", where, line,
                              keys[i]);
    }
    if (status == QKV_OK) status = add_row(p, row, line, err);
    json_decref(object);
    return status;
}

static int read_lines(patch_pairs *p, const char *text, qkv_error *err) {
    int status = QKV_OK;
    for (size_t line = 1; *text && status == QKV_OK; line++) {
        const size_t n = strcspn(text, "\n");
        if (strspn(text, " \t\r") < n) status = read_object(p, text, n, line, err);
        text += n + (text[n] == '\n');
    }
    return status;
}

/* ---- tables ---- */

enum { MOST_COLUMNS = 1000 };

typedef struct table {
    qkv_csv csv;
    uint8_t columns[MOST_COLUMNS]; /* which key each is */
    size_t n_columns;
} table;

static int read_names(table *t, qkv_error *err) {
    qkv_text name = {0};
    unsigned found = 0;
    int last = 0, status = QKV_OK;
    while (!last && t->n_columns < MOST_COLUMNS && status == QKV_OK) {
        uint8_t key = 0;
        status = qkv_csv_field(&t->csv, &name, &last, err);
        while (status == QKV_OK && key < N_KEYS && strcmp(name.data, keys[key]) != 0) key++;
        found |= 1u << key;
        t->columns[t->n_columns++] = key;
    }
    qkv_text_release(&name);
    if (status != QKV_OK || (found & 1u << CLEAN && found & 1u << CORRUPT)) return status;
    return qkv_fail(err, QKV_ERR_FORMAT,
                    "%s: the first line must name the columns clean and corrupt (and, where "
                    "wanted, answer and wrong)",
                    t->csv.name);
}

static int read_row(table *t, patch_pairs *p, qkv_error *err) {
    qkv_text fields[N_KEYS] = {{0}}, other = {0};
    const char *row[N_KEYS] = {0};
    const size_t line = t->csv.next;
    size_t n = 0;
    int last = 0, status = QKV_OK;
    for (; !last && status == QKV_OK; n++) {
        const uint8_t key = n < t->n_columns ? t->columns[n] : OTHER;
        qkv_text *cell = key < N_KEYS ? &fields[key] : &other;
        status = qkv_csv_field(&t->csv, cell, &last, err);
        if (key < N_KEYS) row[key] = cell->data;
    }
    if (status == QKV_OK && n > t->n_columns)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu has more fields than the first line",
                          t->csv.name, line);
    if (status == QKV_OK) status = add_row(p, row, line, err);
    for (int i = 0; i < N_KEYS; i++) qkv_text_release(&fields[i]);
    qkv_text_release(&other);
    return status;
}

static int read_table(patch_pairs *p, const char *text, char between, qkv_error *err) {
    table t = {.n_columns = 0};
    qkv_csv_begin(&t.csv, text, strlen(text), between, where);
    int status = read_names(&t, err);
    for (; status == QKV_OK; status = read_row(&t, p, err)) {
        qkv_csv_skip_blank(&t.csv);
        if (!qkv_csv_more(&t.csv)) break;
    }
    return status;
}

/* ---- all of it ---- */

/* The first line tells what it is: an object of JSON, or names with tabs or commas between them. */
static int read_pairs(patch_pairs *p, const char *text, qkv_error *err) {
    const char *start = text + strspn(text, " \t\r\n");
    if (*start == '{') return read_lines(p, text, err);
    return read_table(p, text, memchr(text, '\t', strcspn(text, "\n")) ? '\t' : ',', err);
}

/* They become prompts and answers of the study, as if they had been given one by one. */
int qkv_patch_pairs_take(qkv_study *study, const char *text, qkv_error *err) {
    json_t *work = study->set[QKV_FIELD_WORK];
    patch_pairs pairs = {.study = study, .answers = json_array()};
    int status = pairs.answers ? read_pairs(&pairs, text, err) : qkv_fail_memory(err);
    if (status == QKV_OK && study->n_given == 0)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s has no rows", where);
    char *answers = status == QKV_OK ? qkv_json_dump(pairs.answers, JSON_COMPACT) : NULL;
    if (status == QKV_OK && (!answers || qkv_json_put(work, "answers", json_string(answers)) != 0))
        status = qkv_fail_memory(err);
    if (status == QKV_OK) json_object_del(work, "pairs");
    free(answers);
    json_decref(pairs.answers);
    return status;
}
