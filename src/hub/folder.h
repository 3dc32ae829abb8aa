/* Folders: made with all above them, removed with all in them. */
#ifndef QKV_HUB_FOLDER_H
#define QKV_HUB_FOLDER_H

#include <stdint.h>

#include "base/fail.h"

/* Makes the folder and those above it, where they are not there yet. */
int qkv_folder_make(const char *path, qkv_error *err);
/* Links are removed, not followed. What cannot be removed stays. */
void qkv_folder_remove(const char *path);
/* Fails where less than so many bytes are free below the folder, which must exist. */
int qkv_folder_check_space(const char *path, uint64_t needed, qkv_error *err);

#endif
