/* The list of packages, and what is asked about it. */
#include "hub/package.h"

#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "hub/package_list.h"

static const size_t count = sizeof packages / sizeof *packages;

size_t qkv_package_count(void) {
    return count;
}

const qkv_package_info *qkv_package_get(size_t index) {
    return index < count ? &packages[index].info : NULL;
}

const qkv_package *qkv_package_find(const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(packages[i].info.name, name) == 0) return &packages[i];
    }
    return NULL;
}

int qkv_package_pull(const char *name, const qkv_pull_options *options, qkv_error *err) {
    const qkv_package *package = qkv_package_find(name);
    if (package) return qkv_package_fetch(package, options, err);
    qkv_text names = {0};
    qkv_nearest near = qkv_nearest_of(name, strlen(name));
    for (size_t i = 0; i < count; i++) {
        qkv_text_printf(&names, "%s%s", i ? ", " : "", packages[i].info.name);
        qkv_nearest_try(&near, packages[i].info.name);
    }
    const int status = qkv_fail(
        err, QKV_ERR_ARGUMENT,
        "there is no model with the short name '%.100s'%s; these are: %s; others are org/name",
        name, qkv_nearest_hint(&near), names.data ? names.data : "");
    qkv_text_release(&names);
    return status;
}
