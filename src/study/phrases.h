/*
 * Phrases in texts, and how sure a share of texts is.
 *
 * A list of phrases is a text with one in each line; spaces at its ends belong to a phrase, empty lines
 * and the CR of a line's end do not.
 */
#ifndef QKV_STUDY_PHRASES_H
#define QKV_STUDY_PHRASES_H

#include "base/fail.h"

enum { PHRASE_CONTAIN, PHRASE_BEGIN };

typedef struct phrase_list {
    char **items;
    size_t n, capacity;
} phrase_list;

/* Fails where there is none, or one twice. Release it also after a failure. */
int qkv_phrases_read(phrase_list *list, const char *text, qkv_error *err);
void qkv_phrases_release(phrase_list *list);

typedef struct phrase_match {
    int how; /* PHRASE_CONTAIN; PHRASE_BEGIN, where white space at the text's start is skipped */
    int ignore_case; /* of ASCII letters */
} phrase_match;

int qkv_phrase_is_in(const char *phrase, const char *text, const phrase_match *match);
/* Characters, not bytes. */
size_t qkv_phrase_text_length(const char *text);

/* Wilson's score interval of 95 % for a share of k in n; n is at least 1. */
void qkv_wilson_interval(size_t k, size_t n, double *low, double *high);

#endif
