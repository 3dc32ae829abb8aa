/* The commands about figures: options to the library's structs, its figures to files. */
#include "cli/cmd_figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/messages.h"

/* What the lists of the options point to. */
typedef struct inputs {
    cli_prompts loaded;
    qkv_prompt *prompts; /* what they hold */
    cli_sources from;
    qkv_prompt *sources, *set;
    qkv_figure_side *rows, *cols;
    char **command;
} inputs;

/* ---- options ---- */

static int read_range(const figure_args *args, qkv_figure_options *options, qkv_error *err) {
    if (!args->range) return QKV_OK;
    options->auto_range = strcmp(args->range, "auto") == 0;
    if (options->auto_range) return QKV_OK;
    return cli_parse_range(args->range, &options->range[0], &options->range[1], err);
}

/* All but the lists. */
static int read_options(const figure_args *args, qkv_figure_options *options, qkv_error *err) {
    static const qkv_figure_labels labels[] = {QKV_LABELS_TOKENS, QKV_LABELS_INDEX,
                                               QKV_LABELS_NONE};
    options->layer = (int32_t)args->layer;
    options->head = (int32_t)args->head;
    options->all_heads = args->edit_heads;
    options->eps = args->eps;
    options->show = (qkv_figure_show)args->show;
    options->baseline = args->baseline;
    options->diff = args->diff;
    options->layers = args->layers;
    options->variant = args->variant;
    options->query = (int32_t)args->query;
    options->skip_keys = args->skip_keys;
    options->sink_column = args->sink_column;
    options->report = args->reports.n > 0;
    options->living = cli_outputs_have(&args->outputs, args->format, "html");
    options->labels = args->labels == CLI_AUTO ? QKV_LABELS_AUTO : labels[args->labels];
    options->values = (qkv_figure_values)args->values;
    options->hide_axes = !args->axis_labels;
    options->scale = args->scale == CLI_AUTO ? QKV_SCALE_LINEAR : (qkv_scale)args->scale;
    options->always_linear = args->scale == (int)QKV_SCALE_LINEAR;
    /* Words begin with 0, the library's constants with the default. */
    options->colormap = (qkv_colormap)(args->colormap + 1);
    options->masked = (qkv_masked)(args->masked + 1);
    options->gamma = args->gamma;
    options->title = args->title;
    options->dpi = args->dpi;
    options->no_recipe = args->no_recipe;
    options->panel_size = args->panel_size;
    options->text = (qkv_text_form)(args->print.text + 1);
    options->font = args->print.font;
    options->width = args->print.width;
    options->hide_notes = args->print.no_notes;
    return read_range(args, options, err);
}

