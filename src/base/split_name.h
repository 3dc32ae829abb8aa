/* Names of the parts of a split model: NAME-00002-of-00003.gguf. */
#ifndef QKV_BASE_SPLIT_NAME_H
#define QKV_BASE_SPLIT_NAME_H

#include <stddef.h>

typedef struct qkv_split_name {
    size_t prefix; /* length of what stands before "-00002-of-" */
    int index;     /* 1 is the first part */
    int count;
} qkv_split_name;

/* 1, or 0 for the name of a whole model: any other one, also one whose numbers cannot be meant. */
int qkv_split_name_read(qkv_split_name *split, const char *path);
/* Writes the name of part `index` over the name of another one of the same model. */
void qkv_split_name_write(char *path, const qkv_split_name *split, int index);

#endif
