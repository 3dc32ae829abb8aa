/*
 * Conversations written out and tokenized: options are checked, the template is found, the engine
 * (jinja_face.h) makes text of it, and the vocabulary tokens of the text and its parts.
 */
#define _POSIX_C_SOURCE 200809L
#include "qkv/chat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/text.h"
#include "chat/jinja_face.h"
#include "model/model.h"

typedef struct part {
    size_t start, length;
    int from_message;
} part;

struct qkv_chat {
    qkv_text text;
    part *parts;
    size_t n_parts, capacity;
    int parse_special;
};

const char *qkv_model_chat_template(const qkv_model *model) {
    const char *text = NULL;
    if (!model || qkv_gguf_string(model->file, "tokenizer.chat_template", &text, NULL) != 1)
        return NULL;
    return text;
}

/* ---- what the template is given ---- */

/* Texts of the tokens that templates know by name. */
static const struct {
    const char *name, *key;
} roles[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"sep_token", "tokenizer.ggml.seperator_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {"cls_token", "tokenizer.ggml.cls_token_id"},
    {"mask_token", "tokenizer.ggml.mask_token_id"},
};
enum { N_ROLES = sizeof roles / sizeof *roles };

static int name_tokens(const qkv_model *model, qkv_jinja_name names[N_ROLES], size_t *n,
                       qkv_error *err) {
    if (!model || !model->vocab) return QKV_OK;
    for (size_t i = 0; i < N_ROLES; i++) {
        int64_t id;
        char *text = NULL;
        size_t length;
        const int64_t last = qkv_vocab_size(model->vocab) - 1;
        if (qkv_gguf_int(model->file, roles[i].key, 0, last, &id, NULL) != 1) continue;
        int status = qkv_vocab_token_text(model->vocab, &text, &length, (int32_t)id, err);
        if (status != QKV_OK) return status;
        names[(*n)++] = (qkv_jinja_name){roles[i].name, text};
    }
    return QKV_OK;
}

static int check_messages(const qkv_chat_options *o, qkv_error *err) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    if (!o->messages || o->n_messages == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a chat needs a message");
    for (size_t i = 0; i < o->n_messages; i++) {
        const qkv_chat_message *m = &o->messages[i];
        if (!m->role || !m->text)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "message %zu has no role or no text", i);
        if (!m->role[0] || m->role[strspn(m->role, letters)])
            return qkv_fail(err, QKV_ERR_ARGUMENT, "'%.40s' is not a role of a message", m->role);
        if (!qkv_utf8_valid(m->text, strlen(m->text)))
            return qkv_fail(err, QKV_ERR_ARGUMENT, "message %zu is not UTF-8 text", i);
    }
    return QKV_OK;
}

/* "YYYY-MM-DD", or today. */
static int read_date(struct tm *date, const char *text, qkv_error *err) {
    static const size_t at[] = {0, 5, 8}, digits[] = {4, 2, 2};
    int64_t n[3] = {0};
    const time_t now = time(NULL);
    *date = (struct tm){0};
    if (!text) {
        localtime_r(&now, date);
        return QKV_OK;
    }
    int ok =
        strlen(text) == 10 && strspn(text, "0123456789-") == 10 && text[4] == '-' && text[7] == '-';
    for (int i = 0; i < 3; i++) ok = ok && qkv_parse_int(text + at[i], digits[i], &n[i]);
    date->tm_year = (int)n[0] - 1900;
    date->tm_mon = (int)n[1] - 1;
    date->tm_mday = (int)n[2];
    date->tm_hour = 12; /* no change of clocks makes it another day */
    date->tm_isdst = -1;
    if (!ok || mktime(date) == (time_t)-1 || date->tm_mday != (int)n[2] ||
        date->tm_mon != (int)n[1] - 1)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%.20s' is not a day that `date` can take; it is written 2026-01-31",
                        text);
    date->tm_hour = 0;
    return QKV_OK;
}

static int find_template(const qkv_model *model, const qkv_chat_options *o, const char **source,
                         qkv_error *err) {
    *source = o->template_text ? o->template_text : qkv_model_chat_template(model);
    if (!*source && !model)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a chat needs a model or a template");
    if (!*source)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s has no chat template; give one with `template`", model->file->path);
    if (strlen(*source) > QKV_JINJA_MAX_SOURCE)
        return qkv_fail(err, QKV_ERR_FORMAT, "the chat template has more than 1 MiB");
    if (!qkv_utf8_valid(*source, strlen(*source)))
        return qkv_fail(err, QKV_ERR_FORMAT, "the chat template is not UTF-8 text");
    return QKV_OK;
}

