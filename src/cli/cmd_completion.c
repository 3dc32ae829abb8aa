/*
 * qkv completion: what a shell needs to complete qkv's commands, options and values, made from the same
 * tables that parse them. Every shell gets the commands, the options of each, the words of a choice, the
 * names of metrics, sites, pictures and tables, the models on this machine, and names of files where a file
 * is meant.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "qkv/measure.h"
#include "qkv/package.h"
#include "qkv/plan.h"

typedef struct completion_args {
    int unused;
} completion_args;

static const completion_args defaults = {0};

static int run_completion(const cli_call *call, qkv_error *err);

const cli_command cli_command_completion = {
    .name = "completion",
    .summary = "what bash, zsh or fish needs to complete qkv's command lines",
    .synopsis = "bash|zsh|fish",
    .description = "Prints a completion for the shell: commands, options, choices, metrics, sites, "
                   "pictures, tables, models and files. 'make "
                   "install' puts all three where the shells look. By hand:\n"
                   "\n"
                   "  qkv completion bash >~/.local/share/bash-completion/completions/qkv\n"
                   "  qkv completion zsh >\"${fpath[1]}/_qkv\"\n"
                   "  qkv completion fish >~/.config/fish/completions/qkv.fish\n",
    CLI_ARGS(defaults),
    .min_operands = 1,
    .max_operands = 1,
    .operand = CLI_CHOICE,
    .operand_words = "bash|zsh|fish",
    .run = run_completion,
};

#define MODELS "qkv models --names 2>/dev/null"
#define RECIPES "qkv recipe 2>/dev/null | cut -d' ' -f1"

/* ---- what a value is ---- */

typedef enum value_kind {
    VALUE_NONE,
    VALUE_ANY,
    VALUE_FILE,
    VALUE_MODEL,
    VALUE_WORDS,
    VALUE_LIST /* words with commas between them */
} value_kind;

static value_kind kind_of(cli_kind kind, char letter) {
    switch (kind) {
    case CLI_FLAG:
        return VALUE_NONE;
    case CLI_PATH:
    case CLI_PATHS:
        return VALUE_FILE;
    case CLI_MODEL:
    case CLI_MODELS:
        return VALUE_MODEL;
    case CLI_CHOICE:
        return VALUE_WORDS;
    default:
        return letter == 'o' ? VALUE_FILE : VALUE_ANY;
    }
}

/* Options of the command, then those that every command has; NULL past the end. */
static const cli_option *option_at(const cli_command *command, size_t i) {
    if (i < command->n_options) return &command->options[i];
    i -= command->n_options;
    return i < cli_n_common_options ? &cli_common_options[i] : NULL;
}

/* Words between bars, with spaces between them. */
static void print_words(const char *words) {
    for (; *words; words++) putchar(*words == '|' ? ' ' : *words);
}

static void print_metrics(void) {
    const qkv_metric_info *info;
    printf("all");
    for (size_t i = 0; (info = qkv_metric_get(i)); i++) printf(" %s", info->name);
}

static void print_sites(void) {
    for (int i = 0; i < QKV_SITE_COUNT; i++)
        printf("%s%s", i ? " " : "", qkv_site_name((qkv_site)i));
}

/* What else options are about: names that no table of options has. */
typedef struct named_value {
    const char *command; /* NULL: every command that has the option */
    const char *option;
    value_kind kind;
    void (*print)(void); /* NULL: `words` */
    const char *words;
} named_value;

