/* Output files are checked before anything is computed; what they say about themselves; JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
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

int cli_outputs_check_names(const cli_list *outputs, const char *suffixes, qkv_error *err) {
    for (size_t i = 0; i < outputs->n; i++) {
        const char *path = outputs->items[i].value;
        if (!is_one_of(qkv_path_suffix(path), suffixes)) {
            return cli_usage(err, "cannot tell the format of '%s': its suffix must be one of %s",
                             path, suffixes);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(path, outputs->items[k].value) == 0) {
                return cli_usage(err, "output '%s' is given twice", path);
            }
        }
    }
    return QKV_OK;
}

int cli_outputs_check_writable(const cli_list *outputs, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++) {
        status = qkv_output_check(outputs->items[i].value, err);
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
    puts(visible.data ? visible.data : "");
    qkv_text_release(&visible);
}

int cli_print_json(json_t *json, qkv_error *err) {
    if (!json) return qkv_fail_memory(err);
    json_dumpf(json, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(json);
    return QKV_OK;
}

int cli_print_check(const cli_print *print, const cli_list *outputs, qkv_error *err) {
    int letters = 0;
    for (size_t i = 0; i < outputs->n; i++) {
        letters |= strcmp(qkv_path_suffix(outputs->items[i].value), "png") != 0;
    }
    if (outputs->n == 0 && (print->font || print->width > 0 || print->no_notes)) {
        return cli_usage(err, "--font, --width and --no-notes belong to a drawing: add -o");
    }
    if (print->text != CLI_AUTO && !letters) {
        return cli_usage(err, "--text is about the letters of an SVG or PDF, and no output is one");
    }
    return QKV_OK;
}
