#define _POSIX_C_SOURCE 200809L
#include "hub/name.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* The hub allows no more in either part of a repository's name. */
#define MAX_PART 96
#define MAX_REVISION 255

static int is_word(char c) {
    return qkv_is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* A part of a repository's name, as the hub has them: letters, digits, '-', '_', '.', not first or last
 * a dot or dash, no two of either together ("--" parts the names of folders in the cache), no ".git". */
static int is_part(const char *text, size_t length) {
    if (length == 0 || length > MAX_PART) return 0;
    for (size_t i = 0; i < length; i++) {
        const int is_twice = text[i] == text[i + 1] && strchr(".-", text[i]);
        if (!is_word(text[i]) || is_twice) return 0;
    }
    if (length >= 4 && memcmp(text + length - 4, ".git", 4) == 0) return 0;
    return !strchr(".-", text[0]) && !strchr(".-", text[length - 1]);
}

int qkv_hub_path_is_safe(const char *path) {
    for (const char *part = path;;) {
        const size_t length = strcspn(part, "/");
        if (length == 0 || strncmp(part, "..", length) == 0) return 0;
        for (size_t i = 0; i < length; i++) {
            if ((unsigned char)part[i] < ' ' || part[i] == '\\' || part[i] == 0x7f) return 0;
        }
        if (!part[length]) return 1;
        part += length + 1;
    }
}

static int is_revision(const char *text, size_t length) {
    char copy[MAX_REVISION + 1];
    if (length == 0 || length > MAX_REVISION) return 0;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return qkv_hub_path_is_safe(copy) && strcspn(copy, " ~^:?*[") == length;
}

/* Where the parts of a name are; lengths without their '@' and ':'. */
typedef struct pieces {
    size_t repository;
    const char *revision, *file;
    size_t revision_length;
} pieces;

static int split(pieces *p, const char *text, int has_org) {
    const size_t org = strcspn(text, "/@:");
    if ((text[org] == '/') != has_org || !is_part(text, org)) return 0;
    const char *name = has_org ? text + org + 1 : text, *end = name + strcspn(name, "/@:");
    if (*end == '/' || !is_part(name, (size_t)(end - name))) return 0;
    *p = (pieces){.repository = (size_t)(end - text)};
    if (*end == '@') {
        p->revision = end + 1;
        p->revision_length = strcspn(p->revision, ":");
        if (!is_revision(p->revision, p->revision_length)) return 0;
        end = p->revision + p->revision_length;
    }
    if (*end == ':') p->file = end + 1;
    return !p->file || qkv_hub_path_is_safe(p->file);
}

int qkv_hub_name_matches(const char *text) {
    pieces p;
    return split(&p, text, 1);
}

int qkv_hub_plain_name_matches(const char *text) {
    pieces p;
    return split(&p, text, 0);
}

static int parse(qkv_hub_name *name, const char *text, int has_org, qkv_error *err) {
    pieces p;
    *name = (qkv_hub_name){0};
    if (!split(&p, text, has_org)) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%.200s' is not a model's name: %sname[@REVISION][:FILE or QUANT]", text,
                        has_org ? "org/" : "");
    }
    name->repository = qkv_strndup(text, p.repository);
    name->revision = p.revision ? qkv_strndup(p.revision, p.revision_length) : strdup("main");
    name->file = p.file ? strdup(p.file) : NULL;
    if (name->repository && name->revision && (name->file || !p.file)) return QKV_OK;
    qkv_hub_name_release(name);
    return qkv_fail_memory(err);
}

int qkv_hub_name_parse(qkv_hub_name *name, const char *text, qkv_error *err) {
    return parse(name, text, 1, err);
}

int qkv_hub_plain_name_parse(qkv_hub_name *name, const char *text, qkv_error *err) {
    return parse(name, text, 0, err);
}

void qkv_hub_name_release(qkv_hub_name *name) {
    free(name->repository);
    free(name->revision);
    free(name->file);
    *name = (qkv_hub_name){0};
}
