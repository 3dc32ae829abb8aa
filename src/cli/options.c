/*
 * The parser of every command: `--name VALUE`, `--name=VALUE`, `-x VALUE`, `-xVALUE`, `--`.
 *
 * Operands may stand between options. An option given twice keeps its last value, a list keeps all
 * of them in order. No abbreviations: a script must not change its meaning when an option is added.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "cli/cli.h"
#include "qkv/hub.h"

typedef int (*value_reader)(const cli_option *option, void *field, const char *value,
                            qkv_error *err);

static int fail_value(const cli_option *option, const char *value, const char *wanted,
                      qkv_error *err) {
    return cli_usage(err, "--%s wants %s, not '%s'", option->name, wanted, value);
}

static int read_flag(const cli_option *option, void *field, const char *value, qkv_error *err) {
    (void)value;
    (void)err;
    *(int *)field = option->tag;
    return QKV_OK;
}

static int read_text(const cli_option *option, void *field, const char *value, qkv_error *err) {
    (void)option;
    (void)err;
    *(const char **)field = value;
    return QKV_OK;
}

static int read_list(const cli_option *option, void *field, const char *value, qkv_error *err) {
    cli_list *list = field;
    const cli_item item = {value, option->tag & ~CLI_AS_TEXT};
    if (!QKV_PUSH(list->items, list->capacity, list->n, item)) return qkv_fail_memory(err);
    return QKV_OK;
}

static int read_integer(const cli_option *option, void *field, const char *value, qkv_error *err) {
    int64_t number;
    if (!qkv_parse_int(value, strlen(value), &number) || (double)number < option->min ||
        (double)number > option->max) {
        char wanted[96];
        qkv_format(wanted, sizeof wanted, "a whole number from %.0f to %.0f", option->min,
                   option->max);
        return fail_value(option, value, wanted, err);
    }
    *(int64_t *)field = number;
    return QKV_OK;
}

static int read_real(const cli_option *option, void *field, const char *value, qkv_error *err) {
    double number;
    if (!qkv_parse_double(value, strlen(value), &number) || !isfinite(number) ||
        number < option->min || number > option->max) {
        char wanted[96];
        qkv_format(wanted, sizeof wanted, "a number from %g to %g", option->min, option->max);
        return fail_value(option, value, wanted, err);
    }
    *(double *)field = number;
    return QKV_OK;
}

static int read_length(const cli_option *option, void *field, const char *value, qkv_error *err) {
    static const struct {
        const char *name;
        double points;
    } units[] = {{"mm", 72 / 25.4}, {"cm", 720 / 25.4}, {"in", 72}, {"pt", 1}};
    const size_t length = strlen(value);
    double number;
    for (size_t i = 0; length > 2 && i < sizeof units / sizeof *units; i++) {
        if (strcmp(value + length - 2, units[i].name) != 0) continue;
        if (!qkv_parse_double(value, length - 2, &number)) break;
        number *= units[i].points;
        if (!(number >= option->min && number <= option->max)) break;
        *(double *)field = number;
        return QKV_OK;
    }
    char wanted[96];
    qkv_format(wanted, sizeof wanted, "a length such as 85mm, 8.5cm, 3.3in or 240pt, up to %gpt",
               option->max);
    return fail_value(option, value, wanted, err);
}

static void try_span(qkv_nearest *near, const char *name, size_t length) {
    char word[QKV_NEAREST_SIZE];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    qkv_nearest_try(near, word);
}

/* Which of the words between bars it is; -1 and the nearest one where it is none. */
static int find_word(const char *words, const char *value, qkv_nearest *near) {
    const size_t length = strlen(value);
    *near = qkv_nearest_of(value, length);
    for (int number = 0; *words; number++) {
        const size_t n = strcspn(words, "|");
        if (n == length && memcmp(words, value, n) == 0) return number;
        try_span(near, words, n);
        words += n + (words[n] == '|');
    }
    return -1;
}

