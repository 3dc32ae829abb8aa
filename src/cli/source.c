/*
 * What edits name. Sources are the prompts that patch:NAME takes its values from, written NAME=TEXT,
 * NAME=@FILE or NAME=IDS; one that no edit uses is refused, and so is a set of prompts. Vectors are read
 * from the files that edits name, add:@FILE#NAME.
 */
#include <stdlib.h>
#include <string.h>

#include "base/edit_words.h"
#include "base/memory.h"
#include "cli/inputs.h"

static int load(cli_source *source, const cli_item *given, qkv_error *err) {
    const char *equals = strchr(given->value, '=');
    if (!equals || equals == given->value) {
        return cli_usage(err, "a source is written NAME=%s, not '%s'",
                         given->tag == CLI_SOURCE_TOKENS ? "IDS" : "TEXT", given->value);
    }
    source->name = qkv_strndup(given->value, (size_t)(equals - given->value));
    if (!source->name) return qkv_fail_memory(err);
    cli_item item = {equals + 1, CLI_PROMPT_TEXT};
    if (given->tag == CLI_SOURCE_TOKENS) {
        item.tag = CLI_PROMPT_TOKENS;
    } else if (equals[1] == '@') {
        item = (cli_item){equals + 2, CLI_PROMPT_FILE};
    }
    return cli_prompt_load(&source->prompt, &item, err);
}

/* The files of the set, as -f reads them. */
static int load_set(cli_sources *sources, const cli_list *given, const cli_chat *chat,
                    qkv_error *err) {
    cli_list files = {.items = qkv_calloc(given->n, sizeof *files.items)};
    if (!files.items) return qkv_fail_memory(err);
    for (size_t i = 0; i < given->n; i++) {
        if (given->items[i].tag == CLI_SOURCE_SET)
            files.items[files.n++] = (cli_item){given->items[i].value, CLI_PROMPT_LINES};
    }
    const int status = files.n ? cli_prompts_load(&sources->set, &files, chat, err) : QKV_OK;
    free(files.items);
    return status;
}

int cli_sources_load(cli_sources *sources, const cli_list *given, const cli_chat *chat,
                     qkv_error *err) {
    sources->items = qkv_calloc(given->n, sizeof *sources->items);
    if (!sources->items) return qkv_fail_memory(err);
    int status = QKV_OK;
    for (size_t i = 0; i < given->n && status == QKV_OK; i++) {
        if (given->items[i].tag == CLI_SOURCE_SET) continue;
        status = load(&sources->items[sources->n++], &given->items[i], err);
    }
    return status == QKV_OK ? load_set(sources, given, chat, err) : status;
}

static int any_says(const cli_list *const *edits, size_t n, const char *operation,
                    const char *argument) {
    for (size_t k = 0; k < n; k++) {
        for (size_t e = 0; e < edits[k]->n; e++) {
            if (qkv_edits_say(edits[k]->items[e].value, operation, argument)) return 1;
        }
    }
    return 0;
}

static int check_used(const cli_sources *sources, const cli_list *const *edits, size_t n,
                      qkv_error *err) {
    for (size_t i = 0; i < sources->n; i++) {
        const char *name = sources->items[i].name;
        if (!any_says(edits, n, "patch:", name))
            return cli_usage(err, "no edit uses the source '%s'; write SITE@LAYERS=patch:%s", name,
                             name);
    }
    if (sources->set.n && !any_says(edits, n, "mean:", "set") &&
        !any_says(edits, n, "patch:", "resample"))
        return cli_usage(err, "no edit uses --set-prompts; write SITE@LAYERS=mean:set or "
                              "SITE@LAYERS=patch:resample");
    return QKV_OK;
}

int cli_sources_take_edits(cli_sources *sources, const cli_list *const *edits, size_t n,
                           qkv_error *err) {
    int status = check_used(sources, edits, n, err);
    if (status == QKV_OK && !sources->data) status = qkv_edit_data_new(&sources->data, err);
    for (size_t k = 0; k < n; k++) {
        for (size_t e = 0; e < edits[k]->n && status == QKV_OK; e++)
            status = qkv_edit_data_read_vectors(sources->data, edits[k]->items[e].value, err);
    }
    return status;
}

/* The set's tokens, for edits; a study gets its prompts itself. */
static int give_set(cli_sources *sources, qkv_error *err) {
    const size_t n = sources->set.n;
    if (n == 0 || !sources->data) return QKV_OK;
    const int32_t **tokens = qkv_calloc(n, sizeof *tokens);
    size_t *lengths = qkv_calloc(n, sizeof *lengths);
    for (size_t i = 0; tokens && lengths && i < n; i++) {
        tokens[i] = sources->set.items[i].tokens;
        lengths[i] = sources->set.items[i].n_tokens;
    }
    const int status = tokens && lengths
                           ? qkv_edit_data_set_prompts(sources->data, tokens, lengths, n, err)
                           : qkv_fail_memory(err);
    free((void *)tokens);
    free(lengths);
    return status;
}

int cli_sources_tokenize(cli_sources *sources, const cli_chat *chat, const qkv_model *model,
                         unsigned flags, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < sources->n && status == QKV_OK; i++) {
        qkv_own_prompt *prompt = &sources->items[i].prompt;
        if (prompt->text) status = cli_chat_tokenize(chat, prompt, model, flags, err);
    }
    if (status == QKV_OK) status = cli_prompts_tokenize(&sources->set, chat, model, flags, err);
    return status == QKV_OK ? give_set(sources, err) : status;
}

int cli_sources_add(const cli_sources *sources, qkv_plan *plan, qkv_error *err) {
    int status = qkv_plan_set_edit_data(plan, sources->data, err);
    for (size_t i = 0; i < sources->n && status == QKV_OK; i++) {
        const cli_source *source = &sources->items[i];
        status = qkv_plan_add_source(plan, source->name, source->prompt.tokens,
                                     source->prompt.n_tokens, err);
    }
    return status;
}

void cli_sources_release(cli_sources *sources) {
    for (size_t i = 0; i < sources->n; i++) {
        free(sources->items[i].name);
        qkv_own_prompt_release(&sources->items[i].prompt);
    }
    free(sources->items);
    qkv_own_prompts_release(&sources->set);
    qkv_edit_data_free(sources->data);
    *sources = (cli_sources){0};
}

int cli_source_lists_make(cli_source_lists *lists, const cli_sources *sources, qkv_error *err) {
    lists->names = qkv_calloc(sources->n, sizeof *lists->names);
    lists->tokens = qkv_calloc(sources->n, sizeof *lists->tokens);
    lists->lengths = qkv_calloc(sources->n, sizeof *lists->lengths);
    if (!lists->names || !lists->tokens || !lists->lengths) return qkv_fail_memory(err);
    for (size_t i = 0; i < sources->n; i++) {
        lists->names[i] = sources->items[i].name;
        lists->tokens[i] = sources->items[i].prompt.tokens;
        lists->lengths[i] = sources->items[i].prompt.n_tokens;
    }
    return QKV_OK;
}

void cli_source_lists_release(cli_source_lists *lists) {
    free((void *)lists->names);
    free((void *)lists->tokens);
    free(lists->lengths);
    *lists = (cli_source_lists){0};
}
