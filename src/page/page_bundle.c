/* Modules as one script. See page_bundle.h. */
#include "page/page_bundle.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/base64.h"
#include "page/page_files.h"

enum { MOST_MODULES = 64, MOST_NAME = 64 };

static const char EXPORT[] = "export ";

typedef struct bundle {
    const char *done[MOST_MODULES]; /* names in the table of files */
    size_t n;
    qkv_text *out;
    qkv_text *exports; /* gets "a, b", what lines export; NULL: they lose that word */
} bundle;

/* The name in the table, which outlives everything. */
static const char *table_name(const char *name) {
    const char *known;
    for (size_t i = 0; (known = qkv_page_file_name(i)); i++) {
        if (strcmp(known, name) == 0) return known;
    }
    return NULL;
}

static int begins(const char *line, size_t length, const char *word) {
    return length >= strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

/* import { a } from './NAME'; */
static int imported_name(const char *line, size_t length, char name[MOST_NAME]) {
    const char *end = line + length;
    for (const char *at = line; at + 2 < end; at++) {
        if (memcmp(at, "'./", 3) != 0) continue;
        const char *begin = at + 3, *quote = memchr(begin, '\'', (size_t)(end - begin));
        if (!quote || quote - begin >= MOST_NAME) return 0;
        memcpy(name, begin, (size_t)(quote - begin));
        name[quote - begin] = '\0';
        return 1;
    }
    return 0;
}

static int add_module(bundle *b, const char *name, qkv_error *err);

static int add_imports(bundle *b, const char *bytes, size_t n, qkv_error *err) {
    char name[MOST_NAME];
    int status = QKV_OK;
    for (const char *line = bytes; line < bytes + n && status == QKV_OK;) {
        const size_t length = strcspn(line, "\n");
        if (begins(line, length, "import ") && imported_name(line, length, name)) {
            status = add_module(b, name, err);
        }
        line += length + (line[length] == '\n');
    }
    return status;
}

/* How much of a line is left out at its front: spaces, and `export `. */
static size_t cut_front(const bundle *b, const char *line, size_t length) {
    size_t cut = 0;
    while (cut < length && line[cut] == ' ') cut++;
    return !b->exports && begins(line, length, EXPORT) ? sizeof EXPORT - 1 : cut;
}

/* Notes what a line exports: `export async function NAME(...) {`. */
static void add_export(bundle *b, const char *line, size_t length) {
    static const char *const words[] = {"export ", "async ", "function ",
                                        "class ",  "const ", "let "};
    const char *end = line + length, *name = line;
    if (!b->exports || !begins(line, length, EXPORT)) return;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (begins(name, (size_t)(end - name), words[i])) name += strlen(words[i]);
    }
    const size_t n = strcspn(name, " (={");
    qkv_text_puts(b->exports, b->exports->length ? ", " : "");
    qkv_text_append(b->exports, name, n);
}

/* Lines that are comments alone are for readers of the source. */
static void add_lines(bundle *b, const char *bytes, size_t n) {
    for (const char *line = bytes; line < bytes + n;) {
        const size_t length = strcspn(line, "\n"), cut = cut_front(b, line, length);
        const int is_comment = begins(line + cut, length - cut, "//");
        if (cut < length && !is_comment && !begins(line, length, "import ")) {
            add_export(b, line, length);
            qkv_text_append(b->out, line + cut, length - cut);
            qkv_text_puts(b->out, "\n");
        }
        line += length + (line[length] == '\n');
    }
}

static int add_module(bundle *b, const char *name, qkv_error *err) {
    const char *bytes = NULL, *known = table_name(name);
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (strcmp(b->done[i], name) == 0) return QKV_OK;
    }
    if (!known || !qkv_page_file(name, &bytes, &n) || b->n == MOST_MODULES) {
        return qkv_fail(err, QKV_ERR_FORMAT, "the page has no module %s", name);
    }
    b->done[b->n++] = known; /* also while its imports are added: a circle ends here */
    const int status = add_imports(b, bytes, n, err);
    if (status == QKV_OK) add_lines(b, bytes, n);
    return status;
}

int qkv_page_bundle(const char *module, qkv_text *out, qkv_error *err) {
    bundle b = {.out = out};
    const int status = add_module(&b, module, err);
    return status == QKV_OK && out->failed ? qkv_fail_memory(err) : status;
}

int qkv_page_bundle_pair(const char *first, qkv_text *first_out, const char *first_name,
                         const char *module, qkv_text *out, qkv_error *err) {
    qkv_text names = {0};
    bundle b = {.out = first_out, .exports = &names};
    int status = add_module(&b, first, err);
    qkv_text_printf(out, "import { %s } from './%s';\n", names.length ? names.data : "",
                    first_name);
    b.out = out;
    b.exports = NULL;
    if (status == QKV_OK) status = add_module(&b, module, err);
    const int failed = names.failed || first_out->failed || out->failed;
    qkv_text_release(&names);
    return status == QKV_OK && failed ? qkv_fail_memory(err) : status;
}

int qkv_page_policy_hash(const char *bytes, size_t n, qkv_text *out, qkv_error *err) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_Digest(bytes, n, digest, &length, EVP_sha256(), NULL) != 1) {
        return qkv_fail(err, QKV_ERR_BACKEND, "SHA-256 is not available");
    }
    qkv_text_puts(out, "'sha256-");
    qkv_base64_append(out, digest, length);
    qkv_text_puts(out, "'");
    return out->failed ? qkv_fail_memory(err) : QKV_OK;
}