static int take_sides(const cli_list *given, qkv_figure_side **sides, qkv_error *err) {
    *sides = qkv_calloc(given->n, sizeof **sides);
    if (!*sides) return qkv_fail_memory(err);
    for (size_t i = 0; i < given->n; i++) {
        const char *text = given->items[i].value;
        const size_t label = strcspn(text, "=");
        (*sides)[i] = (qkv_figure_side)QKV_FIGURE_SIDE_INIT;
        (*sides)[i].label = qkv_strndup(text, label);
        (*sides)[i].edits = text + label + 1;
        if (!(*sides)[i].label) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

static int take_lists(const cli_call *call, inputs *in, qkv_figure_options *options,
                      qkv_error *err) {
    const figure_args *args = call->args;
    int status = cli_command_words(call, &in->command, err);
    if (status == QKV_OK) status = take_sides(&args->rows, &in->rows, err);
    if (status == QKV_OK) status = take_sides(&args->cols, &in->cols, err);
    options->command = (const char *const *)in->command;
    options->n_command = (size_t)call->argc;
    options->rows = in->rows;
    options->n_rows = args->rows.n;
    options->cols = in->cols;
    options->n_cols = args->cols.n;
    return status;
}

/* ---- prompts ---- */

static qkv_prompt plain_prompt(const cli_prompt *from, const char *name, int parse_special) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.text = from->text;
    prompt.length = from->length;
    prompt.tokens = from->tokens;
    prompt.n_tokens = from->n_tokens;
    prompt.name = name;
    if (parse_special) prompt.flags |= QKV_TOKENIZE_PARSE_SPECIAL;
    return prompt;
}

static int load_sources(const figure_args *args, inputs *in, qkv_error *err) {
    const cli_list *const edits[] = {&args->rows, &args->cols};
    int status = cli_sources_load(&in->from, &args->sources, &args->chat, err);
    if (status == QKV_OK) status = cli_sources_take_edits(&in->from, edits, 2, err);
    if (status != QKV_OK) return status;
    in->sources = qkv_calloc(in->from.n, sizeof *in->sources);
    in->set = qkv_calloc(in->from.set.n, sizeof *in->set);
    if (!in->sources || !in->set) return qkv_fail_memory(err);
    for (size_t i = 0; i < in->from.set.n; i++)
        in->set[i] = plain_prompt(&in->from.set.items[i], NULL, args->parse_special);
    for (size_t i = 0; i < in->from.n; i++) {
        const cli_source *source = &in->from.items[i];
        in->sources[i] = plain_prompt(&source->prompt, source->name, args->parse_special);
    }
    return QKV_OK;
}

static int has_named_source(const cli_list *given) {
    for (size_t i = 0; i < given->n; i++) {
        if (given->items[i].tag != CLI_SOURCE_SET) return 1;
    }
    return 0;
}

static int check_prompts(const figure_args *args, qkv_figure_kind kind, const inputs *in,
                         qkv_error *err) {
    const size_t n = in->loaded.n;
    const int takes_one = kind == QKV_FIGURE_MODIFY || kind == QKV_FIGURE_HEADS;
    if (takes_one && n > 1) return cli_prompts_check_one(&in->loaded, &args->prompts, err);
    if (kind == QKV_FIGURE_GRID && args->rows.n + args->cols.n == 0 && n < 2) {
        return cli_usage(err,
                         "nothing to draw: add --row or --col LABEL=EDITS, or a second prompt");
    }
    if (args->generate && has_named_source(&args->sources) && n > 1) {
        return cli_usage(err, "with --generate a source goes on as the prompt does: give one "
                              "prompt");
    }
    return QKV_OK;
}

static int load_prompts(const figure_args *args, qkv_figure_kind kind, inputs *in,
                        qkv_figure_options *options, qkv_error *err) {
    int status = cli_prompts_load(&in->loaded, &args->prompts, &args->chat, err);
    if (status == QKV_OK && args->generate && in->loaded.n == 0) {
        status = cli_prompts_add_default(&in->loaded, kind == QKV_FIGURE_MEAN ? SIZE_MAX : 1, err);
    }
    const size_t n = in->loaded.n;
    if (status == QKV_OK) status = check_prompts(args, kind, in, err);
    in->prompts = qkv_calloc(n, sizeof *in->prompts);
    if (status == QKV_OK && !in->prompts) status = qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        in->prompts[i] = plain_prompt(&in->loaded.items[i], NULL, args->parse_special);
    }
    if (status == QKV_OK) status = load_sources(args, in, err);
    options->prompts = in->prompts;
    options->n_prompts = n;
    options->sources = in->sources;
    options->n_sources = in->from.n;
    options->set_prompts = in->set;
    options->n_set_prompts = in->from.set.n;
    return status;
}

static void release_sides(qkv_figure_side *sides, size_t n) {
    for (size_t i = 0; sides && i < n; i++) free((char *)sides[i].label);
    free(sides);
}

static void release(inputs *in, const figure_args *args) {
    cli_prompts_release(&in->loaded);
    free(in->prompts);
    cli_sources_release(&in->from);
    free(in->sources);
    free(in->set);
    release_sides(in->rows, args->rows.n);
    release_sides(in->cols, args->cols.n);
    cli_command_words_free(in->command);
}

/* ---- outputs ---- */

/* What a page has no use for must not pass as if it had an effect. */
static int check_page(const figure_args *args, qkv_figure_kind kind, qkv_error *err) {
    enum { HATCH = QKV_MASKED_HATCH - 1 }; /* words begin with 0 */
    const struct {
        int given;
        const char *name;
    } drawn[] = {
        {args->labels != CLI_AUTO, "--labels"},
        {args->values != 0, "--values"},
        {!args->axis_labels, "--no-axis-labels"},
        {args->panel_size > 0 && kind != QKV_FIGURE_HEADS, "--panel-size"},
        {args->masked == HATCH, "--masked hatch"},
    };
    if (args->outputs.n == 0 || cli_outputs_draw(&args->outputs, args->format)) return QKV_OK;
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        if (!drawn[i].given) continue;
        return cli_usage(err, "%s belongs to a PNG, SVG or PDF, and no output is one",
                         drawn[i].name);
    }
    return QKV_OK;
}