/* Pictures and tables of a command: those of all its variants. A test holds all to what there is. */
static const named_value NAMED[] = {
    {"patch", "metric", VALUE_WORDS, NULL, "logit_diff:|logit:|prob:|kl"},
    {"lens", "picture", VALUE_WORDS, NULL, "top|answer|rank|logit|heads|blocks"},
    {"lens", "table", VALUE_WORDS, NULL, "layers|top|answer|largest|parts"},
    {"patch", "picture", VALUE_WORDS, NULL, "positions|heads"},
    {"patch", "table", VALUE_WORDS, NULL, "top|cells|unedited"},
    {"compare", "picture", VALUE_WORDS, NULL, "heads|ranking|angles|errors|positions"},
    {"compare", "table", VALUE_WORDS, NULL, "summary|ranking|heads|layers|prompts|positions|flips"},
    {"weights", "picture", VALUE_WORDS, NULL,
     "copying|matching|norm|effective_rank|stream_copying|stream_matching|spectrum|heads|layers"},
    {"weights", "table", VALUE_WORDS, NULL, "top|heads|singular|eigen|pairs"},
    {"roles", "picture", VALUE_WORDS, NULL, "labels|scores"},
    {"roles", "table", VALUE_WORDS, NULL, "top|heads|repeats"},
    {"patch", "site", VALUE_LIST, NULL,
     "resid_pre|attn_out|mlp_out|resid_post|z|q|k|v|q_in|k_in|v_in"},
    {NULL, "metrics", VALUE_LIST, print_metrics, NULL},
    {NULL, "metric", VALUE_LIST, print_metrics, NULL},
    {NULL, "targets", VALUE_LIST, print_sites, NULL},
    {NULL, "target", VALUE_LIST, print_sites, NULL},
    {NULL, "site", VALUE_LIST, print_sites, NULL},
    {NULL, "capture", VALUE_LIST, print_sites, NULL},
    {NULL, "variant", VALUE_LIST, print_sites, NULL},
    {NULL, "edit", VALUE_LIST, print_sites, NULL},
};

static const named_value *find_named(const cli_command *command, const cli_option *option) {
    for (size_t i = 0; i < sizeof NAMED / sizeof *NAMED; i++) {
        const int here = !NAMED[i].command || strcmp(NAMED[i].command, command->name) == 0;
        if (here && strcmp(NAMED[i].option, option->name) == 0) return &NAMED[i];
    }
    return NULL;
}

/* The words that an option's value may be. */
static void print_option_words(const cli_option *option, const named_value *named) {
    if (named && named->print)
        named->print();
    else
        print_words(named ? named->words : option->value);
}

static value_kind kind_of_option(const cli_option *option, const named_value *named) {
    return named ? named->kind : kind_of(option->kind, option->letter);
}

/* Names of commands and of groups of commands that follow `group`, or begin a line (NULL): each once. */
static void print_commands(const char *group) {
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name, *second = strchr(name, ' ');
        const size_t first = strcspn(name, " ");
        if (group) {
            if (second && strncmp(name, group, first) == 0 && !group[first])
                printf("%s ", second + 1);
            continue;
        }
        int is_new = 1;
        for (size_t k = 0; k < i; k++) {
            const char *other = cli_commands[k]->name;
            is_new &= strncmp(other, name, first) != 0 || (other[first] && other[first] != ' ');
        }
        if (is_new) printf("%.*s ", (int)first, name);
    }
}

/* What 'qkv pull' knows by short names. */
static void print_packages(void) {
    const qkv_package_info *package;
    for (size_t i = 0; (package = qkv_package_get(i)); i++) printf("%s ", package->name);
}

/* The first part of a help text, fit for quotes of a shell. */
static void print_quoted(const char *text, const char *special) {
    const size_t n = strcspn(text, ";(");
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n && text[i] == ' ') break;
        if (strchr(special, text[i])) putchar('\\');
        if (text[i] == '\'')
            fputs("\xe2\x80\x99", stdout); /* an apostrophe that ends no quotes */
        else
            putchar(text[i]);
    }
}

/* ---- bash and zsh: one function, a case per command ---- */

/* How a shell says each thing. */
typedef struct shell {
    const char *words_before, *words_after;
    const char *list_before, *list_after;
    const char *files, *models, *recipes;
} shell;

