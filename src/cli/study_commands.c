/*
 * A command for every kind of study, made from the library's table: its options are the kind's fields, its help the
 * kind's sentences. Models, prompts, files and threads are options of the program (study.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/continue.h"
#include "cli/study.h"

typedef struct study_args {
    cli_study study;
    cli_list models;
    cli_list prompts; /* also those with names, whose tags are NAMED and the place of the name */
    int parse_special;
    cli_chat chat;
    cli_list sources;
    const char *shard;
    int explain;
    /* of figures */
    cli_list data, reports;
    int64_t generate;
} study_args;

static const study_args defaults;
enum { NAMED = 1 << 8, MOST_OPTIONS = 128, MOST_KINDS = 64 };

/* ---- options that are the program's ---- */

static const cli_option one_model = {
    'm',
    "model",
    "MODEL",
    "model: a GGUF file, a Hugging Face directory, or a name such as tinyllama or org/name:Q4_K_M "
    "(default: QKV_MODEL, or the model shipped with qkv)",
    CLI_MODELS,
    offsetof(study_args, models),
    0,
    0,
    0};
static const cli_option two_models = {
    'm',
    "model",
    "MODEL",
    "a model: a GGUF file, a Hugging Face directory or a name; twice, the first and the second",
    CLI_MODELS,
    offsetof(study_args, models),
    0,
    0,
    0};
static const cli_option prompt_options[] = {CLI_PROMPT_OPTIONS(study_args)};
static const cli_option prompts_options[] = {CLI_PROMPTS_OPTIONS(study_args)};
static const cli_option cell_options[] = {
    {0, "shard", "I/N", "compute only part I of N, into results of its own", CLI_TEXT,
     offsetof(study_args, shard), 0, 0, 0},
    {0, "explain", NULL, "check everything, print the estimate, and compute nothing", CLI_FLAG,
     offsetof(study_args, explain), 1, 0, 0},
};
static const cli_option source_options[] = {CLI_SOURCE_OPTIONS(study_args)};
static const cli_option file_options[] = {CLI_STUDY_OPTIONS(study_args)};
static const cli_option figure_options[] = {
    CLI_GENERATE_OPTION(study_args),
    {0, "data", "OUT", "file for the numbers of the figure, .safetensors, .npz or .csv", CLI_PATHS,
     offsetof(study_args, data), 0, 0, 0},
    {0, "report", "OUT",
     "file for a report, the figure in numbers: .md, .html or .json; may be repeated", CLI_PATHS,
     offsetof(study_args, reports), 0, 0, 0},
};

/* ---- a list of options that grows ---- */

typedef struct option_list {
    cli_option *items;
    size_t n;
    int failed; /* memory ran short */
} option_list;

static void add(option_list *list, const cli_option *option) {
    if (list->n < MOST_OPTIONS)
        list->items[list->n++] = *option;
    else
        list->failed = 1;
}

static void add_all(option_list *list, const cli_option *options, size_t n) {
    for (size_t i = 0; i < n; i++) add(list, &options[i]);
}
#define ADD_ALL(list, table) add_all(list, table, sizeof(table) / sizeof *(table))

/* `freeze_mlps` as --freeze-mlps; and a sentence with the options' names. */
static char *option_name(const char *name) {
    char *text = qkv_strdup(name);
    for (char *at = text; at && *at; at++) {
        if (*at == '_') *at = '-';
    }
    return text;
}

static char *with_names(const char *sentence) {
    qkv_text text = {0};
    cli_append_named(&text, sentence ? sentence : "");
    if (text.failed) return qkv_text_release(&text), NULL;
    return text.data ? text.data : qkv_strdup("");
}

static cli_kind kind_of(const qkv_study_field *field) {
    switch (field->type) {
    case QKV_FIELD_FLAG:
        return CLI_FLAG;
    case QKV_FIELD_WORD:
        return CLI_CHOICE;
    case QKV_FIELD_LIST:
        return CLI_LIST;
    case QKV_FIELD_FILE:
    case QKV_FIELD_PATH:
        return CLI_PATH;
    default:
        return CLI_TEXT;
    }
}

