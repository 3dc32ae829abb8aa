/* The study `retrieval-heads`: options, the score of every head. See retrieval.h. */
#include "study/retrieval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number_list.h"

enum {
    USUAL_NEW = 50,
    MOST_NEW = 4096,
    USUAL_LENGTH = 512,
    MOST_LENGTH = 1 << 24,
    MOST_TESTS = 100000
};
static const char usual_depths[] = "0,0.25,0.5,0.75,1";
#define RIGHT 0.5 /* answers with a recall above this are right */

#define TEXT_FIELD(member, value, help)                                                            \
    FIELD(retrieval_options, member, TEXT, value, 0, 1 << 16, help)
static const field fields[] = {
    TEXT_FIELD(lengths, "LIST",
               "tokens of a prompt, or auto: 512, or what the context leaves (default auto)"),
    TEXT_FIELD(depths, "LIST",
               "where in the filler the needle stands, from 0 to 1 (default 0,0.25,0.5,0.75,1)"),
    TEXT_FIELD(needle, "TEXT", "the sentence that is put into the filler"),
    TEXT_FIELD(question, "TEXT", "the question that it answers"),
    TEXT_FIELD(answer, "TEXT", "the part of the needle that is the answer (default: all of it)"),
    FIELD(
        retrieval_options, needles, FILE, "FILE", 0, STUDY_MOST_TEXT,
        "several needles in place of one: a JSON object with needle, question and answer to a line"),
    TEXT_FIELD(template, "TEXT", "the prompt, with {context} and {question}"),
    TEXT_FIELD(system, "TEXT", "the system's message, with `chat`"),
    FIELD(retrieval_options, chat_template, FILE, "FILE", 0, STUDY_MOST_TEXT,
          "another chat template than the model's"),
    FIELD(retrieval_options, date, TEXT, "YYYY-MM-DD", 0, 64,
          "the date that the chat template is told"),
    FIELD_WORDS(retrieval_options, decode, "greedy|forced",
                "the model answers (default), or is fed the answer"),
    FIELD_NEW_TOKENS(retrieval_options, MOST_NEW, "tokens of an answer, at most (default 50)"),
    FIELD_FLAGGED(retrieval_options, all, "tests with a wrong answer count, too"),
    FIELD_FLAGGED(retrieval_options, chat, "the prompt is a user's message in the chat template"),
    FIELD_FLAGGED(retrieval_options, parity,
                  "what the paper's code does, where that differs from the paper"),
    FIELD(retrieval_options, top, INT, "N", 1, 1 << 20, "heads in the ranking (default 20)"),
};
#undef TEXT_FIELD

/* ---- what is tested ---- */

typedef struct number_rule {
    const char *name, *what;
    double least, most;
    int whole;
} number_rule;

static int read_list(double **out, size_t *n, size_t *capacity, const char *list,
                     const number_rule *rule, qkv_error *err) {
    char *expanded = NULL;
    const char *text;
    size_t length;
    double value;
    int status = qkv_number_list_expand(&expanded, list, err);
    const char *at = expanded;
    while (status == QKV_OK && qkv_number_list_next(&at, &text, &length, &value)) {
        if (rule->whole && strstr(list, "space:")) value = round(value); /* linspace, logspace */
        if (!(value >= rule->least && value <= rule->most) ||
            (rule->whole && value != floor(value)))
            status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s: '%.*s' is not %s", rule->name,
                              (int)length, text, rule->what);
        for (size_t i = 0; i < *n && status == QKV_OK; i++) {
            if ((*out)[i] == value)
                status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s: %.*s is given twice", rule->name,
                                  (int)length, text);
        }
        if (status == QKV_OK && !QKV_PUSH(*out, *capacity, *n, value))
            status = qkv_fail_memory(err);
    }
    free(expanded);
    return status;
}

/* Tokens that an answer may take. */
static int count_answer(const retrieval *r, size_t *most, qkv_error *err) {
    *most = r->n_new;
    if (r->how->decode == RETRIEVAL_GREEDY) return QKV_OK;
    *most = 0;
    int status = QKV_OK;
    for (size_t i = 0; i < r->n_needles && status == QKV_OK; i++) {
        const char *text = r->needles[i].answer;
        int32_t *tokens = NULL;
        size_t n = 0;
        status = qkv_tokenize(r->in->model, &tokens, &n, text, strlen(text), 0, err);
        if (n + 1 > *most) *most = n + 1; /* a space before it may take another */
        qkv_tokens_free(tokens);
    }
    return status;
}

