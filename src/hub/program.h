/*
 * Running another program: npm, tar. No shell is between, so that no name can be taken for anything
 * else; what the program writes is read here, and it ends with the call.
 */
#ifndef QKV_HUB_PROGRAM_H
#define QKV_HUB_PROGRAM_H

#include "base/steps.h"
#include "base/text.h"

typedef struct qkv_program {
    const char *const *argv; /* ends with NULL; argv[0] is looked for in PATH */
    const char *input;       /* the file that is its standard input; NULL: an empty one */
    /* Is handed its standard output; anything but QKV_OK ends it. NULL: it is not wanted. */
    int (*take)(void *user, const char *bytes, size_t n, qkv_error *err);
    void *user;
    qkv_steps *steps; /* asked ten times a second; may be NULL */
    qkv_text errors;  /* the first 64 KiB of its standard error; released by the caller */
    int code;         /* its exit status; 128 and more: a signal ended it */
} qkv_program;

/* Waits until it has ended. QKV_ERR_IO with *missing set: there is no such program. A program that
 * fails is not an error here: see code. */
int qkv_program_run(qkv_program *program, int *missing, qkv_error *err);

#endif