static int read_choice(const cli_option *option, void *field, const char *value, qkv_error *err) {
    qkv_nearest near;
    const int number = find_word(option->value, value, &near);
    if (number >= 0) {
        *(int *)field = number;
        return QKV_OK;
    }
    return cli_usage(err, "--%s wants %s, not '%s'%s", option->name, option->value, value,
                     qkv_nearest_hint(&near));
}

int cli_parse_range(const char *range, double *low, double *high, qkv_error *err) {
    const char *comma = strchr(range, ',');
    if (!comma || !qkv_parse_double(range, (size_t)(comma - range), low) ||
        !qkv_parse_double(comma + 1, strlen(comma + 1), high) || !isfinite(*low) ||
        !isfinite(*high) || *low >= *high) {
        return cli_usage(err, "--range wants two numbers LO,HI with LO below HI, not '%s'", range);
    }
    return QKV_OK;
}

static const value_reader readers[] = {
    [CLI_FLAG] = read_flag,   [CLI_TEXT] = read_text,     [CLI_PATH] = read_text,
    [CLI_MODEL] = read_text,  [CLI_LIST] = read_list,     [CLI_PATHS] = read_list,
    [CLI_MODELS] = read_list, [CLI_NAMED] = read_list,    [CLI_INTEGER] = read_integer,
    [CLI_REAL] = read_real,   [CLI_LENGTH] = read_length, [CLI_CHOICE] = read_choice,
};
_Static_assert(sizeof readers / sizeof *readers == CLI_KIND_COUNT, "one reader for every kind");

static int is_list(const cli_option *option) {
    return option->kind == CLI_LIST || option->kind == CLI_PATHS || option->kind == CLI_MODELS ||
           option->kind == CLI_NAMED;
}

/* Where in an option's value the name of a file begins; NULL: it has none. */
static const char *path_in(const cli_option *option, const char *value) {
    if (option->kind == CLI_PATH || option->kind == CLI_PATHS) return value;
    if (option->kind == CLI_MODEL || option->kind == CLI_MODELS)
        return qkv_model_is_name(value) ? NULL : value;
    const char *equals = option->kind == CLI_NAMED ? strchr(value, '=') : NULL;
    return equals && equals[1] == '@' ? equals + 2 : NULL;
}

static int note_path(cli_parsed *parsed, const char *path, qkv_error *err) {
    return QKV_PUSH(parsed->paths, parsed->paths_capacity, parsed->n_paths, path)
               ? QKV_OK
               : qkv_fail_memory(err);
}

/* ---- what every command has ---- */

const cli_option cli_common_options[] = {
    {'q', "quiet", NULL, "only errors on standard error: no notices, warnings or progress",
     CLI_FLAG, offsetof(cli_common, quiet), 1, 0, 0},
    {'v', "verbose", NULL, "say also which model is used, what is computed and how long it takes",
     CLI_FLAG, offsetof(cli_common, verbose), 1, 0, 0},
};
const size_t cli_n_common_options = sizeof cli_common_options / sizeof *cli_common_options;

/* Two names of one option, wherever there is one of them. */
static const struct { const char *name, *alias; } aliases[] = {{"epsilon", "eps"}};

const char *cli_option_alias(const cli_option *option) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        if (strcmp(option->name, aliases[i].name) == 0) return aliases[i].alias;
        if (strcmp(option->name, aliases[i].alias) == 0) return aliases[i].name;
    }
    return NULL;
}

/* ---- finding options ---- */

static int is_named(const char *candidate, const char *name, size_t length) {
    return candidate && strlen(candidate) == length && memcmp(candidate, name, length) == 0;
}

static const cli_option *find_in(const cli_option *options, size_t n, const char *name,
                                 size_t length) {
    for (size_t i = 0; i < n; i++) {
        if (is_named(options[i].name, name, length) ||
            is_named(cli_option_alias(&options[i]), name, length))
            return &options[i];
    }
    return NULL;
}

static const cli_option *find_long(const cli_command *command, const char *name, size_t length) {
    const cli_option *found = find_in(command->options, command->n_options, name, length);
    return found ? found : find_in(cli_common_options, cli_n_common_options, name, length);
}

