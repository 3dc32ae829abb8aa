/*
 * What edits name. Sources are the prompts that patch:NAME takes its values from, written NAME=TEXT,
 * NAME=@FILE or NAME=IDS; one that no edit uses is refused. Vectors are read from the files that edits
 * name, add:@FILE#NAME.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
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

int cli_sources_load(cli_sources *sources, const cli_list *given, qkv_error *err) {
    sources->items = qkv_calloc(given->n, sizeof *sources->items);
    if (!sources->items) return qkv_fail_memory(err);
    sources->n = given->n;
    int status = QKV_OK;
    for (size_t i = 0; i < sources->n && status == QKV_OK; i++) {
        status = load(&sources->items[i], &given->items[i], err);
    }
    return status;
}

/* Does an edit in the text say patch:NAME? */
static int is_used(const char *name, const char *edits) {
    static const char operation[] = "patch:";
    const size_t length = strlen(name);
    while ((edits = strstr(edits, operation))) {
        edits += sizeof operation - 1;
        const char end = strncmp(edits, name, length) == 0 ? edits[length] : '+';
        if (end == '\0' || qkv_is_space(end)) return 1;
    }
    return 0;
}

static int check_used(const cli_sources *sources, const cli_list *const *edits, size_t n,
                      qkv_error *err) {
    for (size_t i = 0; i < sources->n; i++) {
        int used = 0;
        for (size_t k = 0; k < n; k++) {
            for (size_t e = 0; e < edits[k]->n; e++) {
                used |= is_used(sources->items[i].name, edits[k]->items[e].value);
            }
        }
        if (used) continue;
        return cli_usage(err, "no edit uses the source '%s'; write SITE@LAYERS=patch:%s",
                         sources->items[i].name, sources->items[i].name);
    }
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

int cli_sources_tokenize(cli_sources *sources, const cli_chat *chat, const qkv_model *model,
                         unsigned flags, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < sources->n && status == QKV_OK; i++) {
        cli_prompt *prompt = &sources->items[i].prompt;
        if (prompt->text) status = cli_chat_tokenize(chat, prompt, model, flags, err);
    }
    return status;
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
        cli_prompt_release(&sources->items[i].prompt);
    }
    free(sources->items);
    qkv_edit_data_free(sources->data);
    *sources = (cli_sources){0};
}

int cli_source_lists_make(cli_source_lists *lists, const cli_sources *sources, size_t n_tokens,
                          qkv_error *err) {
    lists->names = qkv_calloc(sources->n, sizeof *lists->names);
    lists->tokens = qkv_calloc(sources->n, sizeof *lists->tokens);
    if (!lists->names || !lists->tokens) return qkv_fail_memory(err);
    for (size_t i = 0; i < sources->n; i++) {
        const cli_source *source = &sources->items[i];
        lists->names[i] = source->name;
        lists->tokens[i] = source->prompt.tokens;
        if (source->prompt.n_tokens != n_tokens)
            return qkv_fail(err, QKV_ERR_PLAN,
                            "the prompt named '%s' has %zu tokens but the prompt %zu; patching "
                            "needs equal lengths",
                            source->name, source->prompt.n_tokens, n_tokens);
    }
    return QKV_OK;
}

void cli_source_lists_release(cli_source_lists *lists) {
    free((void *)lists->names);
    free((void *)lists->tokens);
    *lists = (cli_source_lists){0};
}
