/*
 * The steps of a normaliser. Each reads one text and writes another; malformed UTF-8 is passed on
 * as it is, but where a step replaces or drops U+FFFD.
 */
#include "tokenizer/normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/regex.h"
#include "tokenizer/unicode_text.h"

enum { MAX_STEPS = 64, MAX_ARGUMENTS = 4, MAX_ARGUMENT_LENGTH = 1024 };

typedef struct step {
    const struct step_kind *kind;
    char *arguments[MAX_ARGUMENTS];
    size_t lengths[MAX_ARGUMENTS];
    qkv_regex *pattern;
} step;

struct qkv_normalizer {
    step steps[MAX_STEPS];
    size_t n_steps;
    const qkv_charsmap *charsmap;
};

typedef struct stretch {
    const qkv_normalizer *normalizer;
    const char *text;
    size_t length;
    qkv_stretch_place place;
    qkv_match_budget *budget;
} stretch;

typedef int step_run(const step *s, const stretch *in, qkv_text *out, qkv_error *err);

#define QKV_NORMALIZER_DECLARE(name, count) static step_run run_##name;
QKV_NORMALIZER_LIST(QKV_NORMALIZER_DECLARE)
#undef QKV_NORMALIZER_DECLARE

static const struct step_kind {
    const char *name;
    size_t n_arguments;
    step_run *run;
} kinds[] = {
#define QKV_NORMALIZER_KIND(name, count) {#name, count, run_##name},
    QKV_NORMALIZER_LIST(QKV_NORMALIZER_KIND)
#undef QKV_NORMALIZER_KIND
};

/* ---- the steps ---- */

#define NORMAL_FORM(name, flags)                                                                   \
    static int run_##name(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {       \
        (void)s, (void)err;                                                                        \
        qkv_unicode_normalize(out, in->text, in->length, flags);                                   \
        return QKV_OK;                                                                             \
    }
NORMAL_FORM(nfd, 0)
NORMAL_FORM(nfc, QKV_UNICODE_COMPOSE)
NORMAL_FORM(nfkd, QKV_UNICODE_COMPATIBILITY)
NORMAL_FORM(nfkc, QKV_UNICODE_COMPOSE | QKV_UNICODE_COMPATIBILITY)

/* A malformed byte. */
static int is_bad(const char *text, size_t used) {
    return used == 1 && (unsigned char)text[0] >= 0x80;
}

static int run_lowercase(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)s, (void)err;
    for (size_t i = 0, used; i < in->length; i += used) {
        uint32_t code;
        used = qkv_utf8_decode(in->text + i, in->length - i, &code);
        if (is_bad(in->text + i, used))
            qkv_text_append(out, in->text + i, 1);
        else
            qkv_unicode_append_lower(out, code);
    }
    return QKV_OK;
}

static int run_strip_accents(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)s, (void)err;
    for (size_t i = 0, used; i < in->length; i += used) {
        uint32_t code;
        used = qkv_utf8_decode(in->text + i, in->length - i, &code);
        if (!qkv_unicode_is_mark(code)) qkv_text_append(out, in->text + i, used);
    }
    return QKV_OK;
}

/* Where the white space at the start ends. */
static size_t skip_white(const char *text, size_t length) {
    size_t at = 0;
    for (uint32_t code; at < length;) {
        size_t used = qkv_utf8_decode(text + at, length - at, &code);
        if (!qkv_unicode_is_white(code)) break;
        at += used;
    }
    return at;
}

/* Where the white space at the end starts. */
static size_t trim_white(const char *text, size_t length) {
    size_t end = length;
    while (end > 0) {
        size_t start = end - 1;
        uint32_t code;
        while (start > 0 && end - start < 4 && ((unsigned char)text[start] & 0xc0) == 0x80) start--;
        if (qkv_utf8_decode(text + start, end - start, &code) != end - start ||
            !qkv_unicode_is_white(code))
            break;
        end = start;
    }
    return end;
}

