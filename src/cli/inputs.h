/*
 * What commands have in common: which model, which prompt, which output files.
 */
#ifndef QKV_CLI_INPUTS_H
#define QKV_CLI_INPUTS_H

#include "base/json.h"
#include "base/prompt.h"
#include "cli/cli.h"
#include "qkv/edit_data.h"
#include "qkv/hub.h"
#include "qkv/session.h"

/* ---- the model: locate.c ---- */

#define CLI_MODEL_OPTION(type)                                                                                                                                  \
    {                                                                                                                                                           \
        'm', "model", "MODEL",                                                                                                                                  \
            "model: a GGUF file, a Hugging Face directory, or a name such as tinyllama or org/name:Q4_K_M (default: QKV_MODEL, or the model shipped with qkv)", \
            CLI_MODEL, offsetof(type, model), 0, 0, 0                                                                                                           \
    }

/* Where the model is that was given, or that QKV_MODEL gives, or the default one: all may be paths
 * or names. */
int cli_model_find(qkv_model_place **out, const char *given, qkv_error *err);
/* Opens it. */
int cli_model_open(qkv_model **out, const char *given, qkv_error *err);
/* The path of the model that comes with the program; freed with free. */
int cli_default_model(char **out, qkv_error *err);

/* The path of a file in the folder of recipes; freed with free. */
int cli_recipe_find(char **out, const char *name, qkv_error *err);

/* ---- conversations: chat.c ---- */

typedef struct cli_chat {
    int on;
    const char *system;
    cli_list turns;
    const char *template_file;
    const char *date;
    int show; /* with or without a conversation */
    /* Of prompts that are texts, in a conversation or not. */
    const char
        *column; /* of the files of -f, which are then CSV; NULL: they have a prompt a line */
    const char *pattern; /* "Question: {}": what stands around every text; NULL: nothing */
} cli_chat;

/* clang-format off: one option to a line or two */
#define CLI_CHAT_OPTION(type, chat, name, value, kind, field, tag, help)                           \
    { 0, name, value, help, kind, offsetof(type, chat) + offsetof(cli_chat, field), tag, 0, 0 }
/* `chat` is the field of the type. */
#define CLI_CHAT_TABLE(type, chat)                                                                 \
    CLI_CHAT_OPTION(type, chat, "chat", NULL, CLI_FLAG, on, 1,                                     \
                    "prompts are a user's messages, written out as the model's chat template "     \
                    "says"),                                                                       \
        CLI_CHAT_OPTION(type, chat, "system", "TEXT", CLI_TEXT, system, 0,                         \
                        "the system's message of the chat"),                                       \
        CLI_CHAT_OPTION(                                                                           \
            type, chat, "turn", "ROLE=TEXT", CLI_LIST, turns, 0,                                   \
            "an earlier message of the chat: user=... or assistant=...; may be repeated"),         \
        CLI_CHAT_OPTION(type, chat, "template", "FILE", CLI_PATH, template_file, 0,                \
                        "another chat template than the model's"),                                 \
        CLI_CHAT_OPTION(type, chat, "date", "YYYY-MM-DD", CLI_TEXT, date, 0,                       \
                        "the date that the chat template is told (default today)"),                \
        CLI_CHAT_OPTION(type, chat, "show-prompt", NULL, CLI_FLAG, show, 1,                        \
                        "print what is fed, text and token ids, to standard error")
/* clang-format on */

/* A usage error for options that make no sense; needs no model. */
int cli_chat_check(const cli_chat *chat, qkv_error *err);
/* A usage error for a prompt that cannot be a message. */
int cli_chat_check_prompt(const cli_chat *chat, const qkv_own_prompt *prompt, qkv_error *err);
/* Writes the prompt's text out as the chat says (unless there is none), tokenizes it, and shows it
 * where asked to. */
int cli_chat_tokenize(const cli_chat *chat, qkv_own_prompt *prompt, const qkv_model *model,
                      unsigned flags, qkv_error *err);

/* ---- prompts: prompt.c ---- */

enum { CLI_PROMPT_TEXT, CLI_PROMPT_LINES, CLI_PROMPT_FILE, CLI_PROMPT_TOKENS };

