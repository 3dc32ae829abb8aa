/*
 * Phrase rates: heads are silenced, texts generated with and without, and counted that have a phrase of
 * a list. The texts of one prompt are generated together, each token the most likely one.
 */
#include "study/phrase_rates.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "qkv/generate.h"
#include "run/run.h"

enum { USUAL_NEW = 32, MOST_NEW = 4096, MOST_HEADS = 1000 };

typedef struct phrase_options {
    ablation_options ablation;
    const char *heads;   /* "3.h0, 2.h1" */
    const char *phrases; /* one a line */
    int match;
    int32_t ignore_case;
    int32_t shorter;    /* texts of fewer characters count as found; 0: none */
    int32_t tokens;     /* new ones; 0: 32 */
    int32_t top;        /* of the heads, only so many; 0: all */
    int32_t one_by_one; /* a variant for the first head, one for the first two, ... */
} phrase_options;

static const field fields[] = {
    ABLATION_FIELDS(phrase_options),
    FIELD(phrase_options, heads, TEXT, "HEADS", 0, 1 << 16,
          "heads that are silenced, e.g. 3.h0,2.h1"),
    FIELD(phrase_options, phrases, FILE, "FILE", 0, STUDY_MOST_TEXT, "phrases, one to a line"),
    FIELD_WORDS(phrase_options, match, "contain|begin",
                "a text counts that contains a phrase (default), or begins with one"),
    FIELD_FLAGGED(phrase_options, ignore_case, "upper and lower case are the same"),
    FIELD(phrase_options, shorter, INT, "N", 1, 1 << 20,
          "texts of fewer characters than this count, too"),
    FIELD_NEW_TOKENS(phrase_options, MOST_NEW,
                     "tokens of each generated text, at most (default 32)"),
    FIELD(phrase_options, top, INT, "N", 1, MOST_HEADS,
          "silence only the first so many of `heads` (default: all)"),
    FIELD_FLAGGED(phrase_options, one_by_one, "silence the first head, the first two, and so on"),
};

/* ---- heads ---- */

static int fail_head(const phrase_rates *r, const char *word, size_t length, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(r->in->model);
    return qkv_fail(
        err, QKV_ERR_ARGUMENT,
        "there is no head '%.*s'; heads are written 3.h0, with layers 0 to %d and heads "
        "0 to %d",
        (int)length, word, (int)info->n_layer - 1, (int)info->n_head - 1);
}

/* "3.h0" */
static int add_head(phrase_rates *r, const char *word, size_t length, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(r->in->model);
    const char *dot = memchr(word, '.', length);
    double layer = -1, head = -1;
    const int read = dot && word + length - dot > 2 && dot[1] == 'h' &&
                     strspn(word, "0123456789") == (size_t)(dot - word) &&
                     strspn(dot + 2, "0123456789") >= (size_t)(word + length - dot - 2) &&
                     qkv_parse_double(word, (size_t)(dot - word), &layer) &&
                     qkv_parse_double(dot + 2, (size_t)(word + length - dot - 2), &head);
    if (!read || layer < 0 || layer >= info->n_layer || head < 0 || head >= info->n_head)
        return fail_head(r, word, length, err);
    for (size_t i = 0; i < r->n_heads; i++) {
        if (r->layers[i] == (int32_t)layer && r->heads[i] == (int32_t)head)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "head %.*s is given twice", (int)length, word);
    }
    r->layers[r->n_heads] = (int32_t)layer;
    r->heads[r->n_heads++] = (int32_t)head;
    return QKV_OK;
}

