/*
 * The known name that a mistyped one was probably meant to be, for messages:
 *
 *     qkv_nearest near = qkv_nearest_of(word, length);
 *     for (...) qkv_nearest_try(&near, name);
 *     return qkv_fail(err, ..., "there is no site '%s'%s", word, qkv_nearest_hint(&near));
 *
 * Letters of another case and '-' for '_' cost nothing, so that Q is q; a wrong, missing, additional
 * or swapped letter costs one, and a third of the word may be wrong. Three letters or more that a
 * name begins with are enough, and one more may follow. Names of one letter are near only by case: any letter is one away.
 */
#ifndef QKV_BASE_NEAREST_H
#define QKV_BASE_NEAREST_H

#include <stddef.h>

enum { QKV_NEAREST_SIZE = 48 }; /* of the longest word that is compared, and of names */

typedef struct qkv_nearest {
    char word[QKV_NEAREST_SIZE];
    size_t length;                    /* 0: nothing is near */
    size_t distance;                  /* of the best name, more than is allowed without one */
    char best[QKV_NEAREST_SIZE];      /* "" without one */
    char hint[QKV_NEAREST_SIZE + 32]; /* " (did you mean 'q'?)" */
} qkv_nearest;

qkv_nearest qkv_nearest_of(const char *word, size_t length);
/* One of the names there are; of several that are equally near the first counts. */
void qkv_nearest_try(qkv_nearest *near, const char *name);
/* One that is known to be meant. */
qkv_nearest qkv_nearest_named(const char *name);
/* What to put after the word in a message; "" when nothing is near. Valid as long as *near. */
const char *qkv_nearest_hint(qkv_nearest *near);

#endif