/* clang-format off: one option to a line or two */
/* The fields of the type are a cli_list, an int and a cli_chat. */
#define CLI_PROMPT_TABLE(type, list, special, chat, text, lines)                                   \
    {'p', "prompt", "TEXT", text, CLI_LIST, offsetof(type, list), CLI_PROMPT_TEXT, 0, 0},          \
        {'f', "prompts", "FILE", lines, CLI_PATHS, offsetof(type, list), CLI_PROMPT_LINES, 0, 0},  \
        {0,                                                                                        \
         "file",                                                                                   \
         "FILE",                                                                                   \
         "a whole file as one prompt; '-' for standard input",                                     \
         CLI_PATHS,                                                                                \
         offsetof(type, list),                                                                     \
         CLI_PROMPT_FILE,                                                                          \
         0,                                                                                        \
         0},                                                                                       \
        {0,                                                                                        \
         "tokens",                                                                                 \
         "IDS",                                                                                    \
         "a prompt as token ids, e.g. 1,2,3; fed as they are",                                     \
         CLI_LIST,                                                                                 \
         offsetof(type, list),                                                                     \
         CLI_PROMPT_TOKENS,                                                                        \
         0,                                                                                        \
         0},                                                                                       \
        {0,        "parse-special",                                                                \
         NULL,     "names of special tokens in prompts become those tokens",                       \
         CLI_FLAG, offsetof(type, special),                                                        \
         1,        0,                                                                              \
         0},                                                                                       \
        CLI_CHAT_OPTION(type, chat, "column", "NAME", CLI_TEXT, column, 0,                         \
                        "files of -f are CSV, and this column has the prompts"),                   \
        CLI_CHAT_OPTION(type, chat, "prompt-template", "TEXT", CLI_TEXT, pattern, 0,               \
                        "what stands around every prompt, {} being the prompt: 'Question: {}'"),   \
        CLI_CHAT_TABLE(type, chat)
/* clang-format on */

/* For commands that take one prompt, or several. The type needs the fields `cli_list prompts`,
 * `int parse_special` and `cli_chat chat`. */
#define CLI_PROMPT_OPTIONS(type)                                                                   \
    CLI_PROMPT_TABLE(type, prompts, parse_special, chat, "the prompt",                             \
                     "the prompt from a file of one line; '-' for standard input")
#define CLI_PROMPTS_OPTIONS(type)                                                                  \
    CLI_PROMPT_TABLE(type, prompts, parse_special, chat, "a prompt; may be repeated",              \
                     "prompts from a file, one per line; '-' for standard input")

#define CLI_THREADS_OPTION(type)                                                                   \
    {                                                                                              \
        't', "threads", "N", "threads to compute with (default 0: all cores)", CLI_INTEGER,        \
            offsetof(type, threads), 0, 0, 1024                                                    \
    }

#define CLI_MEMORY_OPTION(type)                                                                    \
    {                                                                                              \
        0, "memory", "MIB", "memory for maps, batches and the kept baseline (default 256)",        \
            CLI_INTEGER, offsetof(type, memory), 0, 1, 1 << 24                                     \
    }

/* ---- work that can be stopped: signals.c ---- */

/* Stops the work when the program was asked to end. */
const qkv_progress *cli_progress(void);

/* ---- sessions: session.c ---- */

/* One whose work can be stopped. */
int cli_session_new(qkv_session **out, const qkv_model *model, const qkv_session_options *options,
                    qkv_error *err);
/* Frees it; --verbose says what it computed. */
void cli_session_free(qkv_session *session);

/* How a session computes, as the options say. */
static inline qkv_session_options cli_session_options(int64_t threads, int64_t mebibytes) {
    return (qkv_session_options){.size = sizeof(qkv_session_options),
                                 .n_threads = (int32_t)threads,
                                 .memory_budget = (size_t)mebibytes << 20};
}

#define CLI_JSON_OPTION(type)                                                                      \
    { 0, "json", NULL, "print JSON", CLI_FLAG, offsetof(type, json), 1, 0, 0 }

/* Reads a text, a whole file or ids; needs no model, so that mistakes show before one is loaded. */
int cli_prompt_load(qkv_own_prompt *prompt, const cli_item *item, qkv_error *err);
/* Fills the tokens, unless they were given. */
int cli_prompt_tokenize(qkv_own_prompt *prompt, const qkv_model *model, unsigned flags,
                        qkv_error *err);

/* All prompts that were given, in their order: every line of a file given with -f is one, unless it
 * is empty. They are checked to fit the chat. Release them also after a failure. */