static void print_value(const shell *sh, value_kind kind, const cli_option *option,
                        const named_value *named) {
    if (kind == VALUE_WORDS || kind == VALUE_LIST) {
        fputs(kind == VALUE_LIST ? sh->list_before : sh->words_before, stdout);
        print_option_words(option, named);
        fputs(kind == VALUE_LIST ? sh->list_after : sh->words_after, stdout);
    } else if (kind == VALUE_FILE) {
        fputs(sh->files, stdout);
    } else {
        fputs(kind == VALUE_MODEL ? sh->models : ":", stdout);
    }
}

static void print_option_names(const cli_option *option, const char *between) {
    if (option->letter) printf("-%c%s", option->letter, between);
    printf("--%s", option->name);
}

static void print_values(const cli_command *command, const shell *sh) {
    printf("        case $prev in\n");
    const cli_option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++) {
        const named_value *named = find_named(command, option);
        const value_kind kind = kind_of_option(option, named);
        if (kind == VALUE_NONE) continue;
        printf("        ");
        print_option_names(option, "|");
        printf(") ");
        print_value(sh, kind, option, named);
        printf("; return ;;\n");
    }
    printf("        *) ;;\n        esac\n");
}

static void print_operands(const cli_command *command, const shell *sh) {
    printf("        ");
    if (strcmp(command->name, "help") == 0) {
        fputs(sh->words_before, stdout);
        print_commands(NULL);
        printf("notation%s", sh->words_after);
    } else if (strcmp(command->name, "recipe") == 0) {
        fputs(sh->recipes, stdout);
    } else if (strcmp(command->name, "pull") == 0) {
        fputs(sh->words_before, stdout);
        print_packages();
        fputs(sh->words_after, stdout);
    } else if (command->max_operands && command->operand != CLI_FLAG) {
        const cli_option operand = {.value = command->operand_words};
        print_value(sh, kind_of(command->operand, 0), &operand, NULL);
    } else {
        printf(":");
    }
    printf("\n");
}

static void print_groups(const shell *sh) {
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        const size_t first = strcspn(name, " ");
        char group[64];
        snprintf(group, sizeof group, "%.*s", (int)first, name);
        if (!name[first] || (i && strncmp(cli_commands[i - 1]->name, name, first + 1) == 0))
            continue;
        printf("    %s) ", group);
        fputs(sh->words_before, stdout);
        print_commands(group);
        printf("%s ;;\n", sh->words_after);
    }
}

static void print_two_words(const char *line) {
    printf("    case \"%s\" in\n    ", line);
    const char *bar = "";
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (!strchr(cli_commands[i]->name, ' ')) continue;
        printf("%s'%s'", bar, cli_commands[i]->name);
        bar = "|";
    }
    printf(") command=\"%s\" ;;\n    *) ;;\n    esac\n", line);
}

