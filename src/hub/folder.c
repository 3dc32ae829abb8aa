#define _POSIX_C_SOURCE 200809L
#include "hub/folder.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"

static int visit_entry(const char *root, const char *below, const char *entry,
                       qkv_folder_visitor *visitor, void *user, qkv_error *err) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s%s%s", root, below, below[0] ? "/" : "", entry);
    const int status = path.failed ? qkv_fail_memory(err)
                                   : visitor(user, path.data, path.data + strlen(root) + 1, err);
    qkv_text_release(&path);
    return status;
}

int qkv_folder_visit(const char *root, const char *below, qkv_folder_visitor *visitor, void *user,
                     qkv_error *err) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s", root, below);
    if (path.failed) return qkv_fail_memory(err);
    DIR *directory = opendir(path.data);
    int status = QKV_OK;
    if (!directory && errno != ENOENT && errno != ENOTDIR)
        status = qkv_fail(err, QKV_ERR_IO, "cannot read %s: %s", path.data, strerror(errno));
    const struct dirent *entry;
    while (status == QKV_OK && directory && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.')
            status = visit_entry(root, below, entry->d_name, visitor, user, err);
    }
    if (directory) closedir(directory);
    qkv_text_release(&path);
    return status;
}

int qkv_folder_depth(const char *name) {
    int depth = 0;
    for (; *name; name++) depth += *name == '/';
    return depth;
}
