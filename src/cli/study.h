/*
 * What the commands of studies share: options of files and of the look, and the way from options to a
 * printed table. A command turns its own options into JSON and hands it over:
 *
 *     typedef struct lens_args { cli_study study; const char *model; ...; } lens_args;
 *     static const cli_option options[] = {CLI_MODEL_OPTION(lens_args), CLI_PROMPT_OPTIONS(lens_args), ...,
 *                                          CLI_STUDY_OPTIONS(lens_args)};
 *
 *     static int run_lens(const cli_call *call, qkv_error *err) {
 *         const lens_args *args = call->args;
 *         cli_study_job job = {.kind = "lens", .how = &args->study, .model = args->model,
 *                              .prompts = &args->prompts, .parse_special = args->parse_special,
 *                              .chat = &args->chat, .options = json_object()};
 *         cli_study_set_text(&job, "answer", args->answer);
 *         cli_study_set_number(&job, "top", args->top);
 *         return cli_study_run(call, &job, err);
 *     }
 */
#ifndef QKV_CLI_STUDY_H
#define QKV_CLI_STUDY_H

#include "cli/inputs.h"
#include "qkv/study.h"

typedef struct cli_study {
    cli_print print;
    cli_list outputs;
    const char *format; /* of -o - */
    const char *picture, *table, *title;
    double dpi;   /* 0: not given */
    int colormap; /* CLI_AUTO: not given */
    int json, no_recipe;
    int64_t threads, memory;
} cli_study;

#define CLI_STUDY_DEFAULTS                                                                         \
    { .print = CLI_PRINT_DEFAULTS, .colormap = CLI_AUTO }

#define CLI_STUDY_FORMATS "png|svg|pdf|csv|json|sqlite"

/* clang-format off: one option to a line or two */
#define CLI_STUDY_OPTION(type, name, value, kind, field, tag, least, most, help)                   \
    {                                                                                              \
        0, name, value, help, kind, offsetof(type, study) + offsetof(cli_study, field), tag,       \
            least, most                                                                            \
    }
/* The type needs the field `cli_study study`. */
#define CLI_STUDY_OPTIONS(type)                                                                       \
    CLI_STUDY_OPTION(type, "picture", "NAME", CLI_TEXT, picture, 0, 0, 0,                             \
                     "which picture -o draws (default: the first)"),                                  \
        CLI_STUDY_OPTION(type, "table", "NAME", CLI_TEXT, table, 0, 0, 0,                             \
                         "which table is printed and written as CSV (default: the first)"),           \
        CLI_STUDY_OPTION(type, "title", "TEXT", CLI_TEXT, title, 0, 0, 0,                             \
                         "title below the picture; *text* is italic, '' is none"),                    \
        CLI_STUDY_OPTION(type, "colormap", "coolwarm|viridis|cividis|magma|grey", CLI_CHOICE,         \
                         colormap, 0, 0, 0, "colours of a heatmap"),                                  \
        CLI_STUDY_OPTION(type, "dpi", "N", CLI_REAL, dpi, 0, 10, 2400,                                \
                         "resolution of a PNG (default 150)"),                                        \
        CLI_PRINT_OPTIONS_AT(type, study.print),                                                      \
        CLI_STUDY_OPTION(type, "no-recipe", NULL, CLI_FLAG, no_recipe, 1, 0, 0,                       \
                         "leave out of files how they were made"),                                    \
        {'t',         "threads",                                                                      \
         "N",         "threads to compute with (default 0: all cores)",                               \
         CLI_INTEGER, offsetof(type, study.threads),                                                  \
         0,           0,                                                                              \
         1024},                                                                                       \
        CLI_STUDY_OPTION(type, "memory", "MIB", CLI_INTEGER, memory, 0, 1, 1 << 24,                   \
                         "memory for maps, batches and the kept baseline (default 256)"),             \
        CLI_STUDY_OPTION(type, "json", NULL, CLI_FLAG, json, 1, 0, 0, "print all tables as JSON"),    \
        {'o',                                                                                         \
         "output",                                                                                    \
         "OUT",                                                                                       \
         "file for a picture (.png, .svg, .pdf), a table (.csv) or all tables (.json, .sqlite); '-' " \
         "for standard output; may be repeated",                                                      \
         CLI_PATHS,                                                                                   \
         offsetof(type, study.outputs),                                                               \
         0,                                                                                           \
         0,                                                                                           \
         0},                                                                                          \
        CLI_STUDY_OPTION(type, "format", CLI_STUDY_FORMATS, CLI_TEXT, format, 0, 0, 0,                \
                         "what -o - writes")
/* clang-format on */

typedef struct cli_study_job {
    const char *kind;
    const cli_study *how;
    const char *model;
    const char *other;       /* the second model of a comparison; NULL: none */
    int two_models;          /* there is a second one, the default model where `other` is NULL */
    const cli_list *prompts; /* NULL: the kind takes none */
    size_t default_prompts;  /* so many of the library's own where none is given; 0: an error */
    int parse_special;
    const cli_chat *chat;     /* NULL: none */
    json_t *options;          /* taken */
    const char *const *names; /* of the prompts, in their order; NULL: none */
    const char *results;      /* what is computed is kept there; NULL: nowhere */
    int shows_progress;       /* it may take long */
} cli_study_job;

/* Options that were given: a NULL text, a 0 and CLI_AUTO are left out. */
void cli_study_set_text(cli_study_job *job, const char *name, const char *value);
void cli_study_set_number(cli_study_job *job, const char *name, double value);
void cli_study_set_flag(cli_study_job *job, const char *name, int value);
/* The word number `value` of "one|two". */
void cli_study_set_word(cli_study_job *job, const char *name, const char *words, int value);

/* Checks, opens, computes, prints and writes. */
int cli_study_run(const cli_call *call, cli_study_job *job, qkv_error *err);

/* The parts, for commands that make their study in another way. */
int cli_study_check(const cli_study *how, qkv_error *err);
/* Prints it, and writes its files. */
int cli_study_show(const qkv_study *study, const cli_study *how, qkv_error *err);

#endif
