/* Answers of tests of retrieval heads on disk: a row a test, known by a fingerprint of its prompt. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/json.h"
#include "base/memory.h"
#include "study/retrieval.h"

static const qkv_journal_kind kind = {.noun = "study of retrieval heads",
                                      .spec_noun = "way of decoding",
                                      .formats = {"qkv retrieval 2"},
                                      .former = "answers"};

int qkv_retrieval_file_open(qkv_journal *file, const retrieval *r, qkv_error *err) {
    json_t *all = json_pack("{s:s, s:b, s:I}", "decode",
                            r->how->decode == RETRIEVAL_FORCED ? "forced" : "greedy", "parity",
                            (int)r->how->parity, "tokens", (json_int_t)r->n_new);
    char *spec = all ? qkv_json_dump(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    if (!spec) return qkv_fail_memory(err);
    const qkv_journal_work work = {.kind = &kind, .model = r->in->model, .spec = spec};
    const int status = qkv_journal_open(file, r->in->results, &work, err);
    free(spec);
    return status;
}

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

static int take_answer(const retrieval *r, const char *path, retrieval_test *test,
                       const json_t *answer, qkv_error *err) {
    const json_t *tokens = json_object_get(answer, "tokens"),
                 *copied = json_object_get(answer, "copied");
    const size_t n_heads = r->n_heads;
    const size_t n_span = test->end - test->start;
    const size_t n_most = r->how->decode == RETRIEVAL_FORCED ? n_span : r->n_new;
    const int64_t n_vocab = qkv_model_get_info(r->in->model)->n_vocab;
    if (!are_numbers(tokens, 0, n_most, n_vocab - 1) ||
        !are_numbers(copied, n_heads, n_heads, (int64_t)n_most))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: an answer is damaged; remove the file", path);
    test->n_answer = json_array_size(tokens);
    test->answer = qkv_calloc(test->n_answer, sizeof *test->answer);
    test->copied = qkv_calloc(n_heads, sizeof *test->copied);
    if (!test->answer || !test->copied) return qkv_fail_memory(err);
    for (size_t i = 0; i < test->n_answer; i++)
        test->answer[i] = (int32_t)json_integer_value(json_array_get(tokens, i));
    for (size_t i = 0; i < n_heads; i++)
        test->copied[i] = (uint32_t)json_integer_value(json_array_get(copied, i));
    test->recall = json_number_value(json_object_get(answer, "recall"));
    return QKV_OK;
}

int qkv_retrieval_file_get(qkv_journal *file, const retrieval *r, retrieval_test *test,
                           qkv_error *err) {
    char name[QKV_FINGERPRINT_SIZE], *text = NULL;
    int status = name_test(test, name, err);
    if (status == QKV_OK) status = qkv_journal_get(file, name, &text, err);
    if (text) {
        json_t *answer = qkv_json_parse(text, strlen(text), 0, NULL);
        status = take_answer(r, file->db.path, test, answer, err);
        json_decref(answer);
    }
    free(text);
    return status;
}

int qkv_retrieval_file_put(qkv_journal *file, const retrieval *r, const retrieval_test *test,
                           qkv_error *err) {
    char name[QKV_FINGERPRINT_SIZE], *text = NULL;
    json_t *tokens = json_array(), *copied = json_array();
    for (size_t i = 0; i < test->n_answer; i++)
        qkv_json_push(tokens, json_integer(test->answer[i]));
    for (size_t i = 0; i < r->n_heads; i++) qkv_json_push(copied, json_integer(test->copied[i]));
    json_t *recall = isnan(test->recall) ? json_null() : json_real(test->recall);
    json_t *answer =
        json_pack("{s:o, s:o, s:o}", "tokens", tokens, "copied", copied, "recall", recall);
    int status = name_test(test, name, err);
    if (status == QKV_OK && !(answer && (text = qkv_json_dump(answer, JSON_COMPACT))))
        status = qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_journal_put(file, name, text, err);
    json_decref(answer);
    free(text);
    return status;
}
