/* qkv tokens: how a text is cut into tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/inputs.h"

typedef struct tokens_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    int no_special;
    int json;
} tokens_args;

static const tokens_args defaults = {0};

static const cli_option options[] = {
    CLI_MODEL_OPTION(tokens_args),
    {'f', "file", "FILE", "read the text from a file, '-' for standard input", CLI_PATHS,
     offsetof(tokens_args, prompts), CLI_PROMPT_FILE, 0, 0},
    {0, "no-special", NULL, "do not add the tokens that begin or end a text", CLI_FLAG,
     offsetof(tokens_args, no_special), 1, 0, 0},
    {0, "parse-special", NULL, "names of special tokens in the text become those tokens", CLI_FLAG,
     offsetof(tokens_args, parse_special), 1, 0, 0},
    CLI_CHAT_OPTIONS(tokens_args, chat),
    CLI_JSON_OPTION(tokens_args),
};

static int run_tokens(const cli_call *call, qkv_error *err);

const cli_command cli_command_tokens = {
    .name = "tokens",
    .summary = "how a text is cut into tokens",
    .synopsis = "[-m MODEL] [--json] TEXT\n[-m MODEL] [--json] -f FILE",
    .description = "Prints position, id and text of every token. Control characters and bytes that "
                   "are not text by themselves are shown as escapes.\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .max_operands = 1,
    .run = run_tokens,
};

static int print_token(const qkv_model *model, size_t position, int32_t id, qkv_error *err) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(model, &bytes, &length, id, err);
    if (status != QKV_OK) return status;
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, bytes, length);
    printf("%8zu  %8" PRId32 "  \"%s\"\n", position, id, visible.data ? visible.data : "");
    qkv_text_release(&visible);
    qkv_text_free(bytes);
    return QKV_OK;
}

static int print_table(const qkv_model *model, const cli_prompt *prompt, qkv_error *err) {
    int status = QKV_OK;
    printf("%8s  %8s  %s\n", "position", "id", "text");
    for (size_t i = 0; i < prompt->n_tokens && status == QKV_OK; i++) {
        status = print_token(model, i, prompt->tokens[i], err);
    }
    return status;
}

/* Bytes in hexadecimal beside the text, which cannot show all of them. */
static int add_json(json_t *list, const qkv_model *model, int32_t id, qkv_error *err) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(model, &bytes, &length, id, err);
    if (status != QKV_OK) return status;
    qkv_text hex = {0};
    qkv_text_puts(&hex, "");
    for (size_t i = 0; i < length; i++) qkv_text_printf(&hex, "%02x", (unsigned char)bytes[i]);
    json_t *token = json_pack("{s:i, s:o, s:s}", "id", (int)id, "text",
                              qkv_json_string(bytes, length), "bytes", hex.failed ? "" : hex.data);
    qkv_text_release(&hex);
    qkv_text_free(bytes);
    return json_array_append_new(list, token) == 0 ? QKV_OK : qkv_fail_memory(err);
}

static int print_json(const qkv_model *model, const cli_prompt *prompt, qkv_error *err) {
    json_t *list = json_array();
    int status = QKV_OK;
    for (size_t i = 0; i < prompt->n_tokens && status == QKV_OK; i++) {
        status = add_json(list, model, prompt->tokens[i], err);
    }
    if (status == QKV_OK) return cli_print_json(json_pack("{s:o}", "tokens", list), err);
    json_decref(list);
    return status;
}

static int run_tokens(const cli_call *call, qkv_error *err) {
    const tokens_args *args = call->args;
    if (call->n_operands + args->prompts.n != 1) {
        return cli_usage(err, "give one text, or one file with -f");
    }
    if (args->chat.on && args->no_special) {
        return cli_usage(err, "--chat adds no tokens: leave out --no-special");
    }
    const cli_item text = {call->n_operands ? call->operands[0] : NULL, CLI_PROMPT_TEXT};
    const unsigned flags = (args->no_special ? 0u : QKV_TOKENIZE_ADD_SPECIAL) |
                           (args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    qkv_model *model = NULL;
    cli_prompt prompt = {0};
    int status = cli_chat_check(&args->chat, err);
    if (status == QKV_OK)
        status = cli_prompt_load(&prompt, text.value ? &text : &args->prompts.items[0], err);
    if (status == QKV_OK) status = cli_model_open(&model, args->model, err);
    if (status == QKV_OK) status = cli_chat_tokenize(&args->chat, &prompt, model, flags, err);
    if (status == QKV_OK) {
        status = args->json ? print_json(model, &prompt, err) : print_table(model, &prompt, err);
    }
    cli_prompt_release(&prompt);
    qkv_model_free(model);
    return status;
}
