/* Pairs of prompts from a table: CSV, the same with tabs, or an object of JSON on each line. */
#include "cli/patch.h"

#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/memory.h"

#define LARGEST_FILE ((size_t)256 << 20)

enum { CLEAN, CORRUPT, ANSWER, WRONG, N_KEYS, OTHER = N_KEYS };
static const char *const keys[N_KEYS] = {"clean", "corrupt", "answer", "wrong"};

static int add_text(patch_pairs *p, const char *text, qkv_error *err) {
    char *copy = qkv_strdup(text);
    if (!copy || !QKV_PUSH(p->texts, p->texts_capacity, p->n_texts, copy)) {
        free(copy);
        return qkv_fail_memory(err);
    }
    const cli_item item = {copy, CLI_PROMPT_TEXT};
    return QKV_PUSH(p->prompts.items, p->prompts.capacity, p->prompts.n, item)
               ? QKV_OK
               : qkv_fail_memory(err);
}

int patch_pairs_add(patch_pairs *pairs, const char *clean, const char *corrupt, qkv_error *err) {
    const int status = add_text(pairs, clean, err);
    return status == QKV_OK ? add_text(pairs, corrupt, err) : status;
}

/* ---- rows ---- */

/* One pair: texts, NULL where the file has none. */
static int add_row(patch_pairs *p, const char *const row[N_KEYS], const char *path, size_t line,
                   qkv_error *err) {
    for (int i = CLEAN; i <= CORRUPT; i++) {
        if (!row[i] || !row[i][0])
            return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu: there is no %s prompt", path, line,
                            keys[i]);
    }
    for (int i = 0; i < N_KEYS; i++) {
        if (row[i] && !qkv_utf8_valid(row[i], strlen(row[i])))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu is not UTF-8 text", path, line);
    }
    json_t *answers = json_array();
    for (int i = ANSWER; i <= WRONG; i++)
        json_array_append_new(answers, row[i] && row[i][0] ? json_string(row[i]) : json_null());
    if (json_array_append_new(p->answers, answers) != 0) return qkv_fail_memory(err);
    return patch_pairs_add(p, row[CLEAN], row[CORRUPT], err);
}

/* ---- JSON lines ---- */

static int read_object(patch_pairs *p, const char *text, size_t length, const char *path,
                       size_t line, qkv_error *err) {
    json_error_t problem;
    const char *row[N_KEYS] = {0};
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &problem);
    int status = QKV_OK;
    if (!json_is_object(object))
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu is no JSON object%s%s", path, line,
                          object ? "" : ": ", object ? "" : problem.text);
    for (int i = 0; i < N_KEYS && status == QKV_OK; i++) {
        const json_t *value = json_object_get(object, keys[i]);
        row[i] = json_string_value(value);
        if (value && !row[i] && !json_is_null(value))
            status =
                qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu: %s is no text", path, line, keys[i]);
    }
    if (status == QKV_OK) status = add_row(p, row, path, line, err);
    json_decref(object);
    return status;
}

static int read_lines(patch_pairs *p, const char *text, const char *path, qkv_error *err) {
    int status = QKV_OK;
    for (size_t line = 1; *text && status == QKV_OK; line++) {
        const size_t n = strcspn(text, "\n");
        if (strspn(text, " \t\r") < n) status = read_object(p, text, n, path, line, err);
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
    qkv_text field = {0};
    unsigned found = 0;
    int last = 0, status = QKV_OK;
    while (!last && t->n_columns < MOST_COLUMNS && status == QKV_OK) {
        uint8_t key = 0;
        status = qkv_csv_field(&t->csv, &field, &last, err);
        while (status == QKV_OK && key < N_KEYS && strcmp(field.data, keys[key]) != 0) key++;
        found |= 1u << key;
        t->columns[t->n_columns++] = key;
    }
    qkv_text_release(&field);
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
        qkv_text *field = key < N_KEYS ? &fields[key] : &other;
        status = qkv_csv_field(&t->csv, field, &last, err);
        if (key < N_KEYS) row[key] = field->data;
    }
    if (status == QKV_OK && n > t->n_columns)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu has more fields than the first line",
                          t->csv.name, line);
    if (status == QKV_OK) status = add_row(p, row, t->csv.name, line, err);
    for (int i = 0; i < N_KEYS; i++) qkv_text_release(&fields[i]);
    qkv_text_release(&other);
    return status;
}

static int read_table(patch_pairs *p, const char *text, const char *path, char between,
                      qkv_error *err) {
    table t = {.n_columns = 0};
    qkv_csv_begin(&t.csv, text, strlen(text), between, path);
    int status = read_names(&t, err);
    for (; status == QKV_OK; status = read_row(&t, p, err)) {
        qkv_csv_skip_blank(&t.csv);
        if (!qkv_csv_more(&t.csv)) break;
    }
    return status;
}

int patch_pairs_read(patch_pairs *pairs, const char *path, qkv_error *err) {
    char *text = NULL;
    size_t size = 0;
    const char *suffix = qkv_path_suffix(path);
    const int lines = strcmp(suffix, "jsonl") == 0, tabs = strcmp(suffix, "tsv") == 0;
    if (!lines && !tabs && strcmp(suffix, "csv") != 0)
        return cli_usage(err, "pairs are read from .csv, .tsv or .jsonl, not from %s", path);
    int status = qkv_read_file(&text, &size, path, LARGEST_FILE, err);
    if (status == QKV_OK && strlen(text) != size)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is not UTF-8 text", path);
    pairs->answers = json_array();
    if (status == QKV_OK && !pairs->answers) status = qkv_fail_memory(err);
    if (status == QKV_OK)
        status = lines ? read_lines(pairs, text, path, err)
                       : read_table(pairs, text, path, tabs ? '\t' : ',', err);
    if (status == QKV_OK && pairs->prompts.n == 0)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s has no pairs", path);
    free(text);
    return status;
}

void patch_pairs_release(patch_pairs *pairs) {
    for (size_t i = 0; i < pairs->n_texts; i++) free(pairs->texts[i]);
    free(pairs->texts);
    free(pairs->prompts.items);
    json_decref(pairs->answers);
    *pairs = (patch_pairs){0};
}
