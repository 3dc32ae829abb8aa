/*
 * What a figure says about itself: the small print for its reader, the recipe that is embedded in
 * the file, and the numbers with their metadata.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/figure.h"
#include "qkv/store.h"

/* ---- small print ---- */

static const char *scale_name(int scale) {
    static const char *const names[] = {"linear", "log", "power"};
    return names[scale];
}

static void print_tokens(const figure *fig, qkv_text *text) {
    for (size_t i = 0; i < fig->n_prompts; i++) {
        qkv_text_printf(text, "%s%zu", i ? ", " : "", fig->prompts[i].n_tokens);
    }
    qkv_text_puts(text,
                  fig->n_prompts == 1 && fig->prompts[0].n_tokens == 1 ? " token" : " tokens");
}

int figure_small_print(const figure *fig, qkv_text *text, qkv_error *err) {
    const figure_args *args = fig->args;
    cli_name_model(text, fig->info->name, fig->info->path);
    qkv_text_printf(text, " \xc2\xb7 layer %d, head %d", (int)fig->layer, (int)fig->head);
    if (fig->sink >= 0) {
        qkv_text_printf(text, " (strongest first-token sink, %.3f)", fig->sink);
    }
    if (fig->operations.length) qkv_text_printf(text, " \xc2\xb7 %s", fig->operations.data);
    qkv_text_puts(text, " \xc2\xb7 ");
    print_tokens(fig, text);
    if (args->skip_keys == 1) {
        qkv_text_puts(text, ", first key left out");
    } else if (args->skip_keys) {
        qkv_text_printf(text, ", first %" PRId64 " keys left out", args->skip_keys);
    }
    if (args->sink_column) qkv_text_puts(text, ", learned sink as first column");
    if (args->diff) qkv_text_puts(text, " \xc2\xb7 edited minus unmodified");
    qkv_text_printf(text, " \xc2\xb7 %s scale", scale_name(args->scale));
    if (args->scale == QKV_SCALE_POWER) qkv_text_printf(text, " (exponent %g)", figure_gamma(args));
    /* A no-break space: the version stays beside the name. */
    qkv_text_printf(text, " %.4g to %.4g \xc2\xb7 qkv\xc2\xa0%s",
                    args->scale == QKV_SCALE_LOG ? figure_log_floor(fig) : fig->low, fig->high,
                    qkv_version());
    return text->failed || fig->operations.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- recipe ---- */

static json_t *token_list(const cli_prompt *prompt) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        json_array_append_new(list, json_integer(prompt->tokens[i]));
    }
    return list;
}

static json_t *describe_inputs(const figure *fig) {
    json_t *list = json_array();
    for (size_t i = 0; i < fig->n_prompts; i++) {
        const cli_prompt *prompt = &fig->prompts[i];
        json_t *input = json_pack("{s:o}", "tokens", token_list(prompt));
        if (prompt->text) {
            json_object_set_new(input, "text", cli_json_string(prompt->text, prompt->length));
        }
        json_array_append_new(list, input);
    }
    return list;
}

static json_t *describe_sources(const figure *fig) {
    json_t *sources = json_object();
    for (size_t i = 0; i < fig->sources.n; i++) {
        const cli_source *source = &fig->sources.items[i];
        qkv_text name = {0};
        qkv_text_append_utf8(&name, source->name, strlen(source->name));
        if (!name.failed) json_object_set_new(sources, name.data, token_list(&source->prompt));
        qkv_text_release(&name);
    }
    return sources;
}

static json_t *describe_panels(const figure *fig) {
    json_t *list = json_array();
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        json_array_append_new(list,
                              json_pack("{s:i, s:i, s:i, s:o}", "row", (int)(i / fig->cols), "col",
                                        (int)(i % fig->cols), "input", (int)cell->prompt, "edits",
                                        cli_json_string(cell->edits, strlen(cell->edits))));
    }
    return list;
}

int figure_recipe(const figure *fig, char **recipe, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(fig->model, hash, err);
    if (status != QKV_OK) return status;
    json_t *json = json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:i, s:i, s:[f, f], s:o, s:o, s:o}", "qkv_version",
        qkv_version(), "command", cli_json_command(fig->call), "model",
        cli_json_path(fig->info->path), "model_hash", hash, "site", qkv_site_name(fig->site),
        "layer", (int)fig->layer, "head", (int)fig->head, "range", fig->low, fig->high, "inputs",
        describe_inputs(fig), "sources", describe_sources(fig), "panels", describe_panels(fig));
    *recipe = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    return *recipe ? QKV_OK : qkv_fail_memory(err);
}

/* ---- numbers ---- */

/* Per cell: its name, and the keys NAME.title and NAME.edits. */
typedef struct data_names {
    char tensor[48], title[64], edits[64];
} data_names;

static void name_cells(const figure *fig, data_names *names, qkv_store_tensor *tensors,
                       const char **metadata) {
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        const int64_t n_tokens = (int64_t)fig->prompts[cell->prompt].n_tokens;
        snprintf(names[i].tensor, sizeof names[i].tensor, "r%zu.c%zu", i / fig->cols,
                 i % fig->cols);
        snprintf(names[i].title, sizeof names[i].title, "%s.title", names[i].tensor);
        snprintf(names[i].edits, sizeof names[i].edits, "%s.edits", names[i].tensor);
        tensors[i] = (qkv_store_tensor){names[i].tensor,
                                        cell->values,
                                        2,
                                        {n_tokens, (int64_t)figure_n_cols(fig, cell->prompt), 0}};
        const char *const pairs[] = {names[i].title, cell->title, names[i].edits, cell->edits};
        memcpy(metadata + 4 * i, pairs, sizeof pairs);
    }
}

int figure_write_data(const figure *fig, const char *recipe, qkv_error *err) {
    const size_t n = fig->rows * fig->cols;
    data_names *names = qkv_calloc(n, sizeof *names);
    qkv_store_tensor *tensors = qkv_calloc(n, sizeof *tensors);
    const char **metadata = qkv_calloc(4 * n + 2, sizeof *metadata);
    int status = QKV_OK;
    if (names && tensors && metadata) {
        name_cells(fig, names, tensors, metadata);
        metadata[4 * n] = "recipe";
        metadata[4 * n + 1] = recipe;
        status = qkv_store_write_tensors(tensors, n, metadata, 2 * n + 1, fig->args->data, err);
    } else {
        status = qkv_fail_memory(err);
    }
    free(names);
    free(tensors);
    free(metadata);
    return status;
}
