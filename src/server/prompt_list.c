#include "server/prompt_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

/* ---- reading ---- */

int qkv_prompt_list_add(qkv_prompt_list *list, const json_t *given, qkv_error *err) {
    qkv_request_prompt *wanted = &list->wanted[list->n];
    qkv_prompt *prompt = &list->prompts[list->n];
    list->given[list->n++] = given;
    *prompt = (qkv_prompt)QKV_PROMPT_INIT;
    const int status = qkv_request_prompt_read(wanted, given, err);
    prompt->text = wanted->text;
    prompt->tokens = wanted->tokens;
    prompt->n_tokens = wanted->n_tokens;
    if (wanted->parse_special) prompt->flags |= QKV_TOKENIZE_PARSE_SPECIAL;
    return status;
}

int qkv_prompt_list_read(qkv_prompt_list *list, const json_t *prompts, size_t most,
                         qkv_error *err) {
    int status = QKV_OK;
    if (!prompts || json_is_null(prompts)) return QKV_OK;
    if (!json_is_array(prompts) || json_array_size(prompts) > most)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`prompts` is a list of %zu at most", most);
    for (size_t i = 0; i < json_array_size(prompts) && status == QKV_OK; i++)
        status = qkv_prompt_list_add(list, json_array_get(prompts, i), err);
    return status;
}

/* The program has the same turns before every prompt, and --parse-special for all. */
int qkv_prompt_list_check(const qkv_prompt_list *list, qkv_error *err) {
    for (size_t i = 0; i < list->n; i++) {
        if (list->wanted[i].chat && list->n > 1)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "a chat is the only prompt of a request");
        if (list->wanted[i].parse_special != list->wanted[0].parse_special)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "`parse_special` is one for all prompts");
    }
    return QKV_OK;
}

int qkv_prompt_list_tokenize(qkv_prompt_list *list, qkv_model_pool *pool, const qkv_model *model,
                             qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < list->n && status == QKV_OK; i++) {
        qkv_own_prompt *made = &list->pooled[i];
        json_t *with = json_pack("{s:O}", "prompt", list->given[i]);
        status = with ? qkv_model_pool_prompt(pool, model, with, made, err) : qkv_fail_memory(err);
        json_decref(with);
        if (status != QKV_OK || !list->wanted[i].chat) continue;
        list->prompts[i].text = NULL;
        list->prompts[i].tokens = made->tokens;
        list->prompts[i].n_tokens = made->n_tokens;
        list->prompts[i].written = made->text;
    }
    return status;
}

void qkv_prompt_list_release(qkv_prompt_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        qkv_request_prompt_release(&list->wanted[i]);
        qkv_own_prompt_release(&list->pooled[i]);
    }
    list->n = 0;
}

/* ---- the command line ---- */

static void add_chat(qkv_words *words, const qkv_request_prompt *wanted) {
    qkv_words_add(words, "--chat");
    if (wanted->system) qkv_words_pair(words, "--system", wanted->system);
    for (size_t i = 0; i + 1 < json_array_size(wanted->turns); i++) {
        const json_t *turn = json_array_get(wanted->turns, i);
        qkv_text text = {0};
        qkv_text_printf(&text, "%s=%s", json_string_value(json_object_get(turn, "role")),
                        json_string_value(json_object_get(turn, "content")));
        qkv_words_pair(words, "--turn", text.failed ? NULL : text.data);
        qkv_text_release(&text);
    }
    if (wanted->date) qkv_words_pair(words, "--date", wanted->date);
}

static void add_prompt(qkv_words *words, const qkv_request_prompt *wanted) {
    qkv_text ids = {0};
    if (wanted->chat) add_chat(words, wanted);
    if (wanted->text) qkv_words_pair(words, "-p", wanted->text);
    if (wanted->text) return;
    for (size_t i = 0; i < wanted->n_tokens; i++)
        qkv_text_printf(&ids, "%s%d", i ? "," : "", (int)wanted->tokens[i]);
    qkv_words_pair(words, "--tokens", ids.failed ? NULL : ids.data);
    qkv_text_release(&ids);
}

/* Name `turn` of "clean|corrupt", from the first again after the last, as an option. */
static void add_named(qkv_words *words, const char *names, size_t turn, const char *text) {
    const char *name = names;
    qkv_text option = {0};
    for (; turn; turn--) {
        name += strcspn(name, "|");
        name = *name ? name + 1 : names;
    }
    qkv_text_printf(&option, "--%.*s", (int)strcspn(name, "|"), name);
    qkv_words_pair(words, option.failed ? NULL : option.data, text);
    qkv_text_release(&option);
}

void qkv_prompt_list_add_words(const qkv_prompt_list *list, const char *names, qkv_words *words) {
    for (size_t i = 0; i < list->n; i++) {
        if (names)
            add_named(words, names, i, list->wanted[i].text);
        else
            add_prompt(words, &list->wanted[i]);
    }
    if (list->n && list->wanted[0].parse_special) qkv_words_add(words, "--parse-special");
}
