/*
 * Prompts of retrieval heads: filler text, cut to a length in tokens, with the needle at a depth, then the
 * question. They are put together as text and tokenized as a whole; the needle is then looked for in the
 * text of the tokens.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "qkv/chat.h"
#include "study/retrieval.h"

#define CONTEXT "{context}"
#define QUESTION "{question}"
#define ASK "Based on the content of the book, Question: " QUESTION "\nAnswer:"

static const char plain_template[] = CONTEXT "\n" ASK;
/* Those of the paper's code. */
static const char code_template[] = CONTEXT ASK;
static const char chat_template[] = "<book>" CONTEXT "</book>\n" ASK;
static const char usual_date[] = "2026-01-01";

static const char *template_of(const retrieval_options *how) {
    if (how->template) return how->template;
    return how->chat ? chat_template : how->parity ? code_template : plain_template;
}

/* ---- texts of tokens ---- */

/* Texts of tokens, one after the other: token i has the bytes from ends[i] to ends[i + 1]. */
typedef struct token_bytes {
    qkv_text text;
    size_t *ends;
    size_t n;
} token_bytes;

static int read_tokens(token_bytes *to, const qkv_model *model, const int32_t *tokens, size_t n,
                       qkv_error *err) {
    to->ends = qkv_calloc(n + 1, sizeof *to->ends);
    to->n = n;
    if (!to->ends) return qkv_fail_memory(err);
    qkv_text_puts(&to->text, "");
    for (size_t i = 0; i < n; i++) {
        char *bytes = NULL;
        size_t length = 0;
        const int status = qkv_token_text(model, &bytes, &length, tokens[i], err);
        if (status != QKV_OK) return status;
        qkv_text_append(&to->text, bytes, length);
        to->ends[i + 1] = to->text.length;
        qkv_text_free(bytes);
    }
    return to->text.failed ? qkv_fail_memory(err) : QKV_OK;
}

static void release_bytes(token_bytes *bytes) {
    qkv_text_release(&bytes->text);
    free(bytes->ends);
}

/* ---- filler ---- */

/* All prompts, one after the other, `times` times. */
static int join_filler(const qkv_own_prompts *prompts, size_t times, qkv_text *out,
                       qkv_error *err) {
    for (size_t i = 0; i < times * prompts->n; i++) {
        const qkv_own_prompt *prompt = &prompts->items[i % prompts->n];
        if (!prompt->text)
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "the filler is text, not token ids: give it with -p, -f or --file");
        if (out->length) qkv_text_puts(out, "\n");
        qkv_text_append(out, prompt->text, prompt->length);
    }
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

static int tokenize_filler(const retrieval *r, size_t times, int32_t **tokens, size_t *n,
                           qkv_error *err) {
    qkv_text text = {0};
    int status = join_filler(&r->in->prompts, times, &text, err);
    assert(status != QKV_OK || text.data); /* the study wants a prompt at least */
    if (status == QKV_OK && strspn(text.data, " \t\r\n") == text.length)
        status =
            qkv_fail(err, QKV_ERR_ARGUMENT, "the filler is empty: it has nothing but white space");
    if (status == QKV_OK)
        status = qkv_tokenize(r->in->model, tokens, n, text.data, text.length, 0, err);
    qkv_text_release(&text);
    return status;
}

/* At least as many tokens of filler as the longest prompt has. */
static int make_filler(retrieval *r, token_bytes *filler, qkv_error *err) {
    int32_t *tokens = NULL;
    size_t n = 0, wanted = 0;
    for (size_t i = 0; i < r->n_lengths; i++) {
        if ((size_t)r->lengths[i] > wanted) wanted = (size_t)r->lengths[i];
    }
    int status = tokenize_filler(r, 1, &tokens, &n, err);
    r->n_filler = n;
    if (status == QKV_OK && n < wanted) {
        qkv_tokens_free(tokens);
        tokens = NULL;
        /* A joint between two copies may take a token less than their ends alone. */
        status = tokenize_filler(r, wanted / (n > 1 ? n - 1 : 1) + 2, &tokens, &n, err);
    }
    if (status == QKV_OK) status = read_tokens(filler, r->in->model, tokens, n, err);
    qkv_tokens_free(tokens);
    return status;
}

/* Where the first n tokens end: not within a character. */
static size_t filler_end(const token_bytes *filler, size_t n) {
    size_t at = filler->ends[n < filler->n ? n : filler->n];
    while (at > 0 && ((unsigned char)filler->text.data[at] & 0xc0) == 0x80) at--;
    return at;
}

/* After the last sentence that ends there or before; 0: there is none. */
static size_t sentence_end(const char *text, size_t at) {
    for (; at > 0; at--) {
        if (strchr(".!?", text[at - 1]) && (!text[at] || qkv_is_space(text[at]))) return at;
    }
    return 0;
}

