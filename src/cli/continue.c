/* --generate: prompts that the unedited model continues, before anything is looked at. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/continue.h"
#include "cli/messages.h"
#include "qkv/generate.h"

/* Where there is no tokenizer the ids stand for themselves. */
static int write_ids(const int32_t *tokens, size_t n_tokens, qkv_text *out, qkv_error *err) {
    for (size_t i = 0; i < n_tokens; i++) qkv_text_printf(out, " %d", (int)tokens[i]);
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}

/* The last token before decides whether a space belongs to the text; its own text is taken away
 * again. */
int cli_decode_after(const qkv_model *model, int32_t last, const int32_t *tokens, size_t n_tokens,
                     qkv_text *out, qkv_error *err) {
    char *bytes = NULL, *before = NULL;
    size_t length = 0, skip = 0;
    if (strcmp(qkv_model_get_info(model)->tokenizer, "none") == 0)
        return write_ids(tokens, n_tokens, out, err);
    int32_t *ids = qkv_calloc(n_tokens + 1, sizeof *ids);
    if (!ids) return qkv_fail_memory(err);
    ids[0] = last;
    memcpy(ids + 1, tokens, n_tokens * sizeof *ids);
    int status = qkv_detokenize(model, &before, &skip, ids, 1, 0, err);
    if (status == QKV_OK)
        status = qkv_detokenize(model, &bytes, &length, ids, n_tokens + 1, 0, err);
    if (status == QKV_OK) {
        qkv_text_append(out, bytes + skip, length - skip);
        if (out->failed) status = qkv_fail_memory(err);
    }
    qkv_text_free(before);
    qkv_text_free(bytes);
    free(ids);
    return status;
}

/* ---- prompts ---- */

static void say(const qkv_text *added, size_t n_new) {
    qkv_text shown = {0};
    qkv_text_append_visible(&shown, added->data, added->length);
    if (!shown.failed)
        cli_notice("qkv: %zu token%s generated: %s", n_new, qkv_plural(n_new), shown.data);
    qkv_text_release(&shown);
}

/* A prompt of token ids has no text, and gets none. */
static int add_text(qkv_own_prompt *prompt, const qkv_text *added, qkv_error *err) {
    if (!prompt->text) return QKV_OK;
    char *text = realloc(prompt->text, prompt->length + added->length + 1);
    if (!text) return qkv_fail_memory(err);
    memcpy(text + prompt->length, added->data, added->length + 1);
    prompt->text = text;
    prompt->length += added->length;
    return QKV_OK;
}

static int continue_prompt(qkv_own_prompt *prompt, qkv_session *session, size_t max_new,
                           qkv_error *err) {
    int32_t *tokens = NULL;
    size_t n = 0;
    const size_t before = prompt->n_tokens;
    qkv_text added = {0};
    qkv_text_puts(&added, "");
    int status = qkv_session_continue(session, prompt->tokens, before, max_new, &tokens, &n, err);
    if (status != QKV_OK) goto done;
    qkv_tokens_free(prompt->tokens);
    prompt->tokens = tokens;
    prompt->n_tokens = n;
    prompt->n_new = n - before;
    status = cli_decode_after(qkv_session_model(session), tokens[before - 1], tokens + before,
                              prompt->n_new, &added, err);
    if (status == QKV_OK) status = add_text(prompt, &added, err);
    if (status == QKV_OK) say(&added, prompt->n_new);
done:
    qkv_text_release(&added);
    return status;
}

int cli_prompts_continue(qkv_own_prompts *prompts, qkv_session *session, int64_t max_new,
                         qkv_error *err) {
    if (max_new <= 0) return QKV_OK;
    int status = qkv_session_begin_work(session, "prompts", (double)prompts->n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < prompts->n && status == QKV_OK; i++)
        status = continue_prompt(&prompts->items[i], session, (size_t)max_new, err);
    return qkv_session_end_work(session, status);
}

/* In place of what it was followed by before. */
static int follow(qkv_own_prompt *prompt, const int32_t *more, size_t n_more, qkv_error *err) {
    const size_t own = prompt->n_tokens - prompt->n_new, n = own + n_more;
    int32_t *tokens = qkv_calloc(n, sizeof *tokens);
    if (!tokens) return qkv_fail_memory(err);
    memcpy(tokens, prompt->tokens, own * sizeof *tokens);
    memcpy(tokens + own, more, n_more * sizeof *tokens);
    qkv_tokens_free(prompt->tokens);
    prompt->tokens = tokens;
    prompt->n_tokens = n;
    prompt->n_new = n_more;
    return QKV_OK;
}

int cli_sources_follow(cli_sources *sources, const qkv_own_prompt *prompt, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < sources->n && status == QKV_OK; i++)
        status = follow(&sources->items[i].prompt,
                        prompt->tokens + prompt->n_tokens - prompt->n_new, prompt->n_new, err);
    return status;
}
