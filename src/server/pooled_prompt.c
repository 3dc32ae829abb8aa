#include "server/model_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/chat.h"
#include "qkv/prompt.h"
#include "study/prompt.h"

static int copy_text(qkv_own_prompt *out, const char *text, size_t length, qkv_error *err) {
    out->text = qkv_strndup(text, length);
    out->length = length;
    return out->text ? QKV_OK : qkv_fail_memory(err);
}

/* ---- conversations ---- */

/* The system's message, then the turns. */
static qkv_chat_message *list_messages(const qkv_request_prompt *wanted, size_t *n) {
    const size_t n_turns = json_array_size(wanted->turns);
    qkv_chat_message *list = qkv_calloc(n_turns + 1, sizeof *list);
    *n = 0;
    if (!list) return NULL;
    if (wanted->system) list[(*n)++] = (qkv_chat_message){"system", wanted->system};
    for (size_t i = 0; i < n_turns; i++) {
        const json_t *turn = json_array_get(wanted->turns, i);
        list[(*n)++] = (qkv_chat_message){json_string_value(json_object_get(turn, "role")),
                                          json_string_value(json_object_get(turn, "content"))};
    }
    return list;
}

static int make_chat(qkv_own_prompt *out, const qkv_model *model, const qkv_request_prompt *wanted,
                     qkv_error *err) {
    qkv_chat *chat = NULL;
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    if (!qkv_model_chat_template(model))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "this model has no chat template: give the prompt as text");
    qkv_chat_message *messages = list_messages(wanted, &options.n_messages);
    if (!messages) return qkv_fail_memory(err);
    options.messages = messages;
    options.date = wanted->date;
    options.parse_special = wanted->parse_special;
    int status = qkv_chat_render(&chat, model, &options, err);
    if (status == QKV_OK)
        status = qkv_chat_tokenize(chat, model, &out->tokens, &out->n_tokens, err);
    if (status == QKV_OK && out->n_tokens == 0)
        status = qkv_fail(err, QKV_ERR_FORMAT, "the chat template writes nothing");
    size_t length = 0;
    const char *text = qkv_chat_text(chat, &length);
    if (status == QKV_OK) status = copy_text(out, text, length, err);
    qkv_chat_free(chat);
    free(messages);
    return status;
}

/* ---- all of them ---- */

static int make_plain(qkv_own_prompt *out, const qkv_model *model, const qkv_request_prompt *wanted,
                      qkv_error *err) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.text = wanted->text;
    prompt.tokens = wanted->tokens;
    prompt.n_tokens = wanted->n_tokens;
    if (wanted->parse_special) prompt.flags |= QKV_TOKENIZE_PARSE_SPECIAL;
    const int status = qkv_prompt_tokenize(&prompt, model, &out->tokens, &out->n_tokens, err);
    if (status != QKV_OK || !wanted->text) return status;
    return copy_text(out, wanted->text, strlen(wanted->text), err);
}

static int check_ids(const qkv_own_prompt *prompt, const qkv_model *model, qkv_error *err) {
    const int32_t n_vocab = qkv_model_get_info(model)->n_vocab;
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        if (prompt->tokens[i] < 0 || prompt->tokens[i] >= n_vocab)
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "token %zu has the id %d; the model has tokens 0 to %d", i,
                            (int)prompt->tokens[i], (int)n_vocab - 1);
    }
    return QKV_OK;
}

int qkv_pooled_prompt_make(qkv_own_prompt *out, const qkv_model *model,
                           const qkv_request_prompt *wanted, qkv_error *err) {
    int status =
        wanted->chat ? make_chat(out, model, wanted, err) : make_plain(out, model, wanted, err);
    return status == QKV_OK ? check_ids(out, model, err) : status;
}