/* ---- rendering ---- */

static int take_part(void *user, const char *text, size_t length, int from_message) {
    qkv_chat *chat = user;
    const part next = {chat->text.length, length, from_message};
    qkv_text_append(&chat->text, text, length);
    return !chat->text.failed && QKV_PUSH(chat->parts, chat->capacity, chat->n_parts, next);
}

static int render(qkv_chat *chat, const qkv_model *model, const qkv_chat_options *o,
                  qkv_error *err) {
    qkv_jinja_name names[N_ROLES] = {{0}};
    qkv_jinja_input input = {.names = names, .add_generation_prompt = !o->no_reply};
    qkv_jinja_message *messages = NULL;
    char why[QKV_JINJA_MESSAGE];
    int status = find_template(model, o, &input.source, err);
    if (status == QKV_OK) status = read_date(&input.date, o->date, err);
    if (status == QKV_OK) status = name_tokens(model, names, &input.n_names, err);
    if (status != QKV_OK) goto done;
    messages = qkv_calloc(o->n_messages, sizeof *messages);
    status = messages ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; messages && i < o->n_messages; i++)
        messages[i] = (qkv_jinja_message){o->messages[i].role, o->messages[i].text};
    input.length = strlen(input.source);
    input.messages = messages;
    input.n_messages = o->n_messages;
    if (status != QKV_OK) goto done;
    switch (qkv_jinja_render(&input, take_part, chat, why)) {
    case QKV_JINJA_OK:
        break;
    case QKV_JINJA_FAILED:
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s", why);
        break;
    case QKV_JINJA_MEMORY:
        status = qkv_fail_memory(err);
        break;
    }
done:
    for (size_t i = 0; i < input.n_names; i++) free((char *)names[i].text);
    free(messages);
    return status;
}

int qkv_chat_render(qkv_chat **out, const qkv_model *model, const qkv_chat_options *options,
                    qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, options);
    qkv_chat_options own = QKV_CHAT_OPTIONS_INIT;
    int status = qkv_sized_read(&own, sizeof own, options, "qkv_chat_options", err);
    if (status == QKV_OK) status = check_messages(&own, err);
    if (status != QKV_OK) return status;
    qkv_chat *chat = qkv_calloc(1, sizeof *chat);
    if (!chat) return qkv_fail_memory(err);
    chat->parse_special = own.parse_special != 0;
    qkv_text_puts(&chat->text, "");
    status = render(chat, model, &own, err);
    if (status == QKV_OK)
        *out = chat;
    else
        qkv_chat_free(chat);
    return status;
}

/* ---- what came out ---- */

const char *qkv_chat_text(const qkv_chat *chat, size_t *length) {
    if (length) *length = chat ? chat->text.length : 0;
    return chat ? chat->text.data : NULL;
}

int qkv_chat_part(const qkv_chat *chat, size_t index, size_t *start, size_t *length,
                  int *from_message) {
    if (!chat || index >= chat->n_parts) return 0;
    if (start) *start = chat->parts[index].start;
    if (length) *length = chat->parts[index].length;
    if (from_message) *from_message = chat->parts[index].from_message;
    return 1;
}

int qkv_chat_tokenize(const qkv_chat *chat, const qkv_model *model, int32_t **tokens,
                      size_t *n_tokens, qkv_error *err) {
    QKV_NEED(err, tokens);
    QKV_NEED(err, n_tokens);
    *tokens = NULL;
    *n_tokens = 0;
    QKV_NEED(err, chat);
    QKV_NEED(err, model);
    if (!model->vocab)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s has no tokenizer", model->file->path);
    qkv_vocab_span *plain = qkv_calloc(chat->n_parts, sizeof *plain);
    size_t n = 0;
    if (!plain) return qkv_fail_memory(err);
    for (size_t i = 0; i < chat->n_parts && !chat->parse_special; i++) {
        const part *p = &chat->parts[i];
        if (p->from_message) plain[n++] = (qkv_vocab_span){p->start, p->start + p->length};
    }
    const int status =
        qkv_vocab_tokenize_around(model->vocab, tokens, n_tokens, chat->text.data,
                                  chat->text.length, QKV_TOKENIZE_PARSE_SPECIAL, plain, n, err);
    free(plain);
    return status;
}

void qkv_chat_free(qkv_chat *chat) {
    if (!chat) return;
    qkv_text_release(&chat->text);
    free(chat->parts);
    free(chat);
}