static int read_lengths(retrieval *r, qkv_error *err) {
    const number_rule rule = {"lengths", "a whole number of tokens", 1, MOST_LENGTH, 1};
    size_t n_answer = 0;
    if (r->how->lengths && strcmp(r->how->lengths, "auto") != 0)
        return read_list(&r->lengths, &r->n_lengths, &r->lengths_capacity, r->how->lengths, &rule,
                         err);
    const int status = count_answer(r, &n_answer, err);
    if (status != QKV_OK) return status;
    const double left = (double)qkv_model_get_info(r->in->model)->n_ctx - (double)n_answer;
    const double usual = left > USUAL_LENGTH ? USUAL_LENGTH : left < 1 ? 1 : left;
    return QKV_PUSH(r->lengths, r->lengths_capacity, r->n_lengths, usual) ? QKV_OK
                                                                          : qkv_fail_memory(err);
}

static int make_tests(retrieval *r, qkv_error *err) {
    const size_t n_each = r->n_lengths * r->n_depths;
    if (r->n_needles > MOST_TESTS / n_each)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "these are more than %d tests", MOST_TESTS);
    r->n_tests = r->n_needles * n_each;
    r->tests = qkv_calloc(r->n_tests, sizeof *r->tests);
    if (!r->tests) return qkv_fail_memory(err);
    for (size_t i = 0; i < r->n_tests; i++) {
        r->tests[i].needle = i / n_each;
        r->tests[i].length = (int64_t)r->lengths[i % n_each / r->n_depths];
        r->tests[i].depth = r->depths[i % r->n_depths];
    }
    return QKV_OK;
}

static int check_options(const retrieval *r, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(r->in->model);
    const retrieval_options *how = r->how;
    if (!info->has_logits || !info->causal)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s is an encoder, which answers nothing",
                        info->path);
    if (how->decode == RETRIEVAL_FORCED && how->parity)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the paper's code decodes greedily: `parity` goes without decode=forced");
    if (how->decode == RETRIEVAL_FORCED && (how->all || how->tokens))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "with decode=forced the whole answer is fed and all tests count: leave out "
                        "`%s`",
                        how->all ? "all" : "tokens");
    const char *of_chat = how->system          ? "system"
                          : how->chat_template ? "chat_template"
                          : how->date          ? "date"
                                               : NULL;
    if (of_chat && !how->chat)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is for a chat: add chat=true", of_chat);
    return QKV_OK;
}

static int prepare(retrieval *r, qkv_error *err) {
    const number_rule depths = {"depths", "a depth from 0 to 1", 0, 1, 0};
    int status = check_options(r, err);
    if (status == QKV_OK) status = qkv_retrieval_read_needles(r, err);
    if (status == QKV_OK) status = read_lengths(r, err);
    if (status == QKV_OK)
        status = read_list(&r->depths, &r->n_depths, &r->depths_capacity,
                           r->how->depths ? r->how->depths : usual_depths, &depths, err);
    if (status == QKV_OK) status = make_tests(r, err);
    if (status == QKV_OK) status = qkv_retrieval_make_prompts(r, err);
    return status;
}

/* ---- computing ---- */

static int run_tests(retrieval *r, qkv_journal *file, qkv_error *err) {
    const int64_t passes = r->how->decode == RETRIEVAL_GREEDY ? 2 : 1; /* of a prompt */
    const int64_t wanted = passes * (int64_t)r->n_tests;
    int64_t n_there = 0;
    int status = qkv_study_begin(r->in, "runs", (size_t)wanted, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; file && i < r->n_tests && status == QKV_OK; i++) {
        status = qkv_retrieval_file_get(file, r, &r->tests[i], err);
        if (status != QKV_OK || !r->tests[i].copied) continue;
        status = qkv_retrieval_read_answer(r, &r->tests[i], err);
        n_there += passes;
    }
    for (size_t i = 0; i < r->n_tests && status == QKV_OK; i++) {
        if (r->tests[i].copied) continue;
        status = qkv_study_reach(r->in, (double)(n_there), (double)(passes), err);
        if (status == QKV_OK) status = qkv_retrieval_answer(r, &r->tests[i], err);
        if (status == QKV_OK && file) status = qkv_retrieval_file_put(file, r, &r->tests[i], err);
        n_there += passes;
    }
    if (status == QKV_OK) status = qkv_study_reach(r->in, (double)(wanted), (double)(0), err);
    return qkv_study_end(r->in, status);
}

