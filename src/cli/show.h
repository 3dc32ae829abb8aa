/* What `qkv show` prints: show_tensors.c files of tensors, show_sweep.c results of sweeps. */
#ifndef QKV_CLI_SHOW_H
#define QKV_CLI_SHOW_H

#include "cli/inputs.h"

typedef struct show_args {
    const char *tensor; /* its name; NULL: what the file holds */
    int json;
} show_args;

int show_tensors(const char *path, const show_args *args, qkv_error *err);
int show_sweep(const char *path, const show_args *args, qkv_error *err);

/* "key               value", the value on one line and cut where it is long. */
void show_line(const char *key, const char *text);
/* The members of an object so, one a line; what is not a text as JSON. */
void show_object(const json_t *object, const char *const *left_out);

#endif