static int run_strip(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)err;
    size_t start = s->arguments[0][0] == '1' ? skip_white(in->text, in->length) : 0;
    size_t end = s->arguments[1][0] == '1' ? trim_white(in->text, in->length) : in->length;
    if (end > start) qkv_text_append(out, in->text + start, end - start);
    return QKV_OK;
}

static int put_before(const step *s, const stretch *in, qkv_text *out, int wanted) {
    if (wanted && in->length > 0 && in->place != QKV_STRETCH_CONTINUES)
        qkv_text_append(out, s->arguments[0], s->lengths[0]);
    qkv_text_append(out, in->text, in->length);
    return QKV_OK;
}

static int starts_with(const stretch *in, const char *text, size_t length) {
    return in->length >= length && memcmp(in->text, text, length) == 0;
}

static int run_prepend(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)err;
    return put_before(s, in, out, 1);
}

static int run_prefix(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)err;
    return put_before(s, in, out, !starts_with(in, s->arguments[0], s->lengths[0]));
}

static int run_prefix_first(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)err;
    return put_before(s, in, out,
                      in->place == QKV_STRETCH_FIRST &&
                          !starts_with(in, s->arguments[0], s->lengths[0]));
}

static int run_replace(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)err;
    const char *from = s->arguments[0];
    size_t start = 0, at = 0, n = s->lengths[0];
    while (at + n <= in->length) {
        const char *hit = memchr(in->text + at, from[0], in->length - at - n + 1);
        if (!hit) break;
        at = (size_t)(hit - in->text);
        if (memcmp(hit, from, n) != 0) {
            at++;
            continue;
        }
        qkv_text_append(out, in->text + start, at - start);
        qkv_text_append(out, s->arguments[1], s->lengths[1]);
        start = at += n;
    }
    qkv_text_append(out, in->text + start, in->length - start);
    return QKV_OK;
}

static int run_replace_pattern(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    qkv_match_list matches = {0};
    int status = qkv_regex_find_all(s->pattern, in->text, in->length, in->budget, &matches, err);
    size_t at = 0;
    for (size_t i = 0; i < matches.count && status == QKV_OK; i++) {
        qkv_text_append(out, in->text + at, matches.spans[i].start - at);
        qkv_text_append(out, s->arguments[1], s->lengths[1]);
        at = matches.spans[i].end;
    }
    qkv_text_append(out, in->text + at, in->length - at);
    free(matches.spans);
    return status;
}

/* White space becomes a space, control characters and other characters that are not text are dropped. */
static void clean(const stretch *in, qkv_text *out) {
    for (size_t i = 0, used; i < in->length; i += used) {
        uint32_t code;
        used = qkv_utf8_decode(in->text + i, in->length - i, &code);
        int white = code == '\t' || code == '\n' || code == '\r';
        if (code == 0 || code == 0xfffd || (!white && qkv_unicode_is_control(code))) continue;
        if (white || qkv_unicode_is_white(code))
            qkv_text_puts(out, " ");
        else
            qkv_text_append(out, in->text + i, used);
    }
}

/* Ideographs become words of their own, marks go, capitals become small: as the flags say. */
static void simplify(const char *text, size_t length, const step *s, qkv_text *out) {
    int cjk = s->arguments[1][0] == '1', strip = s->arguments[2][0] == '1';
    int lower = s->arguments[3][0] == '1';
    for (size_t i = 0, used; i < length; i += used) {
        uint32_t code;
        used = qkv_utf8_decode(text + i, length - i, &code);
        int apart = cjk && qkv_unicode_is_ideograph(code);
        if (strip && qkv_unicode_is_nonspacing(code)) continue;
        if (apart) qkv_text_puts(out, " ");
        if (lower && !is_bad(text + i, used))
            qkv_unicode_append_lower(out, code);
        else
            qkv_text_append(out, text + i, used);
        if (apart) qkv_text_puts(out, " ");
    }
}