int cli_prompts_load(qkv_own_prompts *prompts, const cli_list *given, const cli_chat *chat,
                     qkv_error *err);
int cli_prompts_add(qkv_own_prompts *prompts, const cli_item *item, qkv_error *err);
/* The library's own texts, at most so many. */
int cli_prompts_add_default(qkv_own_prompts *prompts, size_t most, qkv_error *err);
/* A usage error where there is not exactly one. */
int cli_prompts_check_one(const qkv_own_prompts *prompts, const cli_list *given, qkv_error *err);
/* Fills the tokens; in a chat the texts become what the model's template makes of them. */
int cli_prompts_tokenize(qkv_own_prompts *prompts, const cli_chat *chat, const qkv_model *model,
                         unsigned flags, qkv_error *err);

/* ---- what edits name: prompts to patch from, a set of prompts, and vectors: source.c ---- */

enum { CLI_SOURCE_TEXT, CLI_SOURCE_TOKENS, CLI_SOURCE_SET };

/* The type needs the field `cli_list sources`. */
#define CLI_SOURCE_OPTIONS(type)                                                                   \
    {0,                                                                                            \
     "source",                                                                                     \
     "NAME=TEXT",                                                                                  \
     "the prompt that patch:NAME takes its values from; NAME=@FILE reads a file",                  \
     CLI_NAMED,                                                                                    \
     offsetof(type, sources),                                                                      \
     CLI_SOURCE_TEXT,                                                                              \
     0,                                                                                            \
     0},                                                                                           \
        {0,        "source-tokens",         "NAME=IDS",        "the same, as token ids",           \
         CLI_LIST, offsetof(type, sources), CLI_SOURCE_TOKENS, 0,                                  \
         0},                                                                                       \
    {                                                                                              \
        0, "set-prompts", "FILE",                                                                  \
            "prompts that mean:set and patch:resample are about, read as by -f; may be repeated",  \
            CLI_PATHS, offsetof(type, sources), CLI_SOURCE_SET, 0, 0                               \
    }

typedef struct cli_source {
    char *name;
    qkv_own_prompt prompt;
} cli_source;

typedef struct cli_sources {
    cli_source *items;
    size_t n;
    qkv_own_prompts set;
    qkv_edit_data *data; /* vectors that edits take from files, and the set once it has tokens */
} cli_sources;

/* Release the sources also after a failure. */
int cli_sources_load(cli_sources *sources, const cli_list *given, const cli_chat *chat,
                     qkv_error *err);
/* Reads the vectors that the n lists of edits take from files. A usage error names the first source
 * that no edit uses, or the set. */
int cli_sources_take_edits(cli_sources *sources, const cli_list *const *edits, size_t n,
                           qkv_error *err);
/* Texts are messages of the chat as prompts are. */
int cli_sources_tokenize(cli_sources *sources, const cli_chat *chat, const qkv_model *model,
                         unsigned flags, qkv_error *err);
/* Names them in the plan. */
int cli_sources_add(const cli_sources *sources, qkv_plan *plan, qkv_error *err);
void cli_sources_release(cli_sources *sources);

/* Names and tokens as the library's options take them. */
typedef struct cli_source_lists {
    const char **names;
    const int32_t **tokens;
    size_t *lengths;
} cli_source_lists;

/* Release the lists also after a failure. */
int cli_source_lists_make(cli_source_lists *lists, const cli_sources *sources, qkv_error *err);
void cli_source_lists_release(cli_source_lists *lists);

/* ---- output files: outputs.c ---- */

/* The type needs the fields `cli_list outputs` and `const char *format`. */
#define CLI_OUTPUT_OPTIONS(type, what, formats)                                                    \
    {'o',       "output",                                                                          \
     "OUT",     what "; '-' for standard output; may be repeated",                                 \
     CLI_PATHS, offsetof(type, outputs),                                                           \
     0,         0,                                                                                 \
     0},                                                                                           \
    {                                                                                              \
        0, "format", formats, "what -o - writes", CLI_TEXT, offsetof(type, format), 0, 0, 0        \
    }

/* Every path has one of the suffixes (a list such as "png|svg|pdf") and none comes twice: usage
 * errors. */
