/*
 * The frame of the command-line program: commands, their option tables, and what a run is given.
 *
 * A command is one const entry above one function. Its option table drives parsing, `--help` and
 * the manual page; options write into the command's own argument struct by offset. Statuses are
 * the library's, and CLI_USAGE for a command line that makes no sense; main.c alone prints them:
 *
 *     qkv run: unknown option --foo ...     CLI_USAGE, exit 2
 *     qkv: cannot open model.gguf: ...      anything else, exit 1
 */
#ifndef QKV_CLI_H
#define QKV_CLI_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/nearest.h"
#include "base/text.h"

/* Positive, so that it is none of the library's statuses. */
enum { CLI_USAGE = 1 };

#define cli_usage(err, ...) qkv_fail(err, CLI_USAGE, __VA_ARGS__)

/* X(kind, type of the field it writes) */
#define CLI_KIND_LIST(X)                                                                           \
    X(FLAG, int)          /* no value; writes the option's tag */                                  \
    X(TEXT, const char *) /* any text */                                                           \
    X(PATH, const char *) /* the name of a file: see cli_command_words */                          \
    X(MODEL,                                                                                       \
      const char *)     /* the same, or the name of a model, which tells nothing about places */   \
    X(LIST, cli_list)   /* any text, any number of times */                                        \
    X(PATHS, cli_list)  /* names of files */                                                       \
    X(MODELS, cli_list) /* of files or of models */                                                \
    X(NAMED, cli_list)  /* NAME=TEXT or NAME=@FILE, any number of times */                         \
    X(INTEGER, int64_t) /* min to max */                                                           \
    X(REAL, double)     /* min to max */                                                           \
    X(LENGTH, double)   /* 85mm, 8.5cm, 3.3in or 240pt, in points; min to max */                   \
    X(CHOICE, int)      /* one of the words of `value`, written as its number */

#define CLI_KIND_ENUM(kind, type) CLI_##kind,
typedef enum cli_kind { CLI_KIND_LIST(CLI_KIND_ENUM) CLI_KIND_COUNT } cli_kind;
#undef CLI_KIND_ENUM

#define CLI_AUTO (-1)

/* In a tag: the option is the library's, which reads and checks its text. The field is a cli_list, to which the
 * text is added (NULL for a flag) with the rest of the tag. */
#define CLI_AS_TEXT (1 << 20)

typedef struct cli_option {
    char letter; /* 0 = long form only */
    const char *name;
    const char *value; /* how help calls the value; for CLI_CHOICE "one|two|three" */
    const char *help;
    cli_kind kind;
    size_t offset; /* of the field in the command's argument struct */
    int tag;       /* what a flag writes; what an item of a list remembers; CLI_AS_TEXT */
    double min, max;
} cli_option;

typedef struct cli_item {
    const char *value;
    int tag;
} cli_item;

typedef struct cli_list {
    cli_item *items;
    size_t n;
    size_t capacity;
} cli_list;

typedef struct cli_command cli_command;

/* What a command is called with. */
typedef struct cli_call {
    const cli_command *command;
    const void *args; /* the command's argument struct */
    const char *const *operands;
    size_t n_operands;
    int argc; /* the whole command line */
    char **argv;
    const char *const *paths; /* where in it the names of files begin */
    size_t n_paths;
} cli_call;

struct cli_command {
    const char *name;        /* "run", "figure modify" */
    const char *summary;     /* one line, lower case, no full stop */
    const char *synopsis;    /* what follows the name; alternatives one to a line */
    const char *description; /* paragraphs; lines that start with a space are kept as they are */
    const cli_option *options;
    size_t n_options;
    const void *defaults; /* an argument struct */
    size_t args_size;
    size_t min_operands, max_operands;
    cli_kind
        operand; /* what operands are, for completion: CLI_PATH, CLI_CHOICE; CLI_FLAG: any text */
    const char *operand_words; /* of CLI_CHOICE: "one|two" */
    int (*run)(const cli_call *call, qkv_error *err);
    /* Help about its first operand, where that was given before --help; NULL: there is none. */
    int (*help)(const char *operand, qkv_error *err);
    int is_study; /* made from the library's table: study_commands.c */
};

/* Options that every command has. */
typedef struct cli_common {
    int quiet, verbose;
} cli_common;

extern const cli_option cli_common_options[];
extern const size_t cli_n_common_options;

/* Another name that an option has in every command, or NULL: --eps is --epsilon. */
const char *cli_option_alias(const cli_option *option);

#define CLI_OPTIONS(table) .options = (table), .n_options = sizeof(table) / sizeof *(table)
#define CLI_ARGS(values) .defaults = &(values), .args_size = sizeof(values)

/* Starts the program anew, unless the environment says already how long threads wait for each
 * other: wait_policy.c. */
void cli_set_wait_policy(char **argv);

/* Signals that end the program remove its temporary files first: signals.c. The second ends it so. */
void cli_catch_signals(void);
void cli_end_by_signal(int number);
/* From now on the first SIGINT or SIGTERM asks the work to stop, and ends the program where it has
 * not heard within a second. */
void cli_hear_signals(void);
/* The signal that asks the work to stop, or 0. Asking is hearing. */
int cli_stop_asked(void);
/* After that the program ends by that signal in two seconds, if it has not ended in order by then. */
void cli_end_soon(void);
/* From now on a fault that no function can return ends the program with one line: faults.c. */
void cli_catch_faults(void);

/* ---- parsing: options.c ---- */

typedef struct cli_parsed {
    void *args;
    const char **operands;
    size_t n_operands, capacity;
    const char **paths; /* into argv: names of files, and operands */
    size_t n_paths, paths_capacity;
    cli_common common;
    int help;          /* --help was given: nothing else counts */
    uint64_t given[2]; /* the options that were, by their place in the command's list */
} cli_parsed;

/* Reads argv[0..argc) after the command's name. Release the result also after a failure. */
int cli_parse(cli_parsed *parsed, const cli_command *command, int argc, char **argv,
              qkv_error *err);
void cli_parsed_release(cli_parsed *parsed, const cli_command *command);

/* The value of --range: "LO,HI". */
int cli_parse_range(const char *range, double *low, double *high, qkv_error *err);

/* ---- messages of the library: field_names.c ---- */

/* The library names fields of its options between backquotes: `skip_keys` becomes --skip-keys.
 * Returns the status; does nothing to QKV_OK. */
int cli_name_fields(int status, qkv_error *err);
/* The same for any text, appended. */
void cli_append_named(qkv_text *out, const char *message);

/* ---- the commands: main.c ---- */

extern const cli_command *const *cli_commands;
extern size_t cli_n_commands;

/* The command that words[0] (and words[1], for a figure) name; *used says how many words that
 * took. NULL when there is none. */
const cli_command *cli_find(const char *const *words, size_t n, size_t *used);
/* 1 when `word` is the first word of commands of two. */
int cli_is_group(const char *word);
/* The usage error of a word that names no command, of a group ("figure") or, for NULL, of none. */
int cli_fail_command(const char *group, const char *word, qkv_error *err);
/* Tries the names of all commands, or of those of a group. */
void cli_nearest_command(qkv_nearest *near, const char *group);

/* ---- help: manual.c ---- */

void cli_print_overview(void);
void cli_print_group(const char *group);
void cli_print_help(const cli_command *command);
void cli_print_notation(void);
/* The page of one command, or of the program (NULL), as roff. */
void cli_print_manual(const cli_command *command);
/* The names of all commands, one to a line. */
void cli_print_names(void);
/* One paragraph, wrapped and indented. */
void cli_print_paragraph(const char *text, size_t indent);

#endif