static int compute(retrieval *r, qkv_error *err) {
    qkv_journal file = {0};
    int status = r->in->results ? qkv_retrieval_file_open(&file, r, err) : QKV_OK;
    if (status == QKV_OK) status = run_tests(r, r->in->results ? &file : NULL, err);
    const int closed = qkv_journal_close(&file, status == QKV_OK ? err : NULL);
    return status == QKV_OK ? closed : status;
}

/* The mean over the tests that count. */
static int score(retrieval *r, qkv_error *err) {
    r->scores = qkv_calloc(r->n_heads, sizeof *r->scores);
    r->n_copies = qkv_calloc(r->n_heads, sizeof *r->n_copies);
    if (!r->scores || !r->n_copies) return qkv_fail_memory(err);
    for (size_t i = 0; i < r->n_tests; i++) {
        retrieval_test *test = &r->tests[i];
        test->counts = r->how->all || r->how->decode == RETRIEVAL_FORCED || test->recall > RIGHT;
        r->n_counted += (size_t)test->counts;
        for (size_t h = 0; test->counts && h < r->n_heads; h++) {
            if (!test->copied[h]) continue;
            r->scores[h] += (double)test->copied[h] / (double)(test->end - test->start);
            r->n_copies[h]++;
        }
    }
    for (size_t h = 0; h < r->n_heads; h++)
        r->scores[h] = r->n_counted ? r->scores[h] / (double)r->n_counted : (double)NAN;
    return QKV_OK;
}

/* ---- the study ---- */

static void release(retrieval *r) {
    for (size_t i = 0; r->tests && i < r->n_tests; i++) {
        qkv_tokens_free(r->tests[i].tokens);
        free(r->tests[i].answer);
        free(r->tests[i].text);
        free(r->tests[i].copied);
    }
    for (size_t i = 0; i < r->n_needles; i++) {
        free(r->needles[i].text);
        free(r->needles[i].question);
        free(r->needles[i].answer);
    }
    free(r->tests);
    free(r->needles);
    free(r->lengths);
    free(r->depths);
    free(r->scores);
    free(r->n_copies);
}

static int make_retrieval(qkv_study *study, const study_inputs *in, const void *given,
                          qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(in->model);
    const retrieval_options *options = given;
    retrieval r = {.in = in,
                   .how = options,
                   .n_layer = (size_t)info->n_layer,
                   .n_head = (size_t)info->n_head,
                   .n_heads = (size_t)info->n_layer * (size_t)info->n_head,
                   .n_new = options->tokens ? (size_t)options->tokens : USUAL_NEW};
    int status = prepare(&r, err);
    if (status == QKV_OK) status = compute(&r, err);
    if (status == QKV_OK) status = score(&r, err);
    if (status == QKV_OK) status = qkv_retrieval_show(&r, study, err);
    release(&r);
    return status;
}

const study_kind qkv_study_retrieval = {
    .name = "retrieval-heads",
    .title = "retrieval heads: which heads copy a needle out of filler text (Wu et al.)",
    .description =
        "Retrieval heads (Wu et al., arXiv 2404.15574): a needle, a sentence that a question asks for, is put "
        "at several depths into filler text, and the model answers. A head has copied a token when its "
        "largest weight, at the query that predicts the token, lies on that token inside the needle. Its "
        "score is the share of the needle's answer that it has copied, the mean over the tests that the "
        "model answers right (recall of words above 0.5). Prompts are the filler. Small models answer "
        "nothing: `decode` forced feeds the answer.\n",
    .examples = "qkv retrieval-heads -f filler.txt --decode forced -o retrieval.png\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(retrieval_options),
    .least_prompts = 1, /* the filler */
    .most_prompts = 100000,
    .n_printed = 2,
    .keeps_results = 1,
    .make = make_retrieval,
};
