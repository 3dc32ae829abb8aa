/*
 * A recipe has the tokens of a prompt and the text that was fed; of a conversation, what the template
 * made of it. Its turns are in the command line alone, so they are read from there, and believed only
 * where the template makes the same tokens of them again.
 */
#include "server/dropped_prompt.h"

#include <string.h>

#include "base/json.h"
#include "server/model_pool.h"

/* ---- words of the command line ---- */

/* What --NAME VALUE, --NAME=VALUE or -n VALUE says at a word; NULL: it is another option. */
static const char *value_at(const json_t *words, size_t i, const char *name, const char *brief) {
    const char *word = json_string_value(json_array_get(words, i));
    const size_t n = strlen(name);
    if (!word) return NULL;
    if (strncmp(word, name, n) == 0 && word[n] == '=') return word + n + 1;
    if (strcmp(word, name) != 0 && (!brief || strcmp(word, brief) != 0)) return NULL;
    return json_string_value(json_array_get(words, i + 1));
}

/* Is it what another option says? A prompt may be "--chat", too. */
static int is_value(const json_t *words, size_t i) {
    static const char *const takers[] = {"-p",     "--prompt", "--system",
                                         "--turn", "--date",   "--title"};
    const char *last = i ? json_string_value(json_array_get(words, i - 1)) : NULL;
    for (size_t t = 0; last && t < sizeof takers / sizeof *takers; t++)
        if (strcmp(last, takers[t]) == 0) return 1;
    return 0;
}

static int has_word(const json_t *words, const char *wanted) {
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (word && strcmp(word, wanted) == 0 && !is_value(words, i)) return 1;
    }
    return 0;
}

/* The first value of an option; NULL: there is none. */
static const char *find_value(const json_t *words, const char *name, const char *brief) {
    const char *value = NULL;
    for (size_t i = 0; i < json_array_size(words) && !value; i++)
        value = value_at(words, i, name, brief);
    return value;
}

static void add_turn(json_t *turns, const char *role, size_t n_role, const char *content) {
    qkv_json_push(turns, json_pack("{s:o, s:o}", "role", qkv_json_string(role, n_role), "content",
                                   qkv_json_text(content)));
}

/* The turns of --turn ROLE=TEXT, then the prompt as the user's. */
static json_t *list_turns(const json_t *words, const char *last) {
    json_t *turns = json_array();
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *turn = value_at(words, i, "--turn", NULL);
        const char *equals = turn ? strchr(turn, '=') : NULL;
        if (equals) add_turn(turns, turn, (size_t)(equals - turn), equals + 1);
    }
    add_turn(turns, "user", 4, last);
    return turns;
}

/* The conversation that a command line tells of; NULL: it tells of none, or of one whose last turn
 * is not in it. */
static json_t *read_chat(const json_t *words, int parse_special) {
    const char *last = find_value(words, "--prompt", "-p");
    const char *system = find_value(words, "--system", NULL);
    const char *date = find_value(words, "--date", NULL);
    if (!has_word(words, "--chat") || !last) return NULL;
    json_t *chat = json_pack("{s:o}", "turns", list_turns(words, last));
    if (chat && system) qkv_json_put(chat, "system", qkv_json_text(system));
    if (chat && date) qkv_json_put(chat, "date", qkv_json_text(date));
    json_t *prompt = chat ? json_pack("{s:o}", "chat", chat) : NULL;
    if (prompt && parse_special) qkv_json_put(prompt, "parse_special", json_true());
    return prompt;
}

/* ---- does it give the very tokens? ---- */

static int has_tokens(const qkv_own_prompt *made, const json_t *tokens) {
    size_t same = 0;
    while (same < made->n_tokens &&
           json_integer_value(json_array_get(tokens, same)) == made->tokens[same])
        same++;
    return same == made->n_tokens && same == json_array_size(tokens);
}

/* A prompt that cannot be read or made gives none. */
static int gives_tokens(const json_t *prompt, const qkv_model *model, const json_t *tokens) {
    qkv_request_prompt wanted = {0};
    qkv_own_prompt made = {0};
    const int gives = prompt && qkv_request_prompt_read(&wanted, prompt, NULL) == QKV_OK &&
                      qkv_pooled_prompt_make(&made, model, &wanted, NULL) == QKV_OK &&
                      has_tokens(&made, tokens);
    qkv_own_prompt_release(&made);
    qkv_request_prompt_release(&wanted);
    return gives;
}

/* The text, where it is whole: JSON may hold a NUL byte, a prompt of the page not. */
static json_t *read_text(const json_t *input, int parse_special) {
    json_t *text = json_object_get(input, "text");
    const char *bytes = json_string_value(text);
    if (!bytes || strlen(bytes) != json_string_length(text)) return NULL;
    json_t *prompt = json_pack("{s:O}", "text", text);
    if (prompt && parse_special) qkv_json_put(prompt, "parse_special", json_true());
    return prompt;
}

json_t *qkv_dropped_prompt(const json_t *recipe, const qkv_model *model, int *lost_chat) {
    const json_t *input = json_array_get(json_object_get(recipe, "inputs"), 0);
    const json_t *words = json_object_get(recipe, "command");
    json_t *tokens = json_object_get(input, "tokens");
    const int parse_special = json_is_true(json_object_get(input, "parse_special"));
    *lost_chat = 0;
    json_t *chat =
        model ? read_chat(words, parse_special || has_word(words, "--parse-special")) : NULL;
    if (gives_tokens(chat, model, tokens)) return chat;
    json_decref(chat);
    *lost_chat = has_word(words, "--chat");
    json_t *text = read_text(input, parse_special);
    if (text && (!model || gives_tokens(text, model, tokens))) return text;
    json_decref(text);
    return json_pack("{s:O}", "tokens", tokens);
}
