/* Fetching models by name. */
#include "hub/package.h"

int qkv_pull(const char *name, const qkv_pull_options *options, qkv_error *err) {
    QKV_NEED(err, name);
    return qkv_package_pull(name, options, err);
}