/* ---- one prompt, as text ---- */

/* Filler with the needle in it. *at: where the needle begins. */
static void write_context(const token_bytes *filler, const char *needle, size_t n_filler,
                          double depth, qkv_text *out, size_t *at) {
    const char *text = filler->text.data + (filler->text.data[0] == ' '); /* SentencePiece's */
    const size_t shift = (size_t)(text - filler->text.data);
    const size_t cut = filler_end(filler, n_filler);
    const size_t end = cut > shift ? cut - shift : 0;
    const size_t inside = filler_end(filler, (size_t)((double)n_filler * depth));
    const size_t before =
        depth >= 1 ? end : sentence_end(text, inside > shift ? inside - shift : 0);
    qkv_text_append(out, text, before);
    if (before && !qkv_is_space(text[before - 1])) qkv_text_puts(out, " ");
    *at = out->length;
    qkv_text_puts(out, needle);
    if (before < end && !qkv_is_space(text[before])) qkv_text_puts(out, " ");
    qkv_text_append(out, text + before, end - before);
}

/* *at: where the needle begins, in the context before and in the whole after. */
static void write_template(const char *template, const qkv_text *context, const char *question,
                           qkv_text *out, size_t *at) {
    while (*template) {
        if (strncmp(template, CONTEXT, strlen(CONTEXT)) == 0) {
            *at += out->length;
            qkv_text_append(out, context->data, context->length);
            template += strlen(CONTEXT);
        } else if (strncmp(template, QUESTION, strlen(QUESTION)) == 0) {
            qkv_text_puts(out, question);
            template += strlen(QUESTION);
        } else {
            qkv_text_append(out, template ++, 1);
        }
    }
}

static int check_template(const char *template, qkv_error *err) {
    const char *context = strstr(template, CONTEXT);
    if (!context || strstr(context + 1, CONTEXT) || !strstr(template, QUESTION))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the template has to have {context}, once, and {question}");
    return QKV_OK;
}

/* ---- one prompt, as tokens ---- */

static int tokenize_chat(const retrieval *r, const qkv_text *text, int32_t **tokens, size_t *n,
                         qkv_error *err) {
    qkv_chat *chat = NULL;
    const int has_system = r->how->system != NULL;
    const qkv_chat_message messages[] = {{"system", r->how->system}, {"user", text->data}};
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    options.messages = messages + !has_system;
    options.n_messages = 1 + (size_t)has_system;
    options.template_text = r->how->chat_template;
    options.date = r->how->date ? r->how->date : usual_date; /* the same prompt on every day */
    int status = qkv_chat_render(&chat, r->in->model, &options, err);
    if (status == QKV_OK) status = qkv_chat_tokenize(chat, r->in->model, tokens, n, err);
    qkv_chat_free(chat);
    return status;
}

/* With so many tokens of filler. *nth: how many needles are there before ours, of chance. */
static int write_prompt(const retrieval *r, const token_bytes *filler, retrieval_test *test,
                        size_t n_filler, size_t *nth, qkv_error *err) {
    const retrieval_needle *needle = &r->needles[test->needle];
    qkv_text context = {0}, text = {0};
    size_t at = 0;
    write_context(filler, needle->text, n_filler, test->depth, &context, &at);
    if (!context.failed)
        write_template(template_of(r->how), &context, needle->question, &text, &at);
    int status = context.failed || text.failed ? qkv_fail_memory(err) : QKV_OK;
    qkv_tokens_free(test->tokens);
    test->tokens = NULL;
    *nth = 0;
    for (const char *p = text.data; status == QKV_OK && (p = strstr(p, needle->text)); p++)
        *nth += (size_t)(p - text.data) < at;
    if (status == QKV_OK && r->how->chat)
        status = tokenize_chat(r, &text, &test->tokens, &test->n_tokens, err);
    else if (status == QKV_OK)
        status = qkv_tokenize(r->in->model, &test->tokens, &test->n_tokens, text.data, text.length,
                              QKV_TOKENIZE_ADD_SPECIAL, err);
    qkv_text_release(&context);
    qkv_text_release(&text);
    return status;
}

/* As much filler as fits into the length. */
static int fit_prompt(const retrieval *r, const token_bytes *filler, retrieval_test *test,
                      size_t *nth, qkv_error *err) {
    const size_t length = (size_t)test->length;
    size_t n_filler = 0;
    int status = write_prompt(r, filler, test, 0, nth, err);
    if (status == QKV_OK && test->n_tokens > length)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "a prompt of %zu tokens is too short: needle and question alone take %zu",
                        length, test->n_tokens);
    if (status == QKV_OK) n_filler = length - test->n_tokens;
    while (status == QKV_OK && n_filler > 0) {
        status = write_prompt(r, filler, test, n_filler, nth, err);
        if (test->n_tokens <= length) break;
        n_filler -= test->n_tokens - length < n_filler ? test->n_tokens - length : n_filler;
        if (n_filler == 0) status = write_prompt(r, filler, test, 0, nth, err);
    }
    return status;
}