static void add_field(option_list *list, const qkv_study_field *field, size_t number,
                      size_t offset) {
    const cli_option option = {0,
                               option_name(field->name),
                               field->type == QKV_FIELD_WORD ? field->words : field->value,
                               with_names(field->help),
                               kind_of(field),
                               offset,
                               CLI_AS_TEXT | (int)number,
                               0,
                               0};
    if (!option.name || !option.help) list->failed = 1;
    add(list, &option);
}

/* Fields of one use, but the one that is the operand. */
static void add_fields(option_list *list, const qkv_study_kind *kind, qkv_field_use use,
                       size_t offset) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_get_field(kind->name, i, &field); i++) {
        const int is_operand = kind->operand && strcmp(kind->operand, field.name) == 0;
        /* Whether a page is wanted, the names of outputs say; for what edits name there are source_options. */
        const int is_known = field.use == QKV_FIELD_INPUT && field.type != QKV_FIELD_PATH;
        if (field.use == use && !is_operand && !is_known) add_field(list, &field, i, offset);
    }
}

/* Files are of the formats of the kind. */
static void add_files(option_list *list, const qkv_study_kind *kind) {
    const int is_figure = cli_study_is_figure(kind);
    for (size_t i = 0; i < sizeof file_options / sizeof *file_options; i++) {
        cli_option option = file_options[i];
        if (strcmp(option.name, "format") == 0) option.value = kind->formats;
        if (is_figure && strcmp(option.name, "format") == 0) option.help = "what -o - writes";
        if (is_figure && strcmp(option.name, "json") == 0) option.help = "print the report as JSON";
        if (is_figure && option.letter == 'o')
            option.help = "file for the figure (.png, .svg, .pdf), a page whose maps change as "
                          "you drag (.html), its report (.md, .json) or its numbers (.csv, "
                          ".safetensors, .npz); '-' for standard output; may be repeated";
        add(list, &option);
    }
}

static int has_field(const qkv_study_kind *kind, const char *name) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_get_field(kind->name, i, &field); i++) {
        if (strcmp(field.name, name) == 0) return 1;
    }
    return 0;
}

/* Kinds with edits name other prompts, and so do the rows and columns of a grid. */
static int takes_sources(const qkv_study_kind *kind) {
    return has_field(kind, "source") || has_field(kind, "row");
}

/* ---- options of prompts ---- */

static void add_named_prompts(option_list *list, const qkv_study_kind *kind) {
    int place = 0;
    for (const char *name = kind->prompt_names; *name; place++) {
        const size_t n = strcspn(name, "|");
        qkv_text help = {0};
        qkv_text_printf(&help, "the %.*s prompt", (int)n, name);
        const cli_option option = {
            0,        qkv_strndup(name, n),          "TEXT",        help.data,
            CLI_LIST, offsetof(study_args, prompts), NAMED | place, 0,
            0};
        list->failed |= help.failed || !option.name;
        add(list, &option);
        name += n + (name[n] == '|');
    }
    for (size_t i = 0; i < sizeof prompt_options / sizeof *prompt_options; i++) {
        if (strcmp(prompt_options[i].name, "parse-special") == 0) add(list, &prompt_options[i]);
    }
}

static int is_of_chat(const cli_option *option) {
    return option->offset >= offsetof(study_args, chat) &&
           option->offset < offsetof(study_args, chat) + sizeof(cli_chat) &&
           option->offset != offsetof(study_args, chat) + offsetof(cli_chat, column) &&
           option->offset != offsetof(study_args, chat) + offsetof(cli_chat, pattern);
}

/* A study that has a field `chat` puts its prompts into conversations itself. */
static void add_prompts(option_list *list, const qkv_study_kind *kind) {
    const int one = kind->most_prompts == 1, chats_itself = has_field(kind, "chat");
    if (kind->most_prompts == 0) return;
    if (kind->prompt_names) {
        add_named_prompts(list, kind);
        return;
    }
    const cli_option *options = one ? prompt_options : prompts_options;
    for (size_t i = 0; i < sizeof prompt_options / sizeof *prompt_options; i++) {
        if (!chats_itself || !is_of_chat(&options[i])) add(list, &options[i]);
    }
}

