/* Needles of retrieval heads: a sentence, the question that it answers, and the part of it that is the answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "study/retrieval.h"

enum { MOST_NEEDLES = 1000 };

static const char usual_needle[] =
    "The key to the old boathouse hangs behind the kitchen clock, next to the calendar.";
static const char usual_question[] = "Where does the key to the old boathouse hang?";
static const char usual_answer[] = "behind the kitchen clock, next to the calendar";

/* ---- words ---- */

static int is_word(char byte) {
    return qkv_is_letter(byte) || (byte >= '0' && byte <= '9') || (unsigned char)byte >= 0x80;
}

/* The next word, from *at on, which is moved after it. 0 at the end. */
static size_t next_word(const char **at, const char **word) {
    const char *p = *at;
    while (*p && !is_word(*p)) p++;
    *word = p;
    while (is_word(*p)) p++;
    *at = p;
    return (size_t)(p - *word);
}

static int same_word(const char *a, const char *b, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (qkv_lower(a[i]) != qkv_lower(b[i])) return 0;
    }
    return 1;
}

/* How often a word is there, before `end` (NULL: anywhere). */
static size_t count_word(const char *text, const char *end, const char *word, size_t length) {
    const char *found;
    size_t n = 0, found_length;
    while ((found_length = next_word(&text, &found)) && (!end || found < end))
        n += found_length == length && same_word(found, word, length);
    return n;
}

double qkv_retrieval_recall(const char *wanted, const char *text) {
    const char *at = wanted, *word;
    size_t n = 0, n_found = 0, length;
    while ((length = next_word(&at, &word))) {
        /* The third "the" counts where the text has three. */
        n_found += count_word(wanted, word, word, length) < count_word(text, NULL, word, length);
        n++;
    }
    return n ? (double)n_found / (double)n : (double)NAN;
}

/* ---- needles ---- */

/* Whether the answer is a part of the needle, in capitals or not. */
static int has_part(const char *text, const char *part) {
    const size_t length = strlen(part), n = strlen(text);
    for (size_t i = 0; i + length <= n; i++) {
        if (same_word(text + i, part, length)) return 1;
    }
    return 0;
}

static int check_needle(const char *text, const char *question, const char *answer, size_t number,
                        qkv_error *err) {
    if (!text || !question)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "needle %zu: a needle and its question are needed",
                        number);
    if (!*text || !*question)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "needle %zu: the %s is empty", number,
                        *text ? "question" : "needle");
    if (isnan(qkv_retrieval_recall(answer, "")))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "needle %zu: the answer has no words", number);
    if (!has_part(text, answer))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "needle %zu: the answer \"%.80s\" is not part of the needle \"%.80s\"",
                        number, answer, text);
    return QKV_OK;
}

/* answer NULL: the whole text */
static int add_needle(retrieval *r, const char *text, const char *question, const char *answer,
                      qkv_error *err) {
    if (!answer) answer = text;
    int status = check_needle(text, question, answer, r->n_needles + 1, err);
    if (status != QKV_OK) return status;
    if (r->n_needles == MOST_NEEDLES)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there are more than %d needles", MOST_NEEDLES);
    const retrieval_needle fresh = {qkv_strdup(text), qkv_strdup(question), qkv_strdup(answer)};
    if (!QKV_PUSH(r->needles, r->needles_capacity, r->n_needles, fresh))
        return qkv_fail_memory(err);
    return fresh.text && fresh.question && fresh.answer ? QKV_OK : qkv_fail_memory(err);
}

/* {"needle": ..., "question": ..., "answer": ...}; the paper's file says "real_needle". */
static int read_line(retrieval *r, const char *line, size_t length, qkv_error *err) {
    json_error_t where;
    json_t *json = qkv_json_parse(line, length, JSON_REJECT_DUPLICATES, &where);
    const char *key;
    json_t *value;
    int status = QKV_OK;
    if (!json_is_object(json))
        status = qkv_fail(err, QKV_ERR_FORMAT, "needle %zu is not a JSON object in a line: %s",
                          r->n_needles + 1, json ? "it is something else" : where.text);
    json_object_foreach(json, key, value) {
        if (status == QKV_OK && (!json_is_string(value) ||
                                 (strcmp(key, "needle") != 0 && strcmp(key, "question") != 0 &&
                                  strcmp(key, "answer") != 0 && strcmp(key, "real_needle") != 0)))
            status =
                qkv_fail(err, QKV_ERR_FORMAT,
                         "needle %zu: it has texts called needle, question and answer, not '%.40s'",
                         r->n_needles + 1, key);
    }
    if (status == QKV_OK) {
        const char *answer = json_string_value(json_object_get(json, "answer"));
        if (!answer) answer = json_string_value(json_object_get(json, "real_needle"));
        status = add_needle(r, json_string_value(json_object_get(json, "needle")),
                            json_string_value(json_object_get(json, "question")), answer, err);
    }
    json_decref(json);
    return status;
}

static int read_lines(retrieval *r, const char *text, qkv_error *err) {
    int status = QKV_OK;
    while (status == QKV_OK && *text) {
        const size_t length = strcspn(text, "\n");
        if (strspn(text, " \t\r") < length) status = read_line(r, text, length, err);
        text += length + (text[length] == '\n');
    }
    if (status == QKV_OK && !r->n_needles)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "there are no needles");
    return status;
}

int qkv_retrieval_read_needles(retrieval *r, qkv_error *err) {
    const retrieval_options *how = r->how;
    const int has_one = how->needle || how->question || how->answer;
    if (how->needles && has_one)
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "`needles` stands in place of needle, question and answer: give one of them");
    if (how->needles) return read_lines(r, how->needles, err);
    if (has_one) return add_needle(r, how->needle, how->question, how->answer, err);
    return add_needle(r, usual_needle, usual_question, usual_answer, err);
}
