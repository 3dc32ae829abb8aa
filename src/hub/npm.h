/* Packages of the npm registry, fetched by npm itself, so that its settings hold: registry, proxy,
 * token, cache. */
#ifndef QKV_HUB_NPM_H
#define QKV_HUB_NPM_H

#include "base/steps.h"
#include "base/text.h"

/* Fetches NAME@VERSION into the folder, which must be empty, and appends the path of the archive. */
int qkv_npm_fetch(qkv_text *archive, const char *package, const char *folder, qkv_steps *steps,
                  qkv_error *err);

#endif