/* ---- synopsis ---- */

static void write_field(qkv_text *out, const qkv_study_field *field) {
    qkv_text name = {0};
    qkv_text_printf(&name, "`%s`", field->name);
    qkv_text_puts(out, " [");
    cli_append_named(out, name.data ? name.data : "");
    if (field->type != QKV_FIELD_FLAG)
        qkv_text_printf(out, " %s", field->type == QKV_FIELD_WORD ? field->words : field->value);
    qkv_text_puts(out, field->type == QKV_FIELD_LIST ? "]..." : "]");
    out->failed |= name.failed;
    qkv_text_release(&name);
}

static void write_prompts(qkv_text *out, const qkv_study_kind *kind) {
    const char *one = "-p TEXT | -f FILE | --file FILE | --tokens IDS";
    if (kind->most_prompts == 0) return;
    if (kind->prompt_names) {
        for (const char *name = kind->prompt_names; *name;) {
            const size_t n = strcspn(name, "|");
            qkv_text_printf(out, " --%.*s TEXT", (int)n, name);
            name += n + (name[n] == '|');
        }
    } else if (kind->default_prompts) {
        qkv_text_printf(out, " [%s]%s", one, kind->most_prompts > 1 ? "..." : "");
    } else {
        qkv_text_printf(out, " (%s)%s", one, kind->most_prompts > 1 ? "..." : "");
    }
}

static char *write_synopsis(const qkv_study_kind *kind) {
    qkv_text out = {0};
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; kind->operand && qkv_study_get_field(kind->name, i, &field); i++) {
        if (strcmp(field.name, kind->operand) == 0) qkv_text_printf(&out, "%s ", field.words);
    }
    qkv_text_puts(&out, kind->n_models == 2 ? "-m FIRST -m SECOND" : "[-m MODEL]");
    write_prompts(&out, kind);
    for (size_t i = 0; qkv_study_get_field(kind->name, i, &field); i++) {
        const int is_operand = kind->operand && strcmp(field.name, kind->operand) == 0;
        if (field.use == QKV_FIELD_WORK && !is_operand) write_field(&out, &field);
    }
    qkv_text_puts(&out, cli_study_is_figure(kind) ? " -o OUT..." : " [--json] [-o OUT]...");
    if (out.failed) return qkv_text_release(&out), NULL;
    return out.data;
}