static void print_bash(void) {
    static const shell bash = {
        "COMPREPLY+=($(compgen -W '",
        "' -- \"$cur\"))",
        "_qkv_list '",
        "'",
        "compopt -o filenames; COMPREPLY+=($(compgen -f -- \"$cur\"))",
        "compopt -o filenames; COMPREPLY+=($(compgen -W \"$(" MODELS
        ")\" -- \"$cur\") $(compgen -f -X '!*.gguf' -- \"$cur\") $(compgen -d -- \"$cur\"))",
        "compopt -o filenames; COMPREPLY+=($(compgen -W \"$(" RECIPES
        ")\" -- \"$cur\") $(compgen -f -- \"$cur\"))",
    };
    printf("# bash completion for qkv, made by 'qkv completion bash'.\n"
           "# The last of several words with commas between them.\n"
           "_qkv_list() {\n"
           "    local before=\n"
           "    [[ $cur == *,* ]] && before=${cur%%,*},\n"
           "    compopt -o nospace\n"
           "    COMPREPLY+=($(compgen -P \"$before\" -W \"$1\" -- \"${cur##*,}\"))\n"
           "}\n"
           "_qkv() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command=${COMP_WORDS[1]} IFS=$' \\t\\n'\n"
           "    COMPREPLY=()\n"
           "    # --option=VALUE comes as three words\n"
           "    if [[ $cur == = ]]; then cur=\n"
           "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    fi\n"
           "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '");
    print_commands(NULL);
    printf("--help --version' -- \"$cur\"))\n        return\n    fi\n"
           "    if ((COMP_CWORD == 2)); then\n    case $command in\n");
    print_groups(&bash);
    printf("    *) ;;\n    esac\n    fi\n    if ((COMP_CWORD > 2)); then\n");
    print_two_words("${COMP_WORDS[1]} ${COMP_WORDS[2]}");
    printf("    fi\n    case $command in\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const cli_command *command = cli_commands[i];
        printf("    '%s')\n", command->name);
        print_values(command, &bash);
        printf("        if [[ $cur == -* ]]; then COMPREPLY+=($(compgen -W '");
        const cli_option *option;
        for (size_t k = 0; (option = option_at(command, k)); k++) {
            print_option_names(option, " ");
            putchar(' ');
        }
        printf("-h --help' -- \"$cur\")); return; fi\n");
        print_operands(command, &bash);
        printf("        ;;\n");
    }
    printf("    *) ;;\n    esac\n}\ncomplete -F _qkv qkv\n");
}

static void print_zsh(void) {
    static const shell zsh = {
        "compadd -- ",
        "",
        "compset -P '*,'; compadd -S '' -- ",
        "",
        "_files",
        "compadd -- ${(f)\"$(" MODELS ")\"}; _files -g '*.gguf'; _files -/",
        "compadd -- ${(f)\"$(" RECIPES ")\"}; _files",
    };
    printf("#compdef qkv\n# zsh completion for qkv, made by 'qkv completion zsh'.\n"
           "_qkv() {\n"
           "    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} command=${words[2]}\n"
           "    local -a options\n"
           "    if [[ $cur == --*=* ]]; then prev=${cur%%%%=*}; compset -P '*='; fi\n"
           "    if ((CURRENT == 2)); then\n        options=(");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const char *name = cli_commands[i]->name;
        if (strchr(name, ' ')) continue;
        printf("'%s:", name);
        print_quoted(cli_commands[i]->summary, ":\\");
        printf("' ");
    }
    printf("'figure:draw attention')\n        _describe 'command' options\n        return\n    fi\n"
           "    if ((CURRENT == 3)); then\n    case $command in\n");
    print_groups(&zsh);
    printf("    *) ;;\n    esac\n    fi\n    if ((CURRENT > 3)); then\n");
    print_two_words("${words[2]} ${words[3]}");
    printf("    fi\n    case $command in\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const cli_command *command = cli_commands[i];
        printf("    '%s')\n", command->name);
        print_values(command, &zsh);
        printf("        options=(");
        const cli_option *option;
        for (size_t k = 0; (option = option_at(command, k)); k++) {
            if (option->letter) {
                printf("'-%c:", option->letter);
                print_quoted(option->help, ":\\");
                printf("' ");
            }
            printf("'--%s:", option->name);
            print_quoted(option->help, ":\\");
            printf("' ");
        }
        printf("'--help:show this help')\n"
               "        if [[ $cur == -* ]]; then _describe -o 'option' options; return; fi\n");
        print_operands(command, &zsh);
        printf("        ;;\n");
    }
    printf("    *) ;;\n    esac\n}\n"
           "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _qkv \"$@\"; "
           "else compdef _qkv qkv; fi\n");
}

/* ---- fish: a line for every option ---- */

static void print_fish_models(void) {
    printf(" -a '(" MODELS "; __fish_complete_suffix .gguf; __fish_complete_directories)'");
}

