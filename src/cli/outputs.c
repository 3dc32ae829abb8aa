/* Outputs are checked before anything is computed; what they say about themselves; JSON. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/columns.h"
#include "cli/inputs.h"

static int is_one_of(const char *word, const char *list) {
    const size_t length = strlen(word);
    while (*list) {
        const size_t n = strcspn(list, "|");
        if (n == length && memcmp(list, word, n) == 0) return 1;
        list += n + (list[n] == '|');
    }
    return 0;
}

static int check_name(const char *path, const char *suffixes, qkv_error *err) {
    if (is_one_of(qkv_path_suffix(path), suffixes)) return QKV_OK;
    return cli_usage(err, "cannot tell the format of '%s': its suffix must be one of %s", path,
                     suffixes);
}

static int check_twice(const cli_list *outputs, size_t i, qkv_error *err) {
    const char *path = outputs->items[i].value;
    for (size_t k = 0; k < i; k++) {
        if (strcmp(path, outputs->items[k].value) == 0)
            return cli_usage(err, "output '%s' is given twice", path);
    }
    return QKV_OK;
}

int cli_outputs_check_names(const cli_list *outputs, const char *suffixes, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        status = check_name(outputs->items[i].value, suffixes, err);
        if (status == QKV_OK) status = check_twice(outputs, i, err);
    }
    return status;
}

/* ---- standard output ---- */

int cli_is_stdout(const char *path) {
    return strcmp(path, "-") == 0;
}

int cli_outputs_have_stdout(const cli_list *outputs) {
    for (size_t i = 0; i < outputs->n; i++) {
        if (cli_is_stdout(outputs->items[i].value)) return 1;
    }
    return 0;
}

int cli_outputs_have(const cli_list *outputs, const char *format, const char *wanted) {
    for (size_t i = 0; i < outputs->n; i++) {
        const char *path = outputs->items[i].value;
        const char *own = cli_is_stdout(path) ? format : qkv_path_suffix(path);
        if (own && strcmp(own, wanted) == 0) return 1;
    }
    return 0;
}

int cli_stdout_check(const char *format, qkv_error *err) {
    if (!is_one_of(format, "png|pdf|safetensors|npy|npz|gguf") || !isatty(STDOUT_FILENO))
        return QKV_OK;
    return cli_usage(err, "%s is not text, and standard output is a terminal: redirect it", format);
}

static int check_stdout(const char *suffixes, const char *format, qkv_error *err) {
    if (!format) return cli_usage(err, "-o - needs --format, one of %s", suffixes);
    if (!is_one_of(format, suffixes))
        return cli_usage(err, "--format wants %s, not '%s'", suffixes, format);
    return cli_stdout_check(format, err);
}

int cli_outputs_check(const cli_list *outputs, const char *suffixes, const char *format,
                      const char *usual, qkv_error *err) {
    if (format && !cli_outputs_have_stdout(outputs)) {
        return cli_usage(err, "--format is for -o - alone: a file's suffix says its format");
    }
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        const char *path = outputs->items[i].value;
        status = cli_is_stdout(path) ? check_stdout(suffixes, format ? format : usual, err)
                                     : check_name(path, suffixes, err);
        if (status == QKV_OK) status = check_twice(outputs, i, err);
    }
    return status;
}

int cli_print_bytes(int status, char *bytes, size_t n_bytes) {
    if (status == QKV_OK) fwrite(bytes, 1, n_bytes, stdout);
    free(bytes);
    return status;
}

/* ---- files ---- */

int cli_outputs_check_writable(const cli_list *outputs, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        const char *path = outputs->items[i].value;
        if (!cli_is_stdout(path)) status = qkv_output_check(path, err);
    }
    return status;
}

/* Where in a word of the command line the name of a file begins, or its end. */
static const char *path_in_word(const cli_call *call, const char *word) {
    const char *end = word + strlen(word);
    for (size_t i = 0; i < call->n_paths; i++) {
        if (call->paths[i] >= word && call->paths[i] < end) return call->paths[i];
    }
    return end;
}

static char *shown_word(const cli_call *call, int i) {
    const char *word = call->argv[i], *path = i ? path_in_word(call, word) : word;
    qkv_text shown = {0};
    qkv_text_append(&shown, word, (size_t)(path - word));
    qkv_text_puts(&shown, qkv_path_base(path));
    if (!shown.failed) return shown.data;
    qkv_text_release(&shown);
    return NULL;
}

int cli_command_words(const cli_call *call, char ***out, qkv_error *err) {
    char **words = *out = qkv_calloc((size_t)call->argc + 1, sizeof *words);
    if (!words) return qkv_fail_memory(err);
    for (int i = 0; i < call->argc; i++) {
        words[i] = shown_word(call, i);
        if (!words[i]) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

void cli_command_words_free(char **words) {
    for (size_t i = 0; words && words[i]; i++) free(words[i]);
    free(words);
}

void cli_print_line(const char *text) {
    qkv_text visible = {0};
    qkv_text_append_visible(&visible, text, strlen(text));
    puts(cli_shown(&visible));
    qkv_text_release(&visible);
}

int cli_print_json(json_t *json, qkv_error *err) {
    char *text = json ? qkv_json_dump(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text) return qkv_fail_memory(err);
    puts(text);
    free(text);
    return QKV_OK;
}

static int draws(const cli_list *outputs, const char *format) {
    return cli_outputs_have(outputs, format, "png") || cli_outputs_have(outputs, format, "svg") ||
           cli_outputs_have(outputs, format, "pdf");
}

int cli_print_check(const cli_print *print, const cli_list *outputs, const char *format,
                    qkv_error *err) {
    const int letters =
        cli_outputs_have(outputs, format, "svg") || cli_outputs_have(outputs, format, "pdf");
    const int sized = print->font || print->font_size > 0 || print->width > 0;
    if (outputs->n == 0 && (sized || print->no_notes)) {
        return cli_usage(err,
                         "--font, --font-size, --width and --no-notes belong to a drawing: add -o");
    }
    if (outputs->n > 0 && sized && !draws(outputs, format)) {
        return cli_usage(err, "--font, --font-size and --width belong to a PNG, SVG or PDF: a page "
                              "follows the screen of its reader");
    }
    if (print->text != CLI_AUTO && !letters) {
        return cli_usage(err, "--text is for SVG and PDF, and no output is either");
    }
    return QKV_OK;
}
