/*
 * The one table of options: which there are, what each can be, and what it is for. The command line, JSON
 * of requests and recipes, and Python's keywords all go through it, and help is made from it.
 *
 * Values are kept as JSON in one form per kind of field (a list is its lines, a length its points) and
 * checked when they are put there. A field that has its default is left out; 0, NULL and QKV_AUTO are
 * defaults. Names that no field has are refused.
 */
#ifndef QKV_STUDY_FIELDS_H
#define QKV_STUDY_FIELDS_H

#include <stddef.h>

#include "base/fail.h"
#include "base/json.h"
#include "qkv/study.h"

/* X(name, type of the struct's field, what it can be) */
#define FIELD_KINDS(X)                                                                             \
    X(FLAG, int32_t, "true or false")                                                              \
    X(INDEX, int32_t,                                                                              \
      "a whole number") /* QKV_AUTO: not given; as a text "auto", or -1: the last */               \
    X(POSITION, int32_t, "a whole number") /* from the end when negative; -1: not given */         \
    X(INT, int32_t, "a whole number")                                                              \
    X(COUNT, int64_t, "a whole number")                                                            \
    X(REAL, double, "a number")                                                                    \
    X(RANGE, double, "two numbers LO,HI")                             /* of an array of two */     \
    X(LENGTH, double, "a length such as 85mm, 8.5cm, 3.3in or 240pt") /* in points */              \
    X(WORD, int, "one of its words") /* an enum; words stand for 0, 1, 2, ... */                   \
    X(TEXT, const char *, "a text")                                                                \
    X(LIST, const char *, "a text, or a list of texts") /* one to a line */                        \
    X(FILE, const char *, "the text of a file") /* the command line is given the file's name */    \
    X(PATH, const char *, "the name of a file")

typedef enum field_kind {
#define FIELD_ENUM(name, type, what) FIELD_##name,
    FIELD_KINDS(FIELD_ENUM)
#undef FIELD_ENUM
} field_kind;

typedef struct field {
    const char *name; /* `freeze_mlps`: in JSON and Python; --freeze-mlps on the command line */
    field_kind kind;
    size_t offset;
    const char *words;  /* of a WORD: "linear|log|power" */
    double least, most; /* of numbers; of the length of a text, most; both 0: no limit */
    const char *value; /* how help calls the value: "N"; NULL: flags, and words, which are listed */
    const char
        *help; /* a sentence without a capital or full stop; other fields between backquotes */
    const char *outputs; /* formats that it has an effect on: "png|svg"; NULL: all */
    const char *former;  /* its name in recipes of earlier versions; NULL: the same */
} field;

/* A line of a table: FIELD(lens_options, top, INT, "N", 0, 100, "how many tokens"). */
#define FIELD(type, member, kind, value, least, most, help)                                        \
    { #member, FIELD_##kind, offsetof(type, member), NULL, least, most, value, help, NULL, NULL }
#define FIELD_FLAGGED(type, member, help) FIELD(type, member, FLAG, NULL, 0, 0, help)
#define FIELD_WORDS(type, member, words, help)                                                     \
    { #member, FIELD_WORD, offsetof(type, member), words, 0, 0, NULL, help, NULL, NULL }
/* How many tokens are generated, the member `tokens`; --tokens is a prompt as token ids. */
#define FIELD_NEW_TOKENS(type, most, help)                                                         \
    { "new_tokens", FIELD_INT, offsetof(type, tokens), NULL, 1, most, "N", help, NULL, "tokens" }

/* A table of fields, and what all in it are for. */
typedef struct field_table {
    const field *fields;
    size_t n;
    qkv_field_use use;
} field_table;
#define FIELD_TABLE(list, use)                                                                     \
    { list, sizeof(list) / sizeof *(list), use }

/* What it can be, for people: "a whole number from 1 to 100", or the words of a WORD. */
void qkv_field_append_values(const field *f, qkv_text *out);

/* By its name, or by its former one; NULL where there is none. */
const field *qkv_field_find(const field_table *table, const char *name);
/* The error of a name that none of the tables has. */
int qkv_field_fail_name(const field_table *tables, size_t n, const char *name, qkv_error *err);

/* Puts a value where its name is in `into`, checked. From a text, as the command line has it (NULL: true, of
 * a flag): a list grows by one. From JSON: it takes the place of what was there. */
int qkv_field_put_text(const field *f, json_t *into, const char *text, qkv_error *err);
int qkv_field_put_json(const field *f, json_t *into, const json_t *value, qkv_error *err);

/* NULL when memory is short. */
json_t *qkv_fields_write(const field_table *table, const void *options);
/* Into options that hold the defaults, checked. Texts are borrowed from the JSON. */
int qkv_fields_read(const field_table *table, const json_t *from, void *options, qkv_error *err);
/* Whether what a struct holds can be: numbers that are not their default within bounds, choices among their words. */
int qkv_fields_check(const field_table *table, const void *options, qkv_error *err);
/* 0, and QKV_AUTO where that stands for no value. */
void qkv_fields_clear(const field_table *table, void *options, size_t size);

#endif