int cli_outputs_check_names(const cli_list *outputs, const char *suffixes, qkv_error *err);
/* The same where "-" is standard output, in the format that --format gave, or else `usual`; where
 * both are NULL the format has to be given. A binary format does not go to a terminal. */
int cli_outputs_check(const cli_list *outputs, const char *suffixes, const char *format,
                      const char *usual, qkv_error *err);
/* Is it standard output? */
int cli_is_stdout(const char *path);
/* Does one of them go there? */
int cli_outputs_have_stdout(const cli_list *outputs);
/* Is one of them of this format, a suffix? */
int cli_outputs_have(const cli_list *outputs, const char *format, const char *wanted);
/* A format that a terminal cannot show, for standard output: a usage error where that is one. */
int cli_stdout_check(const char *format, qkv_error *err);
/* Writes rendered bytes to standard output, unless rendering failed, and frees them; returns the
 * status of rendering. main.c tells when standard output fails. */
int cli_print_bytes(int status, char *bytes, size_t n_bytes);
/* Every path but standard output can be written: before the long work, not after it. */
int cli_outputs_check_writable(const cli_list *outputs, qkv_error *err);

/* The words of the command line as recipes show them; of names of files the last part alone: files
 * that are handed on must not tell where on somebody's machine things lie. As many as call->argc, and
 * NULL after them. Free them also after a failure. */
int cli_command_words(const cli_call *call, char ***words, qkv_error *err);
void cli_command_words_free(char **words);
/* Prints a text that came with a file as one line, control characters as their escapes. */
void cli_print_line(const char *text);
/* Prints JSON to standard output, or says that memory ran short (json may be NULL); frees it. */
int cli_print_json(json_t *json, qkv_error *err);

/* ---- what goes into print: outputs.c ---- */

/* Options of everything that is drawn. */
typedef struct cli_print {
    int text; /* CLI_AUTO: not given */
    const char *font;
    double width; /* points; 0: not given */
    int no_notes;
    double font_size; /* points; 0: not given */
} cli_print;

#define CLI_PRINT_DEFAULTS                                                                         \
    { .text = CLI_AUTO }

/* clang-format off: one option to a line or two */
/* `print` is the field of the type; usually it has this name. */
#define CLI_PRINT_OPTIONS_AT(args, print)                                                           \
    {0,                                                                                             \
     "text",                                                                                        \
     "paths|text",                                                                                  \
     "letters as outlines, which look the same everywhere, or as text, which can be searched and "  \
     "edited (default: text in a PDF, which brings its fonts along; paths in an SVG)",              \
     CLI_CHOICE,                                                                                    \
     offsetof(args, print) + offsetof(cli_print, text),                                             \
     0,                                                                                             \
     0,                                                                                             \
     0},                                                                                            \
        {0,        "font",                                                                          \
         "FAMILY", "family of the letters (default DejaVu Sans)",                                   \
         CLI_TEXT, offsetof(args, print) + offsetof(cli_print, font),                               \
         0,        0,                                                                               \
         0},                                                                                        \
        {0,                                                                                         \
         "width",                                                                                   \
         "LENGTH",                                                                                  \
         "width of the page, e.g. 85mm, 8.5cm, 3.3in or 240pt; letters keep 5 points at least",     \
         CLI_LENGTH,                                                                                \
         offsetof(args, print) + offsetof(cli_print, width),                                        \
         0,                                                                                         \
         1,                                                                                         \
         14400},                                                                                    \
        {0,                                                                                         \
         "font-size",                                                                               \
         "POINTS",                                                                                  \
         "size of the names of axes; other letters in proportion, none below 5 points (default 8, " \
         "or what --width allows)",                                                                 \
         CLI_REAL,                                                                                  \
         offsetof(args, print) + offsetof(cli_print, font_size),                                    \
         0,                                                                                         \
         5,                                                                                         \
         72},                                                                                       \
    {                                                                                               \
        0, "no-notes", NULL, "leave out the small print", CLI_FLAG,                                 \
            offsetof(args, print) + offsetof(cli_print, no_notes), 1, 0, 0                          \
    }
#define CLI_PRINT_OPTIONS(args) CLI_PRINT_OPTIONS_AT(args, print)
/* clang-format on */

/* Options of a drawing without a drawing to have them, or of text without a file that has any;
 * `format` is that of -o -. */
int cli_print_check(const cli_print *print, const cli_list *outputs, const char *format,
                    qkv_error *err);

#endif