static int run_bert(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)err;
    qkv_text cleaned = {0}, apart = {0};
    const char *text = in->text;
    size_t length = in->length;
    if (s->arguments[0][0] == '1') {
        clean(in, &cleaned);
        text = cleaned.data ? cleaned.data : "";
        length = cleaned.length;
    }
    if (s->arguments[2][0] == '1') {
        qkv_unicode_normalize(&apart, text, length, 0);
        text = apart.data ? apart.data : "";
        length = apart.length;
    }
    simplify(text, length, s, out);
    if (cleaned.failed || apart.failed) out->failed = 1;
    qkv_text_release(&cleaned);
    qkv_text_release(&apart);
    return QKV_OK;
}

static int nmt_drops(uint32_t code) {
    return (code >= 1 && code <= 8) || code == 0xb || (code >= 0xe && code <= 0x1f) ||
           code == 0x7f || code == 0x8f || code == 0x9f;
}

static int nmt_blank(uint32_t code) {
    return code == 9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680 ||
           (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 ||
           code == 0x2581 || code == 0xfeff || code == 0xfffd;
}

static int run_nmt(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)s, (void)err;
    for (size_t i = 0, used; i < in->length; i += used) {
        uint32_t code;
        used = qkv_utf8_decode(in->text + i, in->length - i, &code);
        if (nmt_drops(code)) continue;
        if (nmt_blank(code))
            qkv_text_puts(out, " ");
        else
            qkv_text_append(out, in->text + i, used);
    }
    return QKV_OK;
}

static int run_precompiled(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)s, (void)err;
    qkv_charsmap_apply(in->normalizer->charsmap, out, in->text, in->length);
    return QKV_OK;
}

static int join_runs(const stretch *in, qkv_text *out, int all_white) {
    int pending = 0;
    for (size_t i = 0, used; i < in->length; i += used) {
        uint32_t code;
        used = qkv_utf8_decode(in->text + i, in->length - i, &code);
        if (all_white ? qkv_unicode_is_white(code) : code == ' ') {
            pending = 1;
            continue;
        }
        if (pending && out->length > 0) qkv_text_puts(out, " ");
        pending = 0;
        qkv_text_append(out, in->text + i, used);
    }
    return QKV_OK;
}

static int run_join_blanks(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)s, (void)err;
    return join_runs(in, out, 0);
}

static int run_join_white(const step *s, const stretch *in, qkv_text *out, qkv_error *err) {
    (void)s, (void)err;
    return join_runs(in, out, 1);
}

/* ---- building and running ---- */

static const struct step_kind *find_step(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    }
    return NULL;
}

static int check_step(const qkv_normalizer *normalizer, const step *s, const char *path,
                      qkv_error *err) {
    if (s->kind->run == run_precompiled && !normalizer->charsmap)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: the normalizer asks for a precompiled character map; there is none",
                        path);
    if ((s->kind->run == run_replace || s->kind->run == run_replace_pattern) && s->lengths[0] == 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the normalizer replaces an empty text", path);
    return QKV_OK;
}

static int add_step(qkv_normalizer *normalizer, const struct step_kind *kind,
                    const char *const *words, const char *path, qkv_error *err) {
    if (normalizer->n_steps == MAX_STEPS)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: the normalizer has more than %d steps", path,
                        MAX_STEPS);
    step *s = &normalizer->steps[normalizer->n_steps++];
    s->kind = kind;
    for (size_t i = 0; i < kind->n_arguments; i++) {
        s->lengths[i] = strlen(words[i]);
        if (s->lengths[i] > MAX_ARGUMENT_LENGTH)
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "%s: a text of normalizer step %s has more than %d bytes", path,
                            kind->name, MAX_ARGUMENT_LENGTH);
        s->arguments[i] = qkv_strdup(words[i]);
        if (!s->arguments[i]) return qkv_fail_memory(err);
    }
    int status = check_step(normalizer, s, path, err);
    if (status != QKV_OK || kind->run != run_replace_pattern) return status;
    return qkv_regex_new(&s->pattern, words[0], "normalizer", path, err);
}

