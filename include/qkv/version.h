/*
 * The version of the library: of the header that a program was compiled with, and of the library
 * that it runs with.
 *
 *     printf("compiled for %s, running with %s\n", QKV_VERSION, qkv_version());
 *     #if QKV_VERSION_MAJOR == 0
 *     printf("the interface may still change between minor versions\n");
 *     #endif
 *
 * This file is where the version is written down; the build reads it from here. Any thread may ask.
 */
#ifndef QKV_VERSION_H
#define QKV_VERSION_H

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_VERSION_MAJOR 0
#define QKV_VERSION_MINOR 2
#define QKV_VERSION_PATCH 0
#define QKV_VERSION "0.2.0"

/* The same text, of the library. */
QKV_API const char *qkv_version(void);

#ifdef __cplusplus
}
#endif

#endif
