/* qkv tokens: how a text is cut into tokens, and the text of tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/columns.h"
#include "cli/inputs.h"

typedef struct tokens_args {
    const char *model;
    cli_list prompts;
    int parse_special;
    cli_chat chat;
    int no_special;
    const char *ids;
    int json;
} tokens_args;

static const tokens_args defaults = {0};

static const cli_option options[] = {
    CLI_MODEL_OPTION(tokens_args),
    CLI_PROMPTS_OPTIONS(tokens_args),
    {0, "ids", "IDS", "the other way: the text of these tokens, e.g. 1,2,3", CLI_TEXT,
     offsetof(tokens_args, ids), 0, 0, 0},
    {0, "no-special", NULL,
     "do not add the tokens that begin or end a text; with --ids, leave out special tokens",
     CLI_FLAG, offsetof(tokens_args, no_special), 1, 0, 0},
    CLI_JSON_OPTION(tokens_args),
};

static int run_tokens(const cli_call *call, qkv_error *err);

const cli_command cli_command_tokens = {
    .name = "tokens",
    .summary = "how a text is cut into tokens, and back",
    .synopsis = "[-m MODEL] [--json] TEXT\n[-m MODEL] [--json] (-p TEXT | -f FILE | --file FILE | "
                "--tokens IDS)...\n[-m MODEL] [--json] [--no-special] --ids IDS",
    .description =
        "Prints position, id and text of every token. Control characters and bytes that "
        "are not text by themselves are shown as escapes. Of several prompts, and of the "
        "lines of a file given with -f, one table after the other.\n"
        "\n"
        "--json prints {\"tokens\": [...]} for one text, and {\"prompts\": [{\"text\": "
        "..., \"tokens\": [...]}, ...]} for -f and for several.\n"
        "\n"
        "--ids prints the text that tokens stand for, special tokens by their names. Control "
        "characters other than line breaks and tabs are shown as escapes; --json has the text as "
        "it is, and the tokens.\n"
        "\n"
        "  qkv tokens 'The river runs to the sea.'\n"
        "  qkv tokens --ids 1,450,8580\n",
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
    printf("%8zu  %8" PRId32 "  \"%s\"\n", position, id, cli_shown(&visible));
    qkv_text_release(&visible);
    qkv_text_free(bytes);
    return QKV_OK;
}

/* Is there a list of prompts, also of one? */
static int has_list(const tokens_args *args, const qkv_own_prompts *prompts) {
    return prompts->n > 1 || (args->prompts.n && args->prompts.items[0].tag == CLI_PROMPT_LINES);
}

static int print_table(const qkv_model *model, const qkv_own_prompt *prompt, qkv_error *err) {
    int status = QKV_OK;
    printf("%8s  %8s  %s\n", "position", "id", "text");
    for (size_t i = 0; i < prompt->n_tokens && status == QKV_OK; i++) {
        status = print_token(model, i, prompt->tokens[i], err);
    }
    return status;
}

static int print_tables(const qkv_model *model, const qkv_own_prompts *prompts, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < prompts->n && status == QKV_OK; i++) {
        if (i) putchar('\n');
        status = print_table(model, &prompts->items[i], err);
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
    json_t *token =
        json_pack("{s:i, s:o, s:s}", "id", (int)id, "text", qkv_json_string(bytes, length), "bytes",
                  hex.failed ? NULL : hex.data);
    qkv_text_release(&hex);
    qkv_text_free(bytes);
    return qkv_json_push(list, token) == 0 ? QKV_OK : qkv_fail_memory(err);
}

/* {"tokens": [...]}, with the text where it is one of a list. */
static int make_json(json_t **out, const qkv_model *model, const qkv_own_prompt *prompt,
                     int with_text, qkv_error *err) {
    json_t *list = json_array();
    int status = QKV_OK;
    *out = json_object();
    if (with_text && prompt->text)
        qkv_json_put(*out, "text", qkv_json_string(prompt->text, prompt->length));
    for (size_t i = 0; i < prompt->n_tokens && status == QKV_OK; i++) {
        status = add_json(list, model, prompt->tokens[i], err);
    }
    if (qkv_json_put(*out, "tokens", list) != 0 && status == QKV_OK) status = qkv_fail_memory(err);
    return status;
}

