/* Folders: gone through (without names that begin with a dot), made with all above them, removed
 * with all in them. */
#ifndef QKV_HUB_FOLDER_H
#define QKV_HUB_FOLDER_H

#include <stdint.h>

#include "base/fail.h"

/* Is called with the path of an entry, and with its name as seen from `root`: "a", "below/a". What is
 * not QKV_OK ends it. */
typedef int qkv_folder_visitor(void *user, const char *path, const char *name, qkv_error *err);

/* Visits the entries of root/below, in no order; `below` may be "". A folder that is not there is
 * empty; one that cannot be read is an error. */
int qkv_folder_visit(const char *root, const char *below, qkv_folder_visitor *visitor, void *user,
                     qkv_error *err);

/* How many folders lie between `root` and the entry of that name. */
int qkv_folder_depth(const char *name);

/* Makes the folder and those above it, where they are not there yet. */
int qkv_folder_make(const char *path, qkv_error *err);
/* Links are removed, not followed. What cannot be removed stays. */
void qkv_folder_remove(const char *path);
/* Fails where less than so many bytes are free below the folder, which must exist. */
int qkv_folder_check_space(const char *path, uint64_t needed, qkv_error *err);

#endif
