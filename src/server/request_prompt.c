/*
 * Prompts of requests. They say what the program's options say: -p, --tokens, --chat with --system,
 * --turn and --date, --parse-special.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "server/request.h"

enum { LONGEST_TEXT = 1 << 20, LONGEST_DATE = 32 };

static int check_turn(const json_t *turn, size_t index, size_t n, qkv_error *err) {
    const json_t *role = json_object_get(turn, "role");
    const json_t *content = json_object_get(turn, "content");
    if (!json_is_string(role) || !json_is_string(content) || json_object_size(turn) != 2)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "turn %zu is not {\"role\": \"user\" or \"assistant\", \"content\": TEXT}",
                        index);
    const int is_user = strcmp(json_string_value(role), "user") == 0;
    if (!is_user && strcmp(json_string_value(role), "assistant") != 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the role of turn %zu is neither user nor assistant",
                        index);
    if (index + 1 == n && !is_user)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the last turn of a chat is the user's");
    return QKV_OK;
}

static int check_keys(const json_t *object, const char *const *known, const char *name,
                      qkv_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (!known[i]) return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` has an unknown field", name);
    }
    return QKV_OK;
}

static int read_chat(qkv_request_prompt *out, qkv_error *err) {
    static const char *const known[] = {"system", "turns", "date", NULL};
    if (!json_is_object(out->chat))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`chat` is an object with `turns`");
    int status = check_keys(out->chat, known, "chat", err);
    if (status == QKV_OK)
        status = qkv_request_text(out->chat, "system", LONGEST_TEXT, &out->system, err);
    if (status == QKV_OK)
        status = qkv_request_text(out->chat, "date", LONGEST_DATE, &out->date, err);
    if (status != QKV_OK) return status;
    out->turns = json_object_get(out->chat, "turns");
    const size_t n = json_array_size(out->turns);
    if (!json_is_array(out->turns) || n == 0 || n > QKV_REQUEST_TURNS)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`turns` is a list of 1 to %d turns",
                        QKV_REQUEST_TURNS);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        status = check_turn(json_array_get(out->turns, i), i, n, err);
    if (status == QKV_OK)
        out->text =
            json_string_value(json_object_get(json_array_get(out->turns, n - 1), "content"));
    return status;
}

static int check_one(const qkv_request_prompt *prompt, qkv_error *err) {
    const int given = (prompt->text != NULL) + (prompt->tokens != NULL) + (prompt->chat != NULL);
    if (given != 1)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a prompt is one of `text`, `tokens` and `chat`");
    if (prompt->text && !prompt->text[0])
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt is empty");
    if (prompt->tokens && prompt->n_tokens == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt is empty");
    return QKV_OK;
}

int qkv_request_prompt_read(qkv_request_prompt *out, const json_t *prompt, qkv_error *err) {
    static const char *const known[] = {"text", "tokens", "chat", "parse_special", NULL};
    *out = (qkv_request_prompt){0};
    if (!json_is_object(prompt))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`prompt` is an object with `text`, `tokens` or `chat`");
    int status = check_keys(prompt, known, "prompt", err);
    if (status == QKV_OK) status = qkv_request_text(prompt, "text", LONGEST_TEXT, &out->text, err);
    if (status == QKV_OK)
        status = qkv_request_integers(prompt, "tokens", 0, INT32_MAX, QKV_REQUEST_TOKENS,
                                      &out->tokens, &out->n_tokens, err);
    if (status == QKV_OK)
        status = qkv_request_flag(prompt, "parse_special", &out->parse_special, err);
    out->chat = json_object_get(prompt, "chat");
    if (status == QKV_OK) status = check_one(out, err);
    if (status == QKV_OK && out->chat) status = read_chat(out, err);
    if (status != QKV_OK) return status;
    out->key = qkv_json_dump(prompt, JSON_COMPACT | JSON_SORT_KEYS);
    return out->key ? QKV_OK : qkv_fail_memory(err);
}

void qkv_request_prompt_release(qkv_request_prompt *prompt) {
    free(prompt->tokens);
    free(prompt->key);
    *prompt = (qkv_request_prompt){0};
}