static int print_one(const qkv_model *model, const qkv_own_prompt *prompt, qkv_error *err) {
    json_t *json;
    const int status = make_json(&json, model, prompt, 0, err);
    if (status == QKV_OK) return cli_print_json(json, err);
    json_decref(json);
    return status;
}

static int print_list(const qkv_model *model, const qkv_own_prompts *prompts, qkv_error *err) {
    json_t *list = json_array();
    int status = QKV_OK;
    for (size_t i = 0; i < prompts->n && status == QKV_OK; i++) {
        json_t *json;
        status = make_json(&json, model, &prompts->items[i], 1, err);
        if (qkv_json_push(list, json) != 0 && status == QKV_OK) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) return cli_print_json(json_pack("{s:o}", "prompts", list), err);
    json_decref(list);
    return status;
}

static int print(const tokens_args *args, const qkv_model *model, const qkv_own_prompts *prompts,
                 qkv_error *err) {
    if (!args->json) return print_tables(model, prompts, err);
    if (has_list(args, prompts)) return print_list(model, prompts, err);
    return print_one(model, &prompts->items[0], err);
}

/* ---- and back ---- */

static int print_text(const tokens_args *args, const qkv_model *model, const qkv_own_prompt *ids,
                      qkv_error *err) {
    char *text = NULL;
    size_t length = 0;
    json_t *json = NULL;
    int status =
        qkv_detokenize(model, &text, &length, ids->tokens, ids->n_tokens, !args->no_special, err);
    if (status == QKV_OK && args->json) {
        status = make_json(&json, model, ids, 0, err);
        if (status == QKV_OK && qkv_json_put(json, "text", qkv_json_string(text, length)))
            status = qkv_fail_memory(err);
        if (status == QKV_OK) status = cli_print_json(json_incref(json), err);
    } else if (status == QKV_OK) {
        qkv_text shown = {0};
        cli_append_printable(&shown, text, length);
        puts(cli_shown(&shown));
        qkv_text_release(&shown);
    }
    json_decref(json);
    qkv_text_free(text);
    return status;
}

static int run_ids(const tokens_args *args, size_t n_operands, qkv_error *err) {
    const cli_chat *chat = &args->chat;
    if (n_operands || args->prompts.n || args->parse_special || chat->on || chat->show)
        return cli_usage(err, "--ids takes no other input: leave out texts and prompts");
    const cli_item item = {args->ids, CLI_PROMPT_TOKENS};
    qkv_own_prompt ids = {0};
    qkv_model *model = NULL;
    int status = cli_chat_check(chat, err);
    if (status == QKV_OK) status = cli_prompt_load(&ids, &item, err);
    if (status == QKV_OK) status = cli_model_open(&model, args->model, err);
    if (status == QKV_OK) status = print_text(args, model, &ids, err);
    qkv_own_prompt_release(&ids);
    qkv_model_free(model);
    return status;
}

static int run_tokens(const cli_call *call, qkv_error *err) {
    const tokens_args *args = call->args;
    if (args->ids) return run_ids(args, call->n_operands, err);
    if ((call->n_operands != 0) == (args->prompts.n != 0)) {
        return cli_usage(err, "give a text, prompts with -p, -f, --file or --tokens, or --ids");
    }
    if (args->chat.on && args->no_special) {
        return cli_usage(err, "--chat adds no tokens: leave out --no-special");
    }
    cli_item text = {call->n_operands ? call->operands[0] : NULL, CLI_PROMPT_TEXT};
    const cli_list operand = {.items = &text, .n = 1};
    const unsigned flags = (args->no_special ? 0u : QKV_TOKENIZE_ADD_SPECIAL) |
                           (args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    qkv_model *model = NULL;
    qkv_own_prompts prompts = {0};
    int status =
        cli_prompts_load(&prompts, call->n_operands ? &operand : &args->prompts, &args->chat, err);
    if (status == QKV_OK) status = cli_model_open(&model, args->model, err);
    if (status == QKV_OK) status = cli_prompts_tokenize(&prompts, &args->chat, model, flags, err);
    if (status == QKV_OK) status = print(args, model, &prompts, err);
    qkv_own_prompts_release(&prompts);
    qkv_model_free(model);
    return status;
}