/* Paragraphs, what a file of results is for, and examples. */
static char *write_description(const qkv_study_kind *kind) {
    qkv_text out = {0};
    cli_append_named(&out, kind->description);
    if (kind->has_cells)
        qkv_text_puts(&out,
                      "\nOUT.sqlite holds the results as they are computed: after any "
                      "interruption the same command resumes, -t processes share the work, and "
                      "so do those of mpirun; --shard computes a part, and 'qkv sweep merge' "
                      "joins parts.\n");
    qkv_text_puts(&out, "\n");
    for (const char *line = kind->examples; *line;) {
        const size_t n = strcspn(line, "\n");
        qkv_text_printf(&out, "  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    if (out.failed) return qkv_text_release(&out), NULL;
    return out.data;
}

/* ---- running ---- */

static int fail_turns(const char *names, qkv_error *err) {
    qkv_text text = {0};
    for (; *names; names++)
        qkv_text_append(&text, *names == '|' ? " as --" : names, *names == '|' ? 6 : 1);
    const int status =
        text.failed ? qkv_fail_memory(err) : cli_usage(err, "give as many --%s", text.data);
    qkv_text_release(&text);
    return status;
}

/* Prompts with names, interleaved: the first of each name, the second of each, ... */
static int order_prompts(cli_list *to, const cli_list *from, const qkv_study_kind *kind,
                         qkv_error *err) {
    size_t n_names = 1;
    for (const char *at = kind->prompt_names; *at; at++) n_names += *at == '|';
    to->items = qkv_calloc(from->n, sizeof *to->items);
    if (!to->items) return qkv_fail_memory(err);
    for (size_t turn = 0; to->n < from->n; turn++) {
        for (size_t name = 0; name < n_names; name++) {
            size_t seen = 0, i = 0;
            for (; i < from->n; i++) {
                if (from->items[i].tag != (NAMED | (int)name)) continue;
                if (seen++ == turn) break;
            }
            if (i == from->n) return fail_turns(kind->prompt_names, err);
            to->items[to->n++] = (cli_item){from->items[i].value, CLI_PROMPT_TEXT};
        }
    }
    return QKV_OK;
}

static int check_models(const study_args *args, const qkv_study_kind *kind, qkv_error *err) {
    const size_t n = args->models.n;
    if (n > (size_t)kind->n_models)
        return cli_usage(err, "%s takes %s, and %zu are given", kind->name,
                         kind->n_models == 2 ? "two models" : "one model", n);
    int has_edit = 0;
    for (size_t i = 0; i < args->study.settings.n; i++) {
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        if (qkv_study_get_field(kind->name, (size_t)args->study.settings.items[i].tag, &field))
            has_edit |= strcmp(field.name, "edit") == 0;
    }
    if (kind->n_models == 2 && n < 2 && !has_edit)
        return cli_usage(err, "give two models, -m FIRST -m SECOND; or one and --edit, to compare "
                              "it with its edited self");
    return QKV_OK;
}

/* ---- figures ---- */

static int check_figure_files(const study_args *args, qkv_error *err) {
    for (size_t i = 0; i < args->data.n; i++) {
        const char *path = args->data.items[i].value, *suffix = qkv_path_suffix(path);
        if (strcmp(suffix, "safetensors") != 0 && strcmp(suffix, "npz") != 0 &&
            strcmp(suffix, "csv") != 0)
            return cli_usage(err, "--data wants a file named .safetensors, .npz or .csv, not '%s'",
                             path);
    }
    return cli_outputs_check_names(&args->reports, "md|html|json", err);
}

/* All files of a figure in one list, and whether one of them is a report. */
static int take_figure_files(cli_study *how, const study_args *args, qkv_study *study,
                             qkv_error *err) {
    const cli_list *const lists[] = {&args->study.outputs, &args->data, &args->reports};
    int status = check_figure_files(args, err);
    if (status != QKV_OK) return status;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        for (size_t i = 0; i < lists[k]->n; i++) {
            if (!QKV_PUSH(how->outputs.items, how->outputs.capacity, how->outputs.n,
                          lists[k]->items[i]))
                return qkv_fail_memory(err);
        }
    }
    const int has_report = args->reports.n || cli_outputs_have(&how->outputs, how->format, "md") ||
                           cli_outputs_have(&how->outputs, how->format, "json");
    return has_report ? qkv_study_set(study, "report", "true", err) : QKV_OK;
}

/* The kind of a command is its last word. */
static const char *kind_name(const cli_command *command) {
    const char *space = strrchr(command->name, ' ');
    return space ? space + 1 : command->name;
}

static int run_study(const cli_call *call, qkv_error *err) {
    const study_args *args = call->args;
    const cli_list *models = &args->models;
    cli_study how = args->study;
    qkv_study_kind kind = QKV_STUDY_KIND_INIT;
    qkv_study *study = NULL;
    cli_list ordered = {0};
    int status = qkv_study_get_kind(kind_name(call->command), &kind, err);
    const int is_figure = status == QKV_OK && cli_study_is_figure(&kind);
    if (is_figure) how.outputs = (cli_list){0}; /* with other files, below */
    if (status == QKV_OK) status = check_models(args, &kind, err);
    if (status == QKV_OK) status = qkv_study_new(&study, kind.name, err);
    if (status == QKV_OK) status = cli_study_set(study, kind.name, &args->study.settings, err);
    if (status == QKV_OK && is_figure) status = take_figure_files(&how, args, study, err);
    if (status == QKV_OK && kind.operand)
        status = qkv_study_set(study, kind.operand, call->operands[0], err);
    if (status == QKV_OK && kind.prompt_names)
        status = order_prompts(&ordered, &args->prompts, &kind, err);
    cli_study_job job = {.study = study,
                         .kind = kind.name,
                         .how = &how,
                         .prompts = kind.prompt_names ? &ordered : &args->prompts,
                         .parse_special = args->parse_special,
                         .chat = &args->chat,
                         .sources = takes_sources(&kind) ? &args->sources : NULL,
                         .shard = args->shard,
                         .explain = args->explain,
                         .generate = args->generate};
    job.models[0] = models->n ? models->items[0].value : NULL;
    job.models[1] = models->n > 1 ? models->items[1].value : job.models[0];
    if (status == QKV_OK) status = cli_study_run(call, &job, err);
    if (is_figure) free(how.outputs.items);
    free(ordered.items);
    qkv_study_free(study);
    return status;
}

/* ---- the commands ---- */

static const char *words_of(const qkv_study_kind *kind) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_get_field(kind->name, i, &field); i++) {
        if (strcmp(field.name, kind->operand) == 0) return field.words;
    }
    return NULL;
}