static void print_fish_value(value_kind kind, const cli_option *option, const named_value *named) {
    if (kind == VALUE_FILE) printf(" -r -F");
    if (kind == VALUE_ANY) printf(" -x");
    if (kind == VALUE_MODEL) {
        printf(" -x");
        print_fish_models();
    }
    if (kind == VALUE_WORDS || kind == VALUE_LIST) {
        printf(kind == VALUE_LIST
                   ? " -x -a '(__fish_complete_list , \"string split -n \\\" \\\" \\\""
                   : " -x -a '");
        print_option_words(option, named);
        printf(kind == VALUE_LIST ? "\\\"\")'" : "'");
    }
}

static void print_fish_command(const cli_command *command) {
    const cli_option *option;
    for (size_t i = 0; (option = option_at(command, i)); i++) {
        printf("complete -c qkv -n '__qkv_is \"%s\"'", command->name);
        if (option->letter) printf(" -s %c", option->letter);
        printf(" -l %s", option->name);
        const named_value *named = find_named(command, option);
        print_fish_value(kind_of_option(option, named), option, named);
        printf(" -d '");
        print_quoted(option->help, "\\");
        printf("'\n");
    }
    printf("complete -c qkv -n '__qkv_is \"%s\"'", command->name);
    if (strcmp(command->name, "recipe") == 0) {
        printf(" -F -a '(qkv recipe 2>/dev/null | cut -d\" \" -f1)'\n");
    } else if (strcmp(command->name, "pull") == 0 || strcmp(command->name, "help") == 0) {
        printf(" -f -a '");
        if (command->name[0] == 'p')
            print_packages();
        else
            print_commands(NULL);
        printf("'\n");
    } else if (command->operand == CLI_PATH) {
        printf(" -F\n");
    } else if (command->operand == CLI_MODEL) {
        printf(" -f");
        print_fish_models();
        printf("\n");
    } else if (command->operand == CLI_CHOICE) {
        printf(" -f -a '");
        print_words(command->operand_words);
        printf("'\n");
    } else {
        printf(" -f\n");
    }
}

static void print_fish(void) {
    printf("# fish completion for qkv, made by 'qkv completion fish'.\n"
           "function __qkv_command\n"
           "    set -l words (commandline -opc)\n"
           "    set -e words[1]\n"
           "    switch \"$words[1] $words[2]\"\n        case");
    for (size_t i = 0; i < cli_n_commands; i++) {
        if (strchr(cli_commands[i]->name, ' ')) printf(" '%s'", cli_commands[i]->name);
    }
    printf("\n            echo \"$words[1] $words[2]\"\n        case '*'\n"
           "            echo \"$words[1]\"\n    end\nend\n"
           "function __qkv_is\n    test (__qkv_command) = \"$argv[1]\"\nend\n"
           "complete -c qkv -n '__qkv_is \"\"' -f -l help -d 'show help'\n"
           "complete -c qkv -n '__qkv_is \"\"' -f -l version -d 'print the version'\n");
    for (size_t i = 0; i < cli_n_commands; i++) {
        const cli_command *command = cli_commands[i];
        const char *second = strchr(command->name, ' ');
        printf("complete -c qkv -n '__qkv_is \"%.*s\"' -f -a '%s' -d '",
               second ? (int)(second - command->name) : 0, command->name,
               second ? second + 1 : command->name);
        print_quoted(command->summary, "\\");
        printf("'\n");
    }
    printf("complete -c qkv -n '__qkv_is \"\"' -f -a figure -d 'draw attention'\n");
    for (size_t i = 0; i < cli_n_commands; i++) print_fish_command(cli_commands[i]);
}

static int run_completion(const cli_call *call, qkv_error *err) {
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(call->operands[0], shells[i].name) != 0) continue;
        shells[i].print();
        return QKV_OK;
    }
    return cli_usage(err, "there is no completion for '%s'", call->operands[0]);
}
