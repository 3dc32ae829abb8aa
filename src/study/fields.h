/*
 * Options as JSON: one table says which fields of a struct there are, and both ways go through it.
 * A field that has its default is left out; 0, NULL and QKV_AUTO are defaults. What is read is
 * somebody else's: types, words and limits are checked, and names that no field has are refused.
 */
#ifndef QKV_STUDY_FIELDS_H
#define QKV_STUDY_FIELDS_H

#include <stddef.h>

#include "base/fail.h"
#include "base/json.h"

/* X(name, type of the struct's field, type in JSON) */
#define FIELD_KINDS(X)                                                                             \
    X(FLAG, int32_t, "true or false")                                                              \
    X(INDEX, int32_t, "a whole number") /* QKV_AUTO: not given */                                  \
    X(INT, int32_t, "a whole number")                                                              \
    X(COUNT, int64_t, "a whole number")                                                            \
    X(REAL, double, "a number")                                                                    \
    X(RANGE, double, "two numbers")  /* of an array of two */                                      \
    X(WORD, int, "one of its words") /* an enum; words stand for 0, 1, 2, ... */                   \
    X(TEXT, const char *, "a text")

typedef enum field_kind {
#define FIELD_ENUM(name, type, what) FIELD_##name,
    FIELD_KINDS(FIELD_ENUM)
#undef FIELD_ENUM
} field_kind;

typedef struct field {
    const char *name; /* in JSON: the field's own */
    field_kind kind;
    size_t offset;
    const char *words;  /* of a WORD: "linear|log|power" */
    double least, most; /* of numbers; of the length of a text, most; both 0: no limit */
} field;

/* NULL when memory is short. */
json_t *qkv_fields_write(const field *fields, size_t n, const void *options);
/* Into options that hold the defaults. Texts are borrowed from the JSON. */
int qkv_fields_read(const field *fields, size_t n, const json_t *from, void *options,
                    qkv_error *err);

#endif