static int read_heads(phrase_rates *r, const char *text, size_t top, qkv_error *err) {
    static const char between[] = ", \t\r\n";
    const size_t most = top ? top : MOST_HEADS;
    int status = QKV_OK;
    r->layers = qkv_calloc(most, sizeof *r->layers);
    r->heads = qkv_calloc(most, sizeof *r->heads);
    if (!r->layers || !r->heads) return qkv_fail_memory(err);
    for (text += strspn(text, between); *text && r->n_heads < most && status == QKV_OK;) {
        const size_t length = strcspn(text, between);
        status = add_head(r, text, length, err);
        text += length;
        text += strspn(text, between);
    }
    if (status == QKV_OK && !r->n_heads)
        status =
            qkv_fail(err, QKV_ERR_ARGUMENT,
                     "which heads are to be silenced? The option heads lists them, e.g. 3.h0,2.h1");
    if (status == QKV_OK && top > r->n_heads)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "the option top wants %zu heads, and %zu are given", top, r->n_heads);
    return status;
}

size_t qkv_phrase_rates_n_silenced(const phrase_rates *r, size_t variant) {
    return r->one_by_one || !variant ? variant : r->n_heads;
}

static int make_edits(phrase_rates *r, qkv_error *err) {
    r->n_variants = 1 + (r->one_by_one ? r->n_heads : 1);
    r->edits = qkv_calloc(r->n_variants, sizeof *r->edits);
    if (!r->edits) return qkv_fail_memory(err);
    for (size_t v = 1; v < r->n_variants; v++) {
        qkv_text text = {0};
        for (size_t i = 0; i < qkv_phrase_rates_n_silenced(r, v); i++)
            qkv_head_ablation_add(&text, &r->how, r->layers[i], r->heads[i]);
        r->edits[v - 1] = text.data;
        if (text.failed) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

/* ---- texts ---- */

/* One token for every text that has not ended; how many have not ended. */
static int choose(const phrase_rates *r, const qkv_generator *generator, int32_t *next,
                  size_t *n_going, qkv_error *err) {
    const size_t n_vocab = (size_t)qkv_model_get_info(r->in->model)->n_vocab;
    int status = QKV_OK;
    *n_going = 0;
    for (size_t v = 0; v < r->n_variants && status == QKV_OK; v++) {
        const float *logits = qkv_generator_logits(generator, v);
        next[v] = QKV_NO_NEXT;
        if (!logits) continue;
        status = qkv_sample(NULL, logits, n_vocab, 0, &next[v], err);
        if (qkv_is_end_token(r->in->model, next[v])) next[v] = QKV_NO_NEXT;
        *n_going += next[v] != QKV_NO_NEXT;
    }
    return status;
}

static int go_on(const phrase_rates *r, qkv_generator *generator, qkv_error *err) {
    int32_t *next = qkv_calloc(r->n_variants, sizeof *next);
    size_t n_going = 1;
    if (!next) return qkv_fail_memory(err);
    int status = qkv_study_begin(r->in, "tokens", r->n_new, err);
    if (status == QKV_OK) status = qkv_session_feed(r->in->session, generator, NULL, err);
    for (size_t i = 0; i < r->n_new && n_going && status == QKV_OK; i++) {
        status = choose(r, generator, next, &n_going, err);
        if (status == QKV_OK && n_going)
            status = qkv_session_feed(r->in->session, generator, next, err);
    }
    free(next);
    return qkv_study_end(r->in, status);
}

static int generate(phrase_rates *r, size_t at, qkv_error *err) {
    const qkv_own_prompt *prompt = &r->in->prompts.items[at];
    qkv_generator *generator = NULL;
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    how.max_new = r->n_new;
    how.variants = (const char *const *)r->edits;
    how.n_variants = r->n_variants - 1;
    int status =
        qkv_generator_new(&generator, r->in->model, prompt->tokens, prompt->n_tokens, &how, err);
    if (status == QKV_OK) status = go_on(r, generator, err);
    for (size_t v = 0; v < r->n_variants && status == QKV_OK; v++) {
        size_t n = 0;
        const int32_t *tokens = qkv_generator_tokens(generator, v, &n);
        status = qkv_prompt_new_text(r->in->model, prompt->tokens, prompt->n_tokens,
                                     tokens + prompt->n_tokens, n - prompt->n_tokens,
                                     &r->texts[v * r->in->prompts.n + at], err);
    }
    qkv_generator_free(generator);
    return status;
}

static size_t look(const phrase_rates *r, const char *text) {
    for (size_t i = 0; i < r->phrases.n; i++) {
        if (qkv_phrase_is_in(r->phrases.items[i], text, &r->match)) return i;
    }
    return qkv_phrase_text_length(text) < r->shorter ? PHRASE_SHORT : PHRASE_NONE;
}

static int generate_all(phrase_rates *r, qkv_error *err) {
    const size_t n = r->in->prompts.n;
    r->texts = qkv_calloc(r->n_variants * n, sizeof *r->texts);
    r->found = qkv_calloc(r->n_variants * n, sizeof *r->found);
    if (!r->texts || !r->found) return qkv_fail_memory(err);
    int status = qkv_study_begin(r->in, "prompts", n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        status = qkv_study_reach(r->in, (double)((int64_t)i), (double)(1), err);
        if (status == QKV_OK) status = generate(r, i, err);
    }
    status = qkv_study_end(r->in, status);
    for (size_t i = 0; i < r->n_variants * n && status == QKV_OK; i++)
        r->found[i] = look(r, r->texts[i]);
    return status;
}

/* ---- counts ---- */

size_t qkv_phrase_rates_matched(const phrase_rates *r, size_t variant) {
    size_t n = 0;
    for (size_t i = 0; i < r->in->prompts.n; i++)
        n += r->found[variant * r->in->prompts.n + i] != PHRASE_NONE;
    return n;
}

size_t qkv_phrase_rates_with(const phrase_rates *r, size_t variant, size_t phrase) {
    size_t n = 0;
    for (size_t i = 0; i < r->in->prompts.n; i++)
        n += (size_t)qkv_phrase_is_in(r->phrases.items[phrase],
                                      r->texts[variant * r->in->prompts.n + i], &r->match);
    return n;
}

/* ---- the study ---- */

static void release(phrase_rates *r) {
    for (size_t i = 0; r->texts && i < r->n_variants * r->in->prompts.n; i++) free(r->texts[i]);
    for (size_t i = 0; r->edits && i + 1 < r->n_variants; i++) free(r->edits[i]);
    free(r->texts);
    free(r->edits);
    free(r->found);
    free(r->layers);
    free(r->heads);
    qkv_phrases_release(&r->phrases);
}

static int make_phrase_rates(qkv_study *study, const study_inputs *in, const void *given,
                             qkv_error *err) {
    const phrase_options *options = given;
    phrase_rates r = {.in = in,
                      .match = {.how = options->match, .ignore_case = options->ignore_case},
                      .shorter = (size_t)options->shorter,
                      .n_new = options->tokens ? (size_t)options->tokens : USUAL_NEW,
                      .one_by_one = options->one_by_one};
    int status = qkv_head_ablation_of(&r.how, &options->ablation, in->model, err);
    if (status == QKV_OK)
        status = qkv_phrases_read(&r.phrases, options->phrases ? options->phrases : "", err);
    if (status == QKV_OK)
        status = read_heads(&r, options->heads ? options->heads : "", (size_t)options->top, err);
    if (status == QKV_OK) status = make_edits(&r, err);
    if (status == QKV_OK) status = generate_all(&r, err);
    if (status == QKV_OK) status = qkv_phrase_rates_show(&r, study, err);
    release(&r);
    return status;
}

const study_kind qkv_study_phrase_rates = {
    .name = "phrase-rates",
    .title = "how many generated texts have a phrase, with and without some heads",
    .description =
        "Texts are generated from every prompt, each token the most likely one, once unedited and once with "
        "heads silenced. Counted are those that contain a phrase of the list; the rates come with Wilson's "
        "intervals of 95 %.\n",
    .examples = "qkv phrase-rates -f prompts.txt --heads 3.h0 --phrases phrases.txt -o rates.png\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(phrase_options),
    .least_prompts = 1,
    .most_prompts = 100000,
    .make = make_phrase_rates,
};
