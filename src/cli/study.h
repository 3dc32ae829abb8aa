/*
 * Studies on the command line. Every kind of study is a command, made from the library's table of its fields
 * (study_commands.c); what a field can be is read and checked by the library. What is the program's own: models,
 * prompts, files, threads (study.c).
 */
#ifndef QKV_CLI_STUDY_H
#define QKV_CLI_STUDY_H

#include <string.h>

#include "cli/inputs.h"
#include "qkv/study.h"

/* What all that make studies have in common. */
typedef struct cli_study {
    cli_list settings; /* fields that were given, by their number; of a flag the value is NULL */
    cli_list outputs;
    const char *format; /* of -o - */
    int json;
    int64_t threads, memory;
} cli_study;

/* clang-format off: one option to a line or two */
#define CLI_STUDY_OPTION(type, letter, name, value, kind, field, tag, least, most, help)           \
    {                                                                                              \
        letter, name, value, help, kind, offsetof(type, study) + offsetof(cli_study, field), tag,  \
            least, most                                                                            \
    }
/* The type needs the field `cli_study study`. The look comes from the library's table: cli_study_commands. */
#define CLI_STUDY_OPTIONS(type)                                                                    \
    CLI_STUDY_OPTION(type, 't', "threads", "N", CLI_INTEGER, threads, 0, 0, 1024,                  \
                     "threads to compute with (default 0: all cores)"),                            \
        CLI_STUDY_OPTION(type, 0, "memory", "MIB", CLI_INTEGER, memory, 0, 1, 1 << 24,             \
                         "memory for maps, batches and the kept baseline (default 256)"),          \
        CLI_STUDY_OPTION(type, 0, "json", NULL, CLI_FLAG, json, 1, 0, 0,                           \
                         "print all tables as JSON"),                                              \
        CLI_STUDY_OPTION(                                                                          \
            type, 'o', "output", "OUT", CLI_PATHS, outputs, 0, 0, 0,                               \
            "file for a picture (.png, .svg, .pdf), a page whose cells open (.html), "             \
            "a table (.csv) or all tables (.json, .sqlite); '-' for standard output; "             \
            "OUT:NAME names the picture or table that it holds, e.g. "                             \
            "heads.png:heads; may be repeated"),                                                   \
        CLI_STUDY_OPTION(type, 0, "format", "png|svg|pdf|html|csv|json|sqlite", CLI_TEXT, format,  \
                         0, 0, 0, "what -o - writes (default csv)")
/* clang-format on */

/* A command for each kind of study. They live as long as the program. */
int cli_study_commands(const cli_command **out, size_t *n, qkv_error *err);
/* A command with options of its own and, after them, those of the look of studies: settings of kind "lens", whose
 * look is that of all. */
int cli_study_add_look(cli_command *to, const cli_command *command, size_t settings_offset,
                       qkv_error *err);

/* What a study is made from. */
typedef struct cli_study_job {
    qkv_study *study;
    const char *kind;
    const cli_study *how;
    const char *settings_kind; /* whose fields the settings are numbered by; NULL: `kind` */
    const char *models[2];     /* the second: of a comparison; NULL: the default one */
    const cli_list *prompts;   /* NULL: none */
    int parse_special;
    const cli_chat *chat;    /* NULL: none */
    const cli_list *sources; /* what edits name, CLI_SOURCE_OPTIONS; NULL: none */
    const char *shard;       /* "2/8"; NULL: all */
    int explain;             /* say what there is to do, and do nothing */
    int64_t generate; /* tokens that the model first adds to the prompts of a figure; 0: none */
} cli_study_job;

/* Is it drawn, with nothing to print? */
static inline int cli_study_is_figure(const qkv_study_kind *kind) {
    return strncmp(kind->command, "figure ", 7) == 0;
}

/* Sets the fields that were given, as usage errors where they cannot be. */
int cli_study_set(qkv_study *study, const char *kind, const cli_list *settings, qkv_error *err);
/* A field that is the text of a file. */
int cli_study_set_file(qkv_study *study, const char *name, const char *path, qkv_error *err);
/* Prints the table with this name; NULL: those that are the answer in short. study_print.c */
int cli_study_print(const qkv_study *study, const char *name, qkv_error *err);
/* Checks, opens, computes, prints and writes. */
int cli_study_run(const cli_call *call, const cli_study_job *job, qkv_error *err);

#endif
