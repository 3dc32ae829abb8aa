/*
 * Prompts: texts from the command line, whole files, files of one prompt per line, or token ids. An
 * empty one is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/inputs.h"
#include "qkv/prompt.h"

/* Far beyond what any model takes, small enough to stop a device or the wrong file early. */
#define LARGEST_PROMPT ((size_t)64 << 20)

static int read_ids(qkv_own_prompt *prompt, const char *list, qkv_error *err) {
    size_t capacity = 0;
    for (const char *at = list;; at++) {
        int64_t id;
        const size_t n = strcspn(at, ",");
        if (!qkv_parse_int(at, n, &id) || id > INT32_MAX || id < INT32_MIN) {
            return cli_usage(err, "token ids are written 1,2,3; '%.*s' is not one", (int)n, at);
        }
        if (!QKV_PUSH(prompt->tokens, capacity, prompt->n_tokens, (int32_t)id)) {
            return qkv_fail_memory(err);
        }
        at += n;
        if (*at == '\0') return QKV_OK;
    }
}

/* Editors end files with a newline that is not meant as part of the prompt. */
static void strip_newline(qkv_own_prompt *prompt) {
    if (prompt->length && prompt->text[prompt->length - 1] == '\n') prompt->length--;
    prompt->text[prompt->length] = '\0';
}

int cli_prompt_load(qkv_own_prompt *prompt, const cli_item *item, qkv_error *err) {
    *prompt = (qkv_own_prompt){0};
    int status = QKV_OK;
    if (item->tag == CLI_PROMPT_TOKENS) return read_ids(prompt, item->value, err);
    if (item->tag == CLI_PROMPT_FILE) {
        status = qkv_read_file(&prompt->text, &prompt->length, item->value, LARGEST_PROMPT, err);
        if (status == QKV_OK) strip_newline(prompt);
    } else {
        prompt->text = qkv_strdup(item->value);
        if (!prompt->text) return qkv_fail_memory(err);
        prompt->length = strlen(prompt->text);
    }
    if (status == QKV_OK && prompt->length == 0) {
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "the prompt is empty");
    }
    return status;
}

int cli_prompt_tokenize(qkv_own_prompt *prompt, const qkv_model *model, unsigned flags,
                        qkv_error *err) {
    if (prompt->tokens) return QKV_OK;
    return qkv_tokenize(model, &prompt->tokens, &prompt->n_tokens, prompt->text, prompt->length,
                        flags, err);
}

/* ---- several ---- */

int cli_prompts_add(qkv_own_prompts *prompts, const cli_item *item, qkv_error *err) {
    qkv_own_prompt prompt;
    int status = cli_prompt_load(&prompt, item, err);
    if (status == QKV_OK && !QKV_PUSH(prompts->items, prompts->capacity, prompts->n, prompt)) {
        status = qkv_fail_memory(err);
    }
    if (status != QKV_OK) qkv_own_prompt_release(&prompt);
    return status;
}

int cli_prompts_add_default(qkv_own_prompts *prompts, size_t most, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < most && qkv_default_prompt(i) && status == QKV_OK; i++) {
        status = cli_prompts_add(prompts, &(cli_item){qkv_default_prompt(i), CLI_PROMPT_TEXT}, err);
    }
    return status;
}

/* Cuts the line at *at out of a text, without its line break, and moves *at after it; NULL at the
 * end. */
static char *cut_line(char **at) {
    char *line = *at;
    if (!*line) return NULL;
    const size_t length = strcspn(line, "\n");
    *at = line + length + (line[length] == '\n');
    line[length] = '\0';
    if (length && line[length - 1] == '\r') line[length - 1] = '\0';
    return line;
}

/* ---- columns of CSV ---- */

/* The place of a column in the first row; after it, *csv is at the second. */
static int find_column(qkv_csv *csv, const char *path, const char *wanted, size_t *place,
                       qkv_error *err) {
    qkv_text field = {0}, known = {0};
    int last = 0, found = 0, status = QKV_OK;
    for (size_t i = 0; !last && status == QKV_OK; i++) {
        status = qkv_csv_field(csv, &field, &last, err);
        if (status != QKV_OK) break;
        if (!found && strcmp(field.data, wanted) == 0) found = 1, *place = i;
        if (known.length) qkv_text_puts(&known, ", ");
        qkv_text_append_short(&known, field.data, field.length, 40);
    }
    if (status == QKV_OK && !found)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s has no column '%s'; it has %.300s", path,
                          wanted, known.data ? known.data : "none");
    qkv_text_release(&field);
    qkv_text_release(&known);
    return status;
}

static int add_row(qkv_own_prompts *prompts, qkv_csv *csv, const char *path, size_t place,
                   const char *column, qkv_error *err) {
    qkv_text field = {0};
    int last = 0, found = 0, status = QKV_OK;
    size_t n = 0;
    const size_t line = csv->next;
    for (; !last && status == QKV_OK; n++) {
        status = qkv_csv_field(csv, &field, &last, err);
        if (status != QKV_OK || n != place) continue;
        found = 1;
        if (strlen(field.data) != field.length)
            status = qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu: there are NUL bytes", path, line);
        else if (field.length)
            status = cli_prompts_add(prompts, &(cli_item){field.data, CLI_PROMPT_TEXT}, err);
    }
    if (status == QKV_OK && !found)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s, line %zu: there is no column '%s' in this row",
                          path, line, column);
    qkv_text_release(&field);
    return status;
}