int qkv_normalizer_new(qkv_normalizer **out, const char *const *words, size_t n_words,
                       const qkv_charsmap *charsmap, const char *path, qkv_error *err) {
    int status = QKV_OK;
    *out = NULL;
    qkv_normalizer *normalizer = qkv_calloc(1, sizeof *normalizer);
    if (!normalizer) return qkv_fail_memory(err);
    normalizer->charsmap = charsmap;
    for (size_t i = 0; i < n_words && status == QKV_OK;) {
        const struct step_kind *kind = find_step(words[i]);
        if (!kind)
            status = qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: there is no normalizer step '%.64s'",
                              path, words[i]);
        else if (kind->n_arguments > n_words - i - 1)
            status = qkv_fail(err, QKV_ERR_FORMAT, "%s: normalizer step %s takes %zu arguments",
                              path, kind->name, kind->n_arguments);
        else
            status = add_step(normalizer, kind, words + i + 1, path, err);
        if (kind) i += 1 + kind->n_arguments;
    }
    if (status == QKV_OK)
        *out = normalizer;
    else
        qkv_normalizer_free(normalizer);
    return status;
}

void qkv_normalizer_free(qkv_normalizer *normalizer) {
    if (!normalizer) return;
    for (size_t i = 0; i < normalizer->n_steps; i++) {
        for (size_t k = 0; k < MAX_ARGUMENTS; k++) free(normalizer->steps[i].arguments[k]);
        qkv_regex_free(normalizer->steps[i].pattern);
    }
    free(normalizer);
}

/* No step makes a text grow more than this in earnest; a hostile list of them would. Positions are
 * 32 bits. */
static int fits(const qkv_text *text, size_t original) {
    return text->length <= original * 64 + 65536 && text->length <= INT32_MAX;
}

/* What is put before words rather than before texts: the pre-tokeniser's doing in a tokenizer.json. */
static int is_word_step(const step *s) {
    return s->kind->run == run_prefix || s->kind->run == run_prefix_first;
}

static int puts_before(const qkv_normalizer *normalizer) {
    for (size_t i = 0; i < normalizer->n_steps; i++) {
        if (normalizer->steps[i].kind->run == run_prepend || is_word_step(&normalizer->steps[i]))
            return 1;
    }
    return 0;
}

static int run_steps(const qkv_normalizer *normalizer, qkv_text *out, const char *text,
                     size_t length, qkv_stretch_place place, int words, qkv_match_budget *budget,
                     qkv_error *err) {
    qkv_text next = {0};
    int status = QKV_OK;
    out->length = 0;
    qkv_text_append(out, text, length);
    for (size_t i = 0; i < normalizer->n_steps && status == QKV_OK; i++) {
        const step *s = &normalizer->steps[i];
        if (!words && is_word_step(s)) continue;
        if (out->failed) break;
        const stretch in = {normalizer, out->data, out->length, place, budget};
        next.length = 0;
        qkv_text_puts(&next, "");
        status = s->kind->run(s, &in, &next, err);
        if (status == QKV_OK && !fits(&next, length))
            status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                              "normalizer step %s makes %zu bytes of %zu: too many", s->kind->name,
                              next.length, length);
        const qkv_text swap = *out;
        *out = next;
        next = swap;
    }
    if (status == QKV_OK && (out->failed || next.failed)) status = qkv_fail_memory(err);
    qkv_text_release(&next);
    return status;
}

int qkv_normalizer_run(const qkv_normalizer *normalizer, qkv_text *out, const char *text,
                       size_t length, qkv_stretch_place place, qkv_match_budget *budget,
                       qkv_error *err) {
    /* What would be put before the text stands for its own space, which other steps may drop. */
    if (place == QKV_STRETCH_CONTINUES && length > 1 && text[0] == ' ' && puts_before(normalizer))
        return run_steps(normalizer, out, text + 1, length - 1, QKV_STRETCH_FIRST, 1, budget, err);
    return run_steps(normalizer, out, text, length, place, 1, budget, err);
}

int qkv_normalizer_form(const qkv_normalizer *normalizer, qkv_text *out, const char *text,
                        size_t length, qkv_match_budget *budget, qkv_error *err) {
    return run_steps(normalizer, out, text, length, QKV_STRETCH_LATER, 0, budget, err);
}