static const cli_option *find_letter(const cli_option *options, size_t n, char letter) {
    for (size_t i = 0; i < n; i++) {
        if (options[i].letter == letter) return &options[i];
    }
    return NULL;
}

static const cli_option *find_short(const cli_command *command, char letter) {
    const cli_option *found = find_letter(command->options, command->n_options, letter);
    return found ? found : find_letter(cli_common_options, cli_n_common_options, letter);
}

static int is_common(const cli_option *option) {
    return option >= cli_common_options && option < cli_common_options + cli_n_common_options;
}

/* Are they both about figures, sweeps, ...? Their first words say so. */
static int are_siblings(const cli_command *a, const cli_command *b) {
    const size_t length = strcspn(a->name, " ");
    return length == strcspn(b->name, " ") && strncmp(a->name, b->name, length) == 0;
}

/* A command that has the option, a sibling where there is one; NULL when none has. */
static const cli_command *find_owner(const cli_command *command, const char *name, size_t length) {
    const cli_command *first = NULL;
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (!find_long(cli_commands[i], name, length)) continue;
        if (are_siblings(command, cli_commands[i])) return cli_commands[i];
        if (!first) first = cli_commands[i];
    }
    return first;
}

/* `length` is that of the word up to a '='. */
static int fail_unknown(const cli_command *command, const char *word, size_t length,
                        qkv_error *err) {
    const int is_long = word[1] == '-';
    qkv_nearest near = qkv_nearest_of(word, length);
    for (size_t i = 0; is_long && i < command->n_options; i++) {
        char name[QKV_NEAREST_SIZE];
        snprintf(name, sizeof name, "--%s", command->options[i].name);
        qkv_nearest_try(&near, name);
    }
    const cli_command *owner = is_long ? find_owner(command, word + 2, length - 2) : NULL;
    if (owner && (!near.best[0] || are_siblings(command, owner))) {
        return cli_usage(err, "unknown option %.*s, which 'qkv %s' has; see 'qkv %s --help'",
                         (int)length, word, owner->name, command->name);
    }
    return cli_usage(err, "unknown option %.*s%s; see 'qkv %s --help'", (int)length, word,
                     qkv_nearest_hint(&near), command->name);
}

/* The words still to be read. */
typedef struct word_list {
    char **words;
    int n, at;
} word_list;

/* All of them are flags. */
static int apply_common(cli_parsed *parsed, const cli_option *option, const char *value,
                        qkv_error *err) {
    if (value) return cli_usage(err, "--%s takes no value", option->name);
    int status = read_flag(option, (char *)&parsed->common + option->offset, NULL, err);
    if (parsed->common.quiet && parsed->common.verbose)
        status = cli_usage(err, "give --quiet or --verbose, not both");
    return status;
}

/* `value` is what was attached to the option, or NULL. */
static int apply(cli_parsed *parsed, const cli_command *command, const cli_option *option,
                 const char *value, word_list *rest, qkv_error *err) {
    if (is_common(option)) return apply_common(parsed, option, value, err);
    const size_t place = (size_t)(option - command->options);
    uint64_t *given = &parsed->given[place / 64];
    const uint64_t bit = UINT64_C(1) << place % 64;
    /* The first value would have no effect. Flags may be repeated: they say the same again. */
    if (option->kind != CLI_FLAG && !is_list(option) && (*given & bit)) {
        return cli_usage(err, "--%s is given twice", option->name);
    }
    *given |= bit;
    if (option->kind == CLI_FLAG && value) {
        return cli_usage(err, "--%s takes no value", option->name);
    }
    if (option->kind != CLI_FLAG && !value) {
        if (rest->at >= rest->n) {
            return cli_usage(err, "--%s needs a value (%s)", option->name, option->value);
        }
        value = rest->words[rest->at++];
    }
    const char *path = value ? path_in(option, value) : NULL;
    const int status = path ? note_path(parsed, path, err) : QKV_OK;
    if (status != QKV_OK) return status;
    /* An unset variable of a script: nothing must be written to nowhere. */
    if (option->letter == 'o' && value && !value[0]) {
        return cli_usage(err, "--%s needs the name of a file, and is empty", option->name);
    }
    void *to = (char *)parsed->args + option->offset;
    if (option->tag & CLI_AS_TEXT) return read_list(option, to, value, err);
    return readers[option->kind](option, to, value, err);
}