static int add_column(qkv_own_prompts *prompts, const char *path, const char *column,
                      qkv_error *err) {
    char *text = NULL;
    size_t length = 0, place = 0;
    const size_t before = prompts->n;
    qkv_csv csv;
    int status = qkv_read_file(&text, &length, path, LARGEST_PROMPT, err);
    if (status != QKV_OK) return status;
    qkv_csv_begin(&csv, text, length, ',', path);
    status = find_column(&csv, path, column, &place, err);
    for (; status == QKV_OK; status = add_row(prompts, &csv, path, place, column, err)) {
        qkv_csv_skip_blank(&csv);
        if (!qkv_csv_more(&csv)) break;
    }
    free(text);
    if (status != QKV_OK || prompts->n > before) return status;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "there are no prompts: the column '%s' of %s is empty",
                    column, path);
}

/* ---- what stands around a prompt ---- */

static int check_pattern(const cli_chat *chat, const cli_list *given, qkv_error *err) {
    int files = 0;
    for (size_t i = 0; i < given->n; i++) files |= given->items[i].tag == CLI_PROMPT_LINES;
    if (chat->column && !files) return cli_usage(err, "--column is of a CSV file: give it with -f");
    if (chat->pattern && !strstr(chat->pattern, "{}"))
        return cli_usage(err, "--prompt-template wants {} where the prompt is to stand");
    return QKV_OK;
}

/* The prompt in place of every {}. */
static int put_around(qkv_own_prompt *prompt, const char *pattern, qkv_error *err) {
    qkv_text text = {0};
    if (!prompt->text) return cli_usage(err, "--prompt-template takes text, not --tokens");
    for (const char *at = pattern, *gap;; at = gap + 2) {
        gap = strstr(at, "{}");
        qkv_text_append(&text, at, gap ? (size_t)(gap - at) : strlen(at));
        if (!gap) break;
        qkv_text_append(&text, prompt->text, prompt->length);
    }
    if (text.failed) return qkv_text_release(&text), qkv_fail_memory(err);
    free(prompt->text);
    prompt->text = text.data;
    prompt->length = text.length;
    return QKV_OK;
}

/* ---- all that were given ---- */

static int add_lines(qkv_own_prompts *prompts, const char *path, qkv_error *err) {
    char *text = NULL, *line;
    size_t length;
    const size_t before = prompts->n;
    int status = qkv_read_file(&text, &length, path, LARGEST_PROMPT, err);
    if (status == QKV_OK && strlen(text) != length) {
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s holds NUL bytes: not a file of prompts", path);
    }
    for (char *at = text; status == QKV_OK && (line = cut_line(&at));) {
        if (*line) status = cli_prompts_add(prompts, &(cli_item){line, CLI_PROMPT_TEXT}, err);
    }
    free(text);
    if (status != QKV_OK || prompts->n > before) return status;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "there are no prompts: %s has no line of text", path);
}

int cli_prompts_load(qkv_own_prompts *prompts, const cli_list *given, const cli_chat *chat,
                     qkv_error *err) {
    int status = cli_chat_check(chat, err);
    if (status == QKV_OK) status = check_pattern(chat, given, err);
    for (size_t i = 0; i < given->n && status == QKV_OK; i++) {
        const cli_item *item = &given->items[i];
        status = item->tag != CLI_PROMPT_LINES ? cli_prompts_add(prompts, item, err)
                 : chat->column                ? add_column(prompts, item->value, chat->column, err)
                                               : add_lines(prompts, item->value, err);
    }
    for (size_t i = 0; i < prompts->n && status == QKV_OK && chat->pattern; i++) {
        status = put_around(&prompts->items[i], chat->pattern, err);
    }
    for (size_t i = 0; i < prompts->n && status == QKV_OK; i++) {
        status = cli_chat_check_prompt(chat, &prompts->items[i], err);
    }
    return status;
}

int cli_prompts_check_one(const qkv_own_prompts *prompts, const cli_list *given, qkv_error *err) {
    if (prompts->n == 1) return QKV_OK;
    if (given->n == 1) {
        const char *path = given->items[0].value;
        return cli_usage(
            err,
            "one prompt is wanted, and %s has %zu, one per line; --file %s reads it as "
            "one text",
            path, prompts->n, path);
    }
    return cli_usage(err, "one prompt is wanted, and %zu are given", prompts->n);
}

int cli_prompts_tokenize(qkv_own_prompts *prompts, const cli_chat *chat, const qkv_model *model,
                         unsigned flags, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < prompts->n && status == QKV_OK; i++) {
        status = cli_chat_tokenize(chat, &prompts->items[i], model, flags, err);
    }
    return status;
}