/* ---- where the answer is ---- */

/* The nth occurrence, from 0 on; NULL: none. */
static const char *find_nth(const char *text, const char *wanted, size_t nth) {
    const char *found = strstr(text, wanted);
    while (found && nth--) found = strstr(found + 1, wanted);
    return found;
}

static size_t find_part(const char *text, const char *part) {
    size_t at = 0, i = 0;
    while (part[i]) {
        for (i = 0; part[i] && qkv_lower(text[at + i]) == qkv_lower(part[i]);) i++;
        at += part[i] != '\0';
    }
    return at;
}

/* Tokens that have a part of the answer in them. */
static int find_answer(const retrieval *r, retrieval_test *test, size_t nth, qkv_error *err) {
    const retrieval_needle *needle = &r->needles[test->needle];
    token_bytes bytes = {0};
    int status = read_tokens(&bytes, r->in->model, test->tokens, test->n_tokens, err);
    const char *found = status == QKV_OK ? find_nth(bytes.text.data, needle->text, nth) : NULL;
    if (status == QKV_OK && !found)
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "the needle \"%.80s\" is not in the text of the prompt's tokens: the "
                          "tokenizer changes it",
                          needle->text);
    if (status == QKV_OK) {
        const size_t from =
            (size_t)(found - bytes.text.data) + find_part(needle->text, needle->answer);
        while (bytes.ends[test->start + 1] <= from) test->start++;
        test->end = test->start;
        while (test->end < bytes.n && bytes.ends[test->end] < from + strlen(needle->answer))
            test->end++;
    }
    release_bytes(&bytes);
    return status;
}

static int is_among(const int32_t *tokens, size_t n, int32_t token) {
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] == token) return 1;
    }
    return 0;
}

/* As the paper's code does: the first window, as long as the answer by itself, that has more than 0.9 of its
 * different tokens. Where there is none, nothing counts. */
static int find_window(const retrieval *r, retrieval_test *test, qkv_error *err) {
    const char *answer = r->needles[test->needle].answer;
    int32_t *wanted = NULL;
    size_t n = 0;
    const int status = qkv_tokenize(r->in->model, &wanted, &n, answer, strlen(answer), 0, err);
    for (size_t i = 0; status == QKV_OK && i < test->n_tokens && test->end == 0; i++) {
        const size_t left = test->n_tokens - i, length = n < left ? n : left;
        size_t n_different = 0, n_there = 0;
        for (size_t k = 0; k < n; k++) {
            if (is_among(wanted, k, wanted[k])) continue;
            n_different++;
            n_there += (size_t)is_among(test->tokens + i, length, wanted[k]);
        }
        if ((double)n_there / (double)n_different <= 0.9) continue;
        test->start = i;
        test->end = i + length;
    }
    qkv_tokens_free(wanted);
    return status;
}

/* ---- all of them ---- */

/* What is fed at most: all of the answer but its last token, which is not asked anything. */
static int check_context(const retrieval *r, size_t length, size_t n_new, qkv_error *err) {
    const size_t n_ctx = (size_t)qkv_model_get_info(r->in->model)->n_ctx;
    if (length + n_new <= n_ctx) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "a prompt of %zu tokens and an answer of %zu are more than the model's context "
                    "of %zu",
                    length, n_new, n_ctx);
}

int qkv_retrieval_make_prompts(retrieval *r, qkv_error *err) {
    token_bytes filler = {0};
    const size_t n_new = r->how->decode == RETRIEVAL_FORCED ? 0 : r->n_new;
    int status = check_template(template_of(r->how), err);
    for (size_t i = 0; i < r->n_lengths && status == QKV_OK; i++)
        status = check_context(r, (size_t)r->lengths[i], n_new, err);
    if (status == QKV_OK) status = make_filler(r, &filler, err);
    for (size_t i = 0; i < r->n_tests && status == QKV_OK; i++) {
        retrieval_test *test = &r->tests[i];
        size_t nth = 0;
        status = fit_prompt(r, &filler, test, &nth, err);
        if (status == QKV_OK)
            status = r->how->parity ? find_window(r, test, err) : find_answer(r, test, nth, err);
        if (status == QKV_OK && r->how->decode == RETRIEVAL_FORCED)
            status = check_context(r, test->n_tokens, test->end - test->start, err);
    }
    release_bytes(&filler);
    return status;
}