static int make_command(cli_command *to, const qkv_study_kind *kind, qkv_error *err) {
    const size_t settings = offsetof(study_args, study) + offsetof(cli_study, settings);
    option_list list = {.items = qkv_calloc(MOST_OPTIONS, sizeof *list.items)};
    if (!list.items) return qkv_fail_memory(err);
    add(&list, kind->n_models == 2 ? &two_models : &one_model);
    add_prompts(&list, kind);
    add_fields(&list, kind, QKV_FIELD_WORK, settings);
    if (takes_sources(kind)) ADD_ALL(&list, source_options);
    if (kind->has_cells)
        ADD_ALL(&list, cell_options);
    else if (kind->resumes)
        add_fields(&list, kind, QKV_FIELD_INPUT, settings);
    add_fields(&list, kind, QKV_FIELD_LOOK, settings);
    if (cli_study_is_figure(kind)) ADD_ALL(&list, figure_options);
    add_files(&list, kind);
    *to = (cli_command){.name = kind->command,
                        .summary = kind->title,
                        .synopsis = write_synopsis(kind),
                        .description = write_description(kind),
                        .options = list.items,
                        .n_options = list.n,
                        .defaults = &defaults,
                        .args_size = sizeof defaults,
                        .run = run_study,
                        .is_study = 1};
    if (kind->operand) {
        to->min_operands = to->max_operands = 1;
        to->operand = CLI_CHOICE;
        to->operand_words = words_of(kind);
    }
    return list.failed || !to->synopsis || !to->description ? qkv_fail_memory(err) : QKV_OK;
}

int cli_study_commands(const cli_command **out, size_t *n, qkv_error *err) {
    static cli_command commands[MOST_KINDS];
    const char *name;
    int status = QKV_OK;
    *out = commands;
    for (*n = 0; *n < MOST_KINDS && status == QKV_OK && (name = qkv_study_kind_name(*n)); ++*n) {
        qkv_study_kind kind = QKV_STUDY_KIND_INIT;
        status = qkv_study_get_kind(name, &kind, err);
        if (status == QKV_OK) status = make_command(&commands[*n], &kind, err);
    }
    return status;
}

int cli_study_add_look(cli_command *to, const cli_command *command, size_t settings_offset,
                       qkv_error *err) {
    qkv_study_kind kind = QKV_STUDY_KIND_INIT;
    option_list list = {.items = qkv_calloc(MOST_OPTIONS, sizeof *list.items)};
    int status = list.items ? qkv_study_get_kind("lens", &kind, err) : qkv_fail_memory(err);
    if (status != QKV_OK) return status;
    add_all(&list, command->options, command->n_options);
    add_fields(&list, &kind, QKV_FIELD_LOOK, settings_offset);
    *to = *command;
    to->options = list.items;
    to->n_options = list.n;
    return list.failed ? qkv_fail_memory(err) : QKV_OK;
}