static int read_long(cli_parsed *parsed, const cli_command *command, const char *word,
                     word_list *rest, qkv_error *err) {
    const char *name = word + 2;
    const size_t length = strcspn(name, "=");
    const cli_option *option = find_long(command, name, length);
    if (!option) return fail_unknown(command, word, length + 2, err);
    return apply(parsed, command, option, name[length] ? name + length + 1 : NULL, rest, err);
}

static int read_short(cli_parsed *parsed, const cli_command *command, const char *word,
                      word_list *rest, qkv_error *err) {
    const cli_option *option = find_short(command, word[1]);
    if (!option) return fail_unknown(command, word, 2, err);
    return apply(parsed, command, option, word[2] ? word + 2 : NULL, rest, err);
}

static int read_operand(cli_parsed *parsed, const cli_command *command, const char *word,
                        qkv_error *err) {
    if (parsed->n_operands >= command->max_operands) {
        const cli_option *meant = parsed->n_operands ? NULL : find_short(command, 'p');
        if (!meant && !parsed->n_operands) meant = find_short(command, 'm');
        return meant ? cli_usage(err, "unexpected argument '%s'; the %s is given with -%c", word,
                                 meant->name, meant->letter)
                     : cli_usage(err, "unexpected argument '%s'; see 'qkv %s --help'", word,
                                 command->name);
    }
    qkv_nearest near;
    if (command->operand == CLI_CHOICE && find_word(command->operand_words, word, &near) < 0)
        return cli_usage(err, "there is no '%s'%s: give %s", word, qkv_nearest_hint(&near),
                         command->operand_words);
    if (!QKV_PUSH(parsed->operands, parsed->capacity, parsed->n_operands, word)) {
        return qkv_fail_memory(err);
    }
    return note_path(parsed, word, err);
}

static int is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int cli_parse(cli_parsed *parsed, const cli_command *command, int argc, char **argv,
              qkv_error *err) {
    *parsed = (cli_parsed){0};
    assert(command->n_options <= 64); /* bits of `given` */
    parsed->args = qkv_calloc(1, command->args_size ? command->args_size : 1);
    if (!parsed->args) return qkv_fail_memory(err);
    if (command->defaults) memcpy(parsed->args, command->defaults, command->args_size);

    word_list rest = {argv, argc, 0};
    int only_operands = 0;
    while (rest.at < rest.n) {
        const char *word = rest.words[rest.at++];
        int status;
        if (only_operands || word[0] != '-' || word[1] == '\0') {
            status = read_operand(parsed, command, word, err);
        } else if (strcmp(word, "--") == 0) {
            only_operands = 1;
            continue;
        } else if (is_help(word)) {
            parsed->help = 1;
            return QKV_OK;
        } else if (word[1] == '-') {
            status = read_long(parsed, command, word, &rest, err);
        } else {
            status = read_short(parsed, command, word, &rest, err);
        }
        if (status != QKV_OK) return status;
    }
    if (parsed->n_operands < command->min_operands) {
        return cli_usage(err, "something is missing: qkv %s %s", command->name, command->synopsis);
    }
    return QKV_OK;
}

void cli_parsed_release(cli_parsed *parsed, const cli_command *command) {
    for (size_t i = 0; parsed->args && i < command->n_options; i++) {
        if (!is_list(&command->options[i]) && !(command->options[i].tag & CLI_AS_TEXT)) continue;
        cli_list *list = (cli_list *)(void *)((char *)parsed->args + command->options[i].offset);
        free(list->items); /* several options may share one list */
        *list = (cli_list){0};
    }
    free(parsed->args);
    free(parsed->operands);
    free(parsed->paths);
    *parsed = (cli_parsed){0};
}
