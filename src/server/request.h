/*
 * What a request asks for: its JSON, read field by field, with limits on each.
 *
 * A body is JSON of an object; what it may have is known for each endpoint, and anything else is
 * refused by name. Nothing here needs a model.
 */
#ifndef QKV_SERVER_REQUEST_H
#define QKV_SERVER_REQUEST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

enum {
    QKV_REQUEST_NAME_SIZE = 65,   /* longest `client` and `slot`, and a NUL */
    QKV_REQUEST_EDITS = 20000,    /* bytes of edits */
    QKV_REQUEST_TOKENS = 1 << 20, /* ids of a prompt, whatever a model takes */
    QKV_REQUEST_TURNS = 256,      /* of a conversation */
    QKV_REQUEST_LIST = 4096,      /* numbers of a list */
    QKV_REQUEST_FILE_NAME = 120   /* bytes of a file's name */
};

/* ---- the whole ---- */

/* Fields that every request may have. Texts belong to the JSON. */
typedef struct qkv_request_common {
    const char *model;                                               /* NULL: the first */
    char client[QKV_REQUEST_NAME_SIZE], slot[QKV_REQUEST_NAME_SIZE]; /* "": none */
    int64_t seq;
} qkv_request_common;

/* The object that a body holds; an empty body is an empty one. */
int qkv_request_parse(json_t **out, const char *body, size_t n_body, qkv_error *err);
/* Whether a word is one of a list with spaces between them. */
int qkv_request_lists(const char *list, const char *word);
/* Reads the common fields, and refuses every field that is neither one of them nor in `fields`, a
 * list such as "prompt edits layer". */
int qkv_request_read(const json_t *request, const char *fields, qkv_request_common *common,
                     qkv_error *err);

/* ---- fields: a default where there is none, an error where it is of another type or out of range ---- */

int qkv_request_text(const json_t *request, const char *field, size_t most, const char **text,
                     qkv_error *err);
int qkv_request_integer(const json_t *request, const char *field, int64_t least, int64_t most,
                        int64_t *value, qkv_error *err);
int qkv_request_real(const json_t *request, const char *field, double least, double most,
                     double *value, qkv_error *err);
int qkv_request_flag(const json_t *request, const char *field, int *value, qkv_error *err);
/* Numbers of a list, allocated, freed with free(); *n is 0 where there is none. */
int qkv_request_integers(const json_t *request, const char *field, int64_t least, int64_t most,
                         size_t limit, int32_t **values, size_t *n, qkv_error *err);
int qkv_request_reals(const json_t *request, const char *field, size_t limit, double **values,
                      size_t *n, qkv_error *err);
/* `name`: what a file is called without its ending. It ends up in a command line, and in a download. */
int qkv_request_file_name(const json_t *request, const char **name, qkv_error *err);
/* A field that has to be there. */
int qkv_request_need(const json_t *request, const char *field, qkv_error *err);

/* ---- prompts ---- */

typedef struct qkv_request_prompt {
    const char *text; /* NULL: none of these; of a chat, the last turn */
    int32_t *tokens;  /* NULL: not given so */
    size_t n_tokens;
    const json_t *chat; /* NULL: not given so */
    const char *system, *date;
    const json_t *turns; /* of the chat, the last one included */
    int parse_special;
    char *key; /* the same for prompts that mean the same */
} qkv_request_prompt;

/* `prompt` of a request: {"text"}, {"tokens"} or {"chat"}. Release it also after a failure. */
int qkv_request_prompt_read(qkv_request_prompt *out, const json_t *prompt, qkv_error *err);
void qkv_request_prompt_release(qkv_request_prompt *prompt);

#endif
