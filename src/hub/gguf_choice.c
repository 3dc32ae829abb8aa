#include "hub/gguf_choice.h"

#include <string.h>

#include "base/file.h"
#include "base/split_name.h"

/* So many are listed in a message. */
#define MAX_LISTED 24

static int starts_with_ignoring_case(const char *text, const char *start) {
    while (*start && qkv_lower(*text) == qkv_lower(*start)) text++, start++;
    return !*start;
}

static int has_word(const char *text, const char *word) {
    while (*text && !starts_with_ignoring_case(text, word)) text++;
    return *text != '\0';
}

int qkv_gguf_is_file_name(const char *text) {
    return qkv_equal_ignoring_case(qkv_path_suffix(text), "gguf");
}

int qkv_gguf_is_choice(const char *name) {
    const char *base = qkv_path_base(name);
    qkv_split_name split;
    if (!qkv_gguf_is_file_name(base)) return 0;
    if (has_word(base, "mmproj") || starts_with_ignoring_case(base, "imatrix")) return 0;
    return !qkv_split_name_read(&split, name) || split.index == 1;
}

/* ---- quantisations ---- */

/* Without "-00001-of-00003.gguf" or ".gguf". */
static size_t stem_length(const char *name) {
    qkv_split_name split;
    if (qkv_split_name_read(&split, name)) return split.prefix;
    return strlen(name) - strlen(qkv_path_suffix(name)) - 1;
}

static int is_boundary(const char *name, size_t at) {
    return at == 0 || strchr("-._/", name[at - 1]) != NULL;
}

/* An underscore continues the name of a quantisation, and does not end it. */
static size_t word_length(const char *text, size_t most) {
    const size_t length = strcspn(text, "-./");
    return length < most ? length : most;
}

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Q4_K_M, IQ2_XXS, TQ1_0, F16, BF16, FP16, F32, MXFP4_MOE */
static int is_quant(const char *text, size_t length) {
    static const char *const plain[] = {"F16", "BF16", "FP16", "F32", "FP32"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (length == strlen(plain[i]) && starts_with_ignoring_case(text, plain[i])) return 1;
    }
    if (starts_with_ignoring_case(text, "MXFP4")) return length == 5 || text[5] == '_';
    const char first = qkv_lower(text[0]);
    const size_t q = first == 'i' || first == 't';
    if (length < q + 2 || qkv_lower(text[q]) != 'q' || !is_digit(text[q + 1])) return 0;
    return length == q + 2 || text[q + 2] == '_';
}

int qkv_gguf_has_quant(const char *name, const char *quant) {
    const size_t n = stem_length(name), length = strlen(quant);
    for (size_t at = 0; length && at + length <= n; at++) {
        if (!is_boundary(name, at) || !starts_with_ignoring_case(name + at, quant)) continue;
        /* After an underscore may stand the rest of another one: the K_M of Q4_K_M. */
        if (at && name[at - 1] == '_' && !is_quant(name + at, word_length(name + at, n - at)))
            continue;
        if (at + length == n || strchr("-./", name[at + length])) return 1;
    }
    return 0;
}

/* The last one in the name, with its "UD-": where it begins, and its length, 0 where there is none. */
static const char *find_quant(const char *name, size_t *length) {
    const size_t n = stem_length(name);
    for (size_t at = n; at-- > 0;) {
        *length = word_length(name + at, n - at);
        if (!is_boundary(name, at) || !is_quant(name + at, *length)) continue;
        if (at < 3 || !is_boundary(name, at - 3) || memcmp(name + at - 3, "UD-", 3) != 0)
            return name + at;
        *length += 3;
        return name + at - 3;
    }
    *length = 0;
    return NULL;
}

/* ---- choosing ---- */

/* How many of the names carry it; *index is the first. */
static size_t count_quant(const char *const *names, size_t n, const char *quant, size_t *index) {
    size_t count = 0;
    for (size_t i = n; i-- > 0;) {
        if (!qkv_gguf_has_quant(names[i], quant)) continue;
        *index = i;
        count++;
    }
    return count;
}

void qkv_gguf_append_choice(qkv_text *text, const char *const *names, size_t n, size_t i) {
    size_t length, first;
    char quant[64];
    const char *found = find_quant(names[i], &length);
    if (length > 0 && length < sizeof quant) {
        memcpy(quant, found, length);
        quant[length] = '\0';
        if (count_quant(names, n, quant, &first) == 1) {
            qkv_text_puts(text, quant);
            return;
        }
    }
    qkv_text_puts(text, names[i]);
}

/* "Q4_K_M, Q8_0, tiny.gguf": those that carry `quant`, or all. */
static void append_choices(qkv_text *text, const char *const *names, size_t n, const char *quant) {
    size_t listed = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        if (quant && !qkv_gguf_has_quant(names[i], quant)) continue;
        if (listed == MAX_LISTED) {
            left++;
            continue;
        }
        if (listed++) qkv_text_puts(text, ", ");
        if (quant)
            qkv_text_puts(text, names[i]);
        else
            qkv_gguf_append_choice(text, names, n, i);
    }
    if (left) qkv_text_printf(text, " and %zu more", left);
}

static int fail_several(qkv_error *err, const char *const *names, size_t n, const char *wanted,
                        const char *model) {
    qkv_text list = {0};
    append_choices(&list, names, n, wanted);
    const char *all = list.data ? list.data : "";
    const int status =
        wanted ? qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s has several GGUF files of %s: %.600s; choose one with %s:FILE", model,
                          wanted, all, model)
               : qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s has %zu GGUF files: %.600s; choose one, as in %s:%.*s", model, n, all,
                          model, (int)strcspn(all, ","), all);
    qkv_text_release(&list);
    return status;
}

static int fail_none(qkv_error *err, const char *const *names, size_t n, const char *wanted,
                     const char *model) {
    qkv_text list = {0};
    append_choices(&list, names, n, NULL);
    const int status =
        qkv_fail(err, QKV_ERR_IO, "%s has no GGUF file%s%s%s%.700s", model, wanted ? " " : "",
                 wanted ? wanted : "", n ? "; it has " : "", list.data ? list.data : "");
    qkv_text_release(&list);
    return status;
}

/* By its path, or by the last part of it. */
static size_t count_file(const char *const *names, size_t n, const char *file, size_t *index) {
    size_t count = 0;
    for (size_t i = n; i-- > 0;) {
        if (strcmp(names[i], file) == 0) {
            *index = i;
            return 1;
        }
        if (strcmp(qkv_path_base(names[i]), file) != 0) continue;
        *index = i;
        count++;
    }
    return count;
}

int qkv_gguf_choose(size_t *index, const char *const *names, size_t n, const char *wanted,
                    const char *model, qkv_error *err) {
    *index = 0;
    const int by_file = wanted && qkv_gguf_is_file_name(wanted);
    const size_t count = by_file  ? count_file(names, n, wanted, index)
                         : wanted ? count_quant(names, n, wanted, index)
                                  : n;
    if (count == 1) return QKV_OK;
    if (count == 0) return fail_none(err, names, n, wanted, model);
    return fail_several(err, names, n, by_file ? NULL : wanted, model);
}
