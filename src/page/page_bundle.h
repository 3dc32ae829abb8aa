/*
 * Files of the page as one script, or two.
 *
 * Modules import each other in single lines at their top, `import { a, b } from './x.js';`, and begin
 * lines with `export `. In a bundle the modules follow each other, each after those that it imports,
 * without these, without indentation and without lines that are comments alone. Top-level names are
 * unique across modules, and no template string spans lines, so nothing else has to change.
 */
#ifndef QKV_PAGE_PAGE_BUNDLE_H
#define QKV_PAGE_PAGE_BUNDLE_H

#include "base/text.h"

/* Appends a module and all that it imports. QKV_ERR_FORMAT where one of them is not there. */
int qkv_page_bundle(const char *module, qkv_text *out, qkv_error *err);

/* Two scripts, so that the first runs before the other is read: a module and its imports, and another
 * module with those of its imports that the first does not hold. The second imports `first_name`. */
int qkv_page_bundle_pair(const char *first, qkv_text *first_out, const char *first_name,
                         const char *module, qkv_text *out, qkv_error *err);

/* Appends the source of a Content-Security-Policy that allows this inline script or style:
 * 'sha256-...'. */
int qkv_page_policy_hash(const char *bytes, size_t n, qkv_text *out, qkv_error *err);

#endif