static int check_outputs(const figure_args *args, qkv_figure_kind kind, qkv_error *err) {
    if (args->outputs.n == 0 && !args->data && args->reports.n == 0) {
        return cli_usage(err, "no output: add for example -o figure.png");
    }
    if (args->data && strcmp(qkv_path_suffix(args->data), "safetensors") != 0 &&
        strcmp(qkv_path_suffix(args->data), "npz") != 0 &&
        strcmp(qkv_path_suffix(args->data), "csv") != 0) {
        return cli_usage(err, "--data wants a file named .safetensors, .npz or .csv, not '%s'",
                         args->data);
    }
    int status = cli_outputs_check(&args->outputs, FIGURE_FORMATS, args->format, NULL, err);
    if (status == QKV_OK) status = cli_outputs_check_names(&args->reports, "md|html|json", err);
    if (status == QKV_OK) status = cli_print_check(&args->print, &args->outputs, args->format, err);
    if (status == QKV_OK && args->dpi > 0 &&
        !cli_outputs_have(&args->outputs, args->format, "png")) {
        return cli_usage(err, "--dpi is the resolution of a PNG, and no output is one");
    }
    return status == QKV_OK ? check_page(args, kind, err) : status;
}

static int check_writable(const figure_args *args, qkv_error *err) {
    int status = cli_outputs_check_writable(&args->outputs, err);
    if (status == QKV_OK) status = cli_outputs_check_writable(&args->reports, err);
    return status == QKV_OK && args->data ? qkv_output_check(args->data, err) : status;
}

static void print_choice(const qkv_figure *figure) {
    qkv_figure_info info = QKV_FIGURE_INFO_INIT;
    if (qkv_figure_get_info(figure, &info, NULL) != QKV_OK || info.sink < 0) return;
    cli_notice("qkv: layer %d, head %d: the strongest first-token sink "
               "(mean weight %.3f on the first token)",
               (int)info.layer, (int)info.head, info.sink);
}

static void print_warnings(const qkv_figure *figure) {
    const char *warning;
    for (size_t i = 0; (warning = qkv_figure_warning(figure, i)); i++) {
        qkv_text named = {0};
        cli_append_named(&named, warning);
        if (!named.failed) cli_warn("%s", named.data);
        qkv_text_release(&named);
    }
}

static int print_figure(qkv_figure *figure, const char *format, qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    const int status = qkv_figure_render(figure, format, &bytes, &n_bytes, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

static int write_list(qkv_figure *figure, const cli_list *files, const char *format,
                      qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < files->n && status == QKV_OK; i++) {
        const char *path = files->items[i].value;
        status = cli_is_stdout(path) ? print_figure(figure, format, err)
                                     : qkv_figure_write(figure, path, err);
    }
    return status;
}

/* What cannot be drawn is told before anything is written. */
static int write_outputs(const figure_args *args, qkv_figure *figure, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < args->outputs.n && status == QKV_OK; i++) {
        const char *path = args->outputs.items[i].value;
        char drawn[32];
        snprintf(drawn, sizeof drawn, "figure.%s", args->format ? args->format : "");
        status = qkv_figure_check(figure, cli_is_stdout(path) ? drawn : path, err);
    }
    print_warnings(figure);
    if (status == QKV_OK) status = write_list(figure, &args->outputs, args->format, err);
    if (status == QKV_OK && args->data) status = qkv_figure_write(figure, args->data, err);
    return status == QKV_OK ? write_list(figure, &args->reports, NULL, err) : status;
}

/* ---- the command ---- */

static int needs_tokens(const figure_args *args) {
    return args->chat.on || args->chat.show || args->generate;
}

/* What was tokenized here is fed as tokens, and its text stays on record. */
static void take_tokens(qkv_prompt *prompt, const cli_prompt *from) {
    prompt->text = NULL;
    prompt->length = 0;
    prompt->tokens = from->tokens;
    prompt->n_tokens = from->n_tokens;
    prompt->written = from->text;
}

