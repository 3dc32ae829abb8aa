/*
 * JSON of other programs, as a tree: every file of a directory is read through this.
 *
 * JSON sets no limit to its numbers, but jansson refuses those that it cannot hold: transformers
 * writes int(1e30) for "no limit". Here an integer beyond 64 bits becomes the nearest double, and a
 * number beyond all doubles the largest of its sign. So do Python's Infinity and NaN, which are not JSON
 * and which its programs write all the same: what is too large is refused where a number counts.
 */
#ifndef QKV_FORMAT_JSON_READ_H
#define QKV_FORMAT_JSON_READ_H

#include <jansson.h>
#include <stddef.h>

/* As json_loadb. */
json_t *qkv_json_load(const char *text, size_t length, size_t flags, json_error_t *where);

#endif
