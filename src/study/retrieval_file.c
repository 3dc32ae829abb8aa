/* Answers of tests of retrieval heads on disk: a row a test, known by a fingerprint of its prompt. */
#include <stdlib.h>

#include "base/fingerprint.h"
#include "base/json.h"
#include "base/memory.h"
#include "qkv/model.h"
#include "study/kept_file.h"
#include "study/retrieval.h"

#define FORMAT "qkv retrieval 1"

struct retrieval_file {
    kept_file kept;
    const retrieval *r;
    sqlite3_stmt *insert, *select;
};

static const kept_kind kind = {
    .what = "retrieval heads",
    .other = "answers of another model, or decoded in another way",
    .header = "study",
    .table = "answers",
    .columns =
        "test TEXT PRIMARY KEY NOT NULL, tokens TEXT NOT NULL, share REAL, copied TEXT NOT NULL",
};

/* ---- opening ---- */

static int open_file(retrieval_file *f, qkv_error *err) {
    const retrieval *r = f->r;
    char hash[33];
    int status = qkv_model_hash(r->in->model, hash, err);
    if (status != QKV_OK) return status;
    json_t *all = json_pack("{s:s, s:s, s:s, s:b, s:I}", "format", FORMAT, "model", hash, "decode",
                            r->how->decode == RETRIEVAL_FORCED ? "forced" : "greedy", "parity",
                            (int)r->how->parity, "tokens", (json_int_t)r->n_new);
    char *task = all ? qkv_json_dump(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    if (!task) return qkv_fail_memory(err);
    status = qkv_kept_file_open(&f->kept, &kind, r->in->results, task, err);
    free(task);
    return status;
}

int qkv_retrieval_file_open(retrieval_file **out, const retrieval *r, qkv_error *err) {
    retrieval_file *f = qkv_calloc(1, sizeof *f);
    *out = f;
    if (!f) return qkv_fail_memory(err);
    f->r = r;
    int status = open_file(f, err);
    if (status == QKV_OK)
        status = qkv_database_prepare(
            &f->kept.db, &f->insert, "INSERT OR REPLACE INTO answers VALUES (?1, ?2, ?3, ?4)", err);
    if (status == QKV_OK)
        status =
            qkv_database_prepare(&f->kept.db, &f->select,
                                 "SELECT tokens, share, copied FROM answers WHERE test = ?1", err);
    if (status == QKV_OK) return QKV_OK;
    qkv_retrieval_file_close(f, NULL);
    *out = NULL;
    return status;
}

int qkv_retrieval_file_close(retrieval_file *f, qkv_error *err) {
    if (!f) return QKV_OK;
    sqlite3_finalize(f->insert);
    sqlite3_finalize(f->select);
    const int status = qkv_kept_file_close(&f->kept, err);
    free(f);
    return status;
}

/* ---- answers ---- */

/* All that an answer depends on, besides what the file is for. */
static int name_test(const retrieval_test *test, char out[QKV_FINGERPRINT_SIZE], qkv_error *err) {
    qkv_fingerprint print;
    const int status = qkv_fingerprint_start(&print, err);
    if (status != QKV_OK) return status;
    qkv_fingerprint_add_number(&print, test->start);
    qkv_fingerprint_add_number(&print, test->end);
    for (size_t i = 0; i < test->n_tokens; i++)
        qkv_fingerprint_add_number(&print, (uint64_t)test->tokens[i]);
    qkv_fingerprint_end(&print, out);
    return QKV_OK;
}

static json_t *numbers_at(sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? qkv_json_parse(text, (size_t)sqlite3_column_bytes(row, column), 0, NULL) : NULL;
}

/* Numbers from 0 to `most`, or nothing: the file may be anybody's. */
static int are_numbers(const json_t *list, size_t least_n, size_t most_n, int64_t most) {
    if (!json_is_array(list) || json_array_size(list) < least_n || json_array_size(list) > most_n)
        return 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) > most)
            return 0;
    }
    return 1;
}

static int take_row(const retrieval_file *f, retrieval_test *test, const json_t *tokens,
                    const json_t *copied, qkv_error *err) {
    const size_t n_heads = f->r->n_heads;
    const size_t n_span = test->end - test->start;
    const size_t n_most = f->r->how->decode == RETRIEVAL_FORCED ? n_span : f->r->n_new;
    const int64_t n_vocab = qkv_model_get_info(f->r->in->model)->n_vocab;
    if (!are_numbers(tokens, 0, n_most, n_vocab - 1) ||
        !are_numbers(copied, n_heads, n_heads, (int64_t)n_most))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: an answer is damaged; remove the file",
                        f->kept.db.path);
    test->n_answer = json_array_size(tokens);
    test->answer = qkv_calloc(test->n_answer, sizeof *test->answer);
    test->copied = qkv_calloc(n_heads, sizeof *test->copied);
    if (!test->answer || !test->copied) return qkv_fail_memory(err);
    for (size_t i = 0; i < test->n_answer; i++)
        test->answer[i] = (int32_t)json_integer_value(json_array_get(tokens, i));
    for (size_t i = 0; i < n_heads; i++)
        test->copied[i] = (uint32_t)json_integer_value(json_array_get(copied, i));
    test->recall = sqlite3_column_double(f->select, 1);
    return QKV_OK;
}

int qkv_retrieval_file_get(retrieval_file *f, retrieval_test *test, int *found, qkv_error *err) {
    char name[QKV_FINGERPRINT_SIZE];
    int status = name_test(test, name, err);
    if (status != QKV_OK) return status;
    sqlite3_bind_text(f->select, 1, name, -1, SQLITE_TRANSIENT);
    status = qkv_database_step(&f->kept.db, f->select, found, err);
    if (status == QKV_OK && *found) {
        json_t *tokens = numbers_at(f->select, 0), *copied = numbers_at(f->select, 2);
        status = take_row(f, test, tokens, copied, err);
        json_decref(tokens);
        json_decref(copied);
    }
    sqlite3_reset(f->select);
    return status;
}

static void append_number(qkv_text *to, size_t i, long long number) {
    qkv_text_printf(to, "%s%lld", i ? "," : "[", number);
}

int qkv_retrieval_file_put(retrieval_file *f, const retrieval_test *test, qkv_error *err) {
    char name[QKV_FINGERPRINT_SIZE];
    qkv_text tokens = {0}, copied = {0};
    int row, status = name_test(test, name, err);
    for (size_t i = 0; i < test->n_answer; i++) append_number(&tokens, i, test->answer[i]);
    for (size_t i = 0; i < f->r->n_heads; i++) append_number(&copied, i, test->copied[i]);
    qkv_text_puts(&tokens, test->n_answer ? "]" : "[]");
    qkv_text_puts(&copied, "]");
    if (status == QKV_OK && (tokens.failed || copied.failed)) status = qkv_fail_memory(err);
    if (status == QKV_OK) {
        sqlite3_bind_text(f->insert, 1, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(f->insert, 2, tokens.data, -1, SQLITE_TRANSIENT);
        sqlite3_bind_double(f->insert, 3, test->recall);
        sqlite3_bind_text(f->insert, 4, copied.data, -1, SQLITE_TRANSIENT);
        status = qkv_database_step(&f->kept.db, f->insert, &row, err);
    }
    qkv_text_release(&tokens);
    qkv_text_release(&copied);
    return status;
}
