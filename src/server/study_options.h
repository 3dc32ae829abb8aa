/*
 * The options of a study in a request: the fields of its kind (qkv/study.h) without those that are inputs, so that no
 * request names a file. Texts of files are given as they are.
 */
#ifndef QKV_SERVER_STUDY_OPTIONS_H
#define QKV_SERVER_STUDY_OPTIONS_H

#include <jansson.h>

#include "base/fail.h"
#include "qkv/study.h"
#include "server/command_words.h"

/* The fields that requests may have, one after the other; 0 past the last one. */
int qkv_study_option(const char *kind, size_t index, qkv_study_field *field);
/* What is given for a field: NULL where it is nothing, null, or a flag that is false. */
const json_t *qkv_study_option_value(const json_t *options, const char *name);
/* "a|b" as a list of texts; null of NULL. NULL when memory is short. */
json_t *qkv_study_split(const char *words);

/* Names, lengths, the size of a picture, and whether each has an effect on the format. What values can be, the
 * library checks. */
int qkv_study_options_check(const json_t *options, const char *kind, const char *format,
                            qkv_error *err);
/* As words of a command line, without the operand. */
void qkv_study_options_words(const json_t *options, const qkv_study_kind *kind, qkv_words *words);
/* {"phrases.txt": "phrases"}: files that these words name, and whose text each has. */
json_t *qkv_study_options_files(const json_t *options, const char *kind);

#endif
