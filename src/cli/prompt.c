/* Prompts: text from the command line or a file, or token ids. An empty one is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/inputs.h"

/* Far beyond what any model takes, small enough to stop a device or the wrong file early. */
#define LARGEST_PROMPT ((size_t)64 << 20)

static int read_ids(cli_prompt *prompt, const char *list, qkv_error *err) {
    size_t capacity = 0;
    for (const char *at = list;; at++) {
        int64_t id;
        const size_t n = strcspn(at, ",");
        if (!qkv_parse_int(at, n, &id) || id > INT32_MAX || id < INT32_MIN) {
            return cli_usage(err, "token ids are written 1,2,3; '%.*s' is none", (int)n, at);
        }
        if (!QKV_PUSH(prompt->tokens, capacity, prompt->n_tokens, (int32_t)id)) {
            return qkv_fail_memory(err);
        }
        at += n;
        if (*at == '\0') return QKV_OK;
    }
}

/* Editors end files with a newline that nobody meant as part of the prompt. */
static void strip_newline(cli_prompt *prompt) {
    if (prompt->length && prompt->text[prompt->length - 1] == '\n') prompt->length--;
    prompt->text[prompt->length] = '\0';
}

int cli_prompt_load(cli_prompt *prompt, const cli_item *item, qkv_error *err) {
    *prompt = (cli_prompt){0};
    int status = QKV_OK;
    if (item->tag == CLI_PROMPT_TOKENS) return read_ids(prompt, item->value, err);
    if (item->tag == CLI_PROMPT_FILE) {
        status = qkv_read_file(&prompt->text, &prompt->length, item->value, LARGEST_PROMPT, err);
        if (status == QKV_OK) strip_newline(prompt);
    } else {
        prompt->text = qkv_strdup(item->value);
        if (!prompt->text) return qkv_fail_memory(err);
        prompt->length = strlen(prompt->text);
    }
    if (status == QKV_OK && prompt->length == 0) {
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt is empty");
    }
    return status;
}

int cli_prompt_next_line(const cli_prompt *prompt, size_t *at, const char **line, size_t *length) {
    while (*at < prompt->length) {
        *line = prompt->text + *at;
        const char *end = memchr(*line, '\n', prompt->length - *at);
        *length = end ? (size_t)(end - *line) : prompt->length - *at;
        *at += *length + 1;
        if (*length && (*line)[*length - 1] == '\r') --*length;
        if (*length) return 1;
    }
    return 0;
}

int cli_prompt_tokenize(cli_prompt *prompt, const qkv_model *model, unsigned flags,
                        qkv_error *err) {
    if (prompt->tokens) return QKV_OK;
    return qkv_tokenize(model, &prompt->tokens, &prompt->n_tokens, prompt->text, prompt->length,
                        flags, err);
}

void cli_prompt_release(cli_prompt *prompt) {
    free(prompt->text);
    qkv_tokens_free(prompt->tokens);
    *prompt = (cli_prompt){0};
}
