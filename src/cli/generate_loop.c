/* qkv generate: the loop over tokens, and the texts that come of it. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/continue.h"
#include "cli/generate.h"
#include "cli/progress.h"

int cli_generation_open(cli_generation *it, qkv_error *err) {
    it->n_branches = it->variants->n + 1;
    it->branches = qkv_calloc(it->n_branches, sizeof *it->branches);
    if (!it->branches) return qkv_fail_memory(err);
    for (size_t v = 0; v < it->n_branches; v++) {
        cli_branch *branch = &it->branches[v];
        branch->ids = qkv_calloc(it->max_new, sizeof *branch->ids);
        branch->log_probabilities = qkv_calloc(it->max_new, sizeof *branch->log_probabilities);
        branch->going = 1;
        qkv_text_puts(&branch->text, "");
        if (!branch->ids || !branch->log_probabilities || branch->text.failed)
            return qkv_fail_memory(err);
    }
    return QKV_OK;
}

void cli_generation_release(cli_generation *it) {
    for (size_t v = 0; it->branches && v < it->n_branches; v++) {
        free(it->branches[v].ids);
        free(it->branches[v].log_probabilities);
        qkv_text_release(&it->branches[v].text);
    }
    free(it->branches);
    it->branches = NULL;
}

/* ---- text ---- */

static int starts_with(const char *text, size_t length, const char *stop, size_t n) {
    return length >= n && memcmp(text, stop, n) == 0;
}

/* Cuts the text at the first stop text; holds back what may be the beginning of one. */
static void look_for_stops(const cli_generation *it, cli_branch *branch) {
    const char *text = branch->text.data;
    size_t length = branch->text.length, held = qkv_utf8_unfinished(text, length);
    for (size_t i = 0; it->stops[i]; i++) {
        const char *stop = it->stops[i];
        const size_t n = strlen(stop);
        for (size_t at = branch->shown; at < length; at++) {
            if (starts_with(text + at, length - at, stop, n)) {
                branch->text.data[at] = '\0';
                branch->text.length = length = at;
                branch->going = 0;
                branch->finish = CLI_FINISH_STOP;
                held = 0;
            } else if (length - at < n && memcmp(text + at, stop, length - at) == 0) {
                held = held > length - at ? held : length - at;
            }
        }
    }
    branch->shown = branch->going ? length - held : length;
}

static int add_token(cli_generation *it, size_t variant, const float *logits, int32_t token,
                     qkv_error *err) {
    cli_branch *branch = &it->branches[variant];
    const cli_branch *baseline = &it->branches[0];
    const size_t n_vocab = (size_t)qkv_model_get_info(it->model)->n_vocab;
    const size_t before = branch->text.length;
    const int agreed = branch->differs == branch->n;
    branch->log_probabilities[branch->n] = qkv_log_probability(logits, n_vocab, token);
    branch->ids[branch->n++] = token;
    const int same =
        variant == 0 || (branch->n <= baseline->n && baseline->ids[branch->n - 1] == token);
    if (agreed && same) branch->differs = branch->n;
    const int32_t last =
        branch->n > 1 ? branch->ids[branch->n - 2] : it->prompt_ids[it->n_prompt - 1];
    int status = cli_decode_after(it->model, last, &token, 1, &branch->text, err);
    if (status != QKV_OK) return status;
    if (agreed && !same) {
        branch->mark = before < branch->text.length ? before : branch->text.length;
        branch->mark_end = branch->text.length;
    }
    if (qkv_is_end_token(it->model, token)) {
        branch->going = 0;
        branch->finish = CLI_FINISH_END;
    }
    if (branch->n == it->max_new) branch->going = 0;
    look_for_stops(it, branch);
    return QKV_OK;
}

/* Draws a token for every variant that has not ended: returns how many there are. */
static int draw_tokens(cli_generation *it, const qkv_generator *generator, size_t step,
                       int32_t *next, size_t *n_going, qkv_error *err) {
    const size_t n_vocab = (size_t)qkv_model_get_info(it->model)->n_vocab;
    int status = QKV_OK;
    *n_going = 0;
    for (size_t v = 0; v < it->n_branches && status == QKV_OK; v++) {
        int32_t token;
        const float *logits = qkv_generator_logits(generator, v);
        next[v] = QKV_NO_NEXT;
        if (!it->branches[v].going || !logits) continue;
        status = qkv_sample(&it->sampler, logits, n_vocab, step, &token, err);
        if (status == QKV_OK) status = add_token(it, v, logits, token, err);
        const int is_last = it->feed_last && it->branches[v].finish == CLI_FINISH_LENGTH;
        if (!it->branches[v].going && !is_last) continue;
        next[v] = token;
        ++*n_going;
    }
    return status;
}

/* Reads the prompt. What comes then is seen as it comes, or watched as a whole. */
static int begin(const cli_generation *it, qkv_session *session, qkv_generator *generator,
                 int is_shown, qkv_error *err) {
    if (!is_shown) (void)qkv_session_begin_work(session, "tokens", (double)it->max_new, NULL);
    const int status = qkv_session_feed(session, generator, NULL, err);
    if (is_shown) cli_progress_off();
    return status;
}

int cli_generation_run(cli_generation *it, qkv_session *session, qkv_generator *generator,
                       cli_on_token *on_token, void *user, qkv_error *err) {
    int32_t *next = qkv_calloc(it->n_branches, sizeof *next);
    if (!next) return qkv_fail_memory(err);
    size_t n_going = 1;
    int status = begin(it, session, generator, on_token != NULL, err);
    for (size_t step = 0; status == QKV_OK && n_going; step++) {
        status = draw_tokens(it, generator, step, next, &n_going, err);
        if (status == QKV_OK && on_token && n_going) on_token(user, it, 0);
        if (status == QKV_OK && n_going) status = qkv_session_feed(session, generator, next, err);
    }
    if (!on_token) (void)qkv_session_end_work(session, status);
    for (size_t v = 0; v < it->n_branches && status != QKV_OK; v++) {
        if (it->branches[v].going) it->branches[v].finish = CLI_FINISH_INTERRUPTED;
        it->branches[v].going = 0;
        it->branches[v].shown = it->branches[v].text.length;
    }
    if (on_token && it->branches[0].n) on_token(user, it, 1);
    free(next);
    return status;
}