/* Conversations need the model's template, and texts that go on their tokens. */
static int tokenize(const figure_args *args, inputs *in, const qkv_model *model, qkv_error *err) {
    const unsigned flags =
        QKV_TOKENIZE_ADD_SPECIAL | (args->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    if (!needs_tokens(args)) return QKV_OK;
    const int status = cli_prompts_tokenize(&in->loaded, &args->chat, model, flags, err);
    return status == QKV_OK ? cli_sources_tokenize(&in->from, &args->chat, model, flags, err)
                            : status;
}

static int take_texts(const figure_args *args, inputs *in, qkv_session *session, qkv_error *err) {
    if (!needs_tokens(args)) return QKV_OK;
    int status = cli_prompts_continue(&in->loaded, session, args->generate, err);
    if (status == QKV_OK && args->generate && in->from.n)
        status = cli_sources_follow(&in->from, &in->loaded.items[0], err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < in->loaded.n; i++) take_tokens(&in->prompts[i], &in->loaded.items[i]);
    for (size_t i = 0; i < in->from.n; i++) {
        take_tokens(&in->sources[i], &in->from.items[i].prompt);
    }
    for (size_t i = 0; i < in->from.set.n; i++) take_tokens(&in->set[i], &in->from.set.items[i]);
    return QKV_OK;
}

static int make(qkv_figure **figure, const figure_args *args, inputs *in, qkv_figure_kind kind,
                const qkv_figure_options *options, qkv_error *err) {
    static int (*const makers[])(qkv_figure **, qkv_session *, const qkv_figure_options *,
                                 qkv_error *) = {
        [QKV_FIGURE_MODIFY] = qkv_figure_modify, [QKV_FIGURE_MEAN] = qkv_figure_mean,
        [QKV_FIGURE_GRID] = qkv_figure_grid,     [QKV_FIGURE_HEADS] = qkv_figure_heads,
        [QKV_FIGURE_ROWS] = qkv_figure_rows,
    };
    const qkv_session_options how = cli_session_options(args->threads, args->memory);
    qkv_model *model = NULL;
    qkv_session *session = NULL;
    int status = cli_model_open(&model, args->model, err);
    if (status == QKV_OK) status = tokenize(args, in, model, err);
    if (status == QKV_OK) status = check_writable(args, err);
    if (status == QKV_OK) status = cli_session_new(&session, model, &how, err);
    if (status == QKV_OK) status = take_texts(args, in, session, err);
    if (status == QKV_OK) status = makers[kind](figure, session, options, err);
    cli_session_free(session);
    qkv_model_free(model);
    return status;
}

/* Mistakes in the options show before a model is opened. */
static int prepare(const cli_call *call, qkv_figure_kind kind, inputs *in,
                   qkv_figure_options *options, qkv_error *err) {
    const figure_args *args = call->args;
    int status = QKV_OK;
    if ((args->chat.on || args->chat.show) && !args->prompts.n) {
        status = cli_usage(err, "--chat and --show-prompt want a prompt: -p TEXT");
    }
    if (status == QKV_OK) status = read_options(args, options, err);
    if (status == QKV_OK) status = take_lists(call, in, options, err);
    if (status == QKV_OK) status = check_outputs(args, kind, err);
    if (status == QKV_OK) status = load_prompts(args, kind, in, options, err);
    if (status == QKV_OK && qkv_figure_options_check(kind, options, err) != QKV_OK) {
        status = cli_name_fields(CLI_USAGE, err);
    }
    return status;
}

int cli_figure(const cli_call *call, qkv_figure_kind kind, qkv_error *err) {
    const figure_args *args = call->args;
    inputs in = {0};
    qkv_figure *figure = NULL;
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    int status = prepare(call, kind, &in, &options, err);
    if (status == QKV_OK) {
        status = cli_name_fields(make(&figure, args, &in, kind, &options, err), err);
    }
    if (status == QKV_OK) {
        print_choice(figure);
        status = cli_name_fields(write_outputs(args, figure, err), err);
    }
    qkv_figure_free(figure);
    release(&in, args);
    return status;
}
