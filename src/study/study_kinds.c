/* The kinds of studies, one line each, and the fields that all of them have. */
#include "study/study.h"

#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/sized.h"

/* X(name of its study_kind), in the order of lists */
/* clang-format off: one to a line */
#define STUDY_KIND_LIST(X)                                                                         \
    X(qkv_study_next)                                                                              \
    X(qkv_study_measure)                                                                           \
    X(qkv_study_effects)                                                                           \
    X(qkv_study_lens)                                                                              \
    X(qkv_study_patch)                                                                             \
    X(qkv_study_compare)                                                                           \
    X(qkv_study_massive)                                                                           \
    X(qkv_study_check_model)                                                                       \
    X(qkv_study_weights)                                                                           \
    X(qkv_study_roles)                                                                             \
    X(qkv_study_ships)                                                                             \
    X(qkv_study_sahara)                                                                            \
    X(qkv_study_phrase_rates)                                                                      \
    X(qkv_study_streaming)                                                                         \
    X(qkv_study_h2o)                                                                               \
    X(qkv_study_snapkv)                                                                            \
    X(qkv_study_kivi)                                                                              \
    X(qkv_study_retrieval)                                                                         \
    X(qkv_study_modify)                                                                            \
    X(qkv_study_mean)                                                                              \
    X(qkv_study_grid)                                                                              \
    X(qkv_study_heads)                                                                             \
    X(qkv_study_rows)                                                                              \
    X(qkv_study_pattern)
/* clang-format on */

#define STUDY_DECLARE(id) extern const study_kind id;
STUDY_KIND_LIST(STUDY_DECLARE)
#undef STUDY_DECLARE

#define STUDY_ENTRY(id) &(id),
const study_kind *const qkv_study_kinds[] = {STUDY_KIND_LIST(STUDY_ENTRY)};
#undef STUDY_ENTRY
const size_t qkv_study_n_kinds = sizeof qkv_study_kinds / sizeof *qkv_study_kinds;

const study_kind *qkv_study_find_kind(const char *name) {
    for (size_t i = 0; i < qkv_study_n_kinds; i++) {
        if (strcmp(qkv_study_kinds[i]->name, name) == 0) return qkv_study_kinds[i];
    }
    return NULL;
}

const study_kind *qkv_study_find_recorded(const char *name) {
    for (size_t i = 0; i < qkv_study_n_kinds; i++) {
        const char *former = qkv_study_kinds[i]->former;
        if (former && strcmp(former, name) == 0) return qkv_study_kinds[i];
    }
    return qkv_study_find_kind(name);
}

const char *qkv_study_kind_name(size_t index) {
    return index < qkv_study_n_kinds ? qkv_study_kinds[index]->name : NULL;
}

static int fail_kind(const char *kind, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(kind, strlen(kind));
    for (size_t i = 0; i < qkv_study_n_kinds; i++) qkv_nearest_try(&near, qkv_study_kinds[i]->name);
    return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no study \"%.40s\"%s", kind,
                    qkv_nearest_hint(&near));
}

int qkv_study_get_kind(const char *name, qkv_study_kind *kind, qkv_error *err) {
    QKV_NEED(err, name);
    QKV_NEED(err, kind);
    const study_kind *found = qkv_study_find_kind(name);
    if (!found) return fail_kind(name, err);
    const qkv_study_kind own = {.name = found->name,
                                .former = found->former,
                                .command = found->command ? found->command : found->name,
                                .formats = qkv_study_formats(found),
                                .title = found->title,
                                .description = found->description,
                                .examples = found->examples,
                                .least_prompts = found->least_prompts,
                                .most_prompts = found->most_prompts,
                                .prompt_names = found->prompt_names,
                                .default_prompts = found->default_prompts,
                                .operand = found->operand,
                                .n_models = found->needs_other ? 2 : 1,
                                .resumes = found->keeps_results,
                                .has_cells = found->cells != NULL};
    return qkv_sized_write(kind, &own, sizeof own, "qkv_study_kind", err);
}

int qkv_study_new(qkv_study **out, const char *kind, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, kind);
    const study_kind *found = qkv_study_find_kind(kind);
    if (!found) return fail_kind(kind, err);
    qkv_study *study = qkv_calloc(1, sizeof *study);
    if (!study) return qkv_fail_memory(err);
    study->kind = found;
    for (int i = 0; i < 3; i++) {
        study->set[i] = json_object();
        study->failed |= !study->set[i];
    }
    if (!study->failed) return *out = study, QKV_OK;
    qkv_study_free(study);
    return qkv_fail_memory(err);
}

/* ---- fields ---- */

#define DRAWN "png|svg|pdf"
#define LOOK(member, kind, words, least, most, value, help, outputs, former)                       \
    {                                                                                              \
#member, FIELD_##kind, offsetof(study_look, member), words, least, most, value, help,      \
            outputs, former                                                                        \
    }

/* clang-format off: a field to two or three lines */
/* The first of them are also of kinds without pictures. */
enum { N_TABLE_LOOK = 3 };
static const field look_fields[] = {
    LOOK(table, TEXT, NULL, 0, 200, "NAME",
         "which table is printed and written as CSV (default: the first)", NULL, NULL),
    LOOK(title, TEXT, NULL, 0, 4000, "TEXT",
         "title of the picture or page; *text* is italic, '' is none", DRAWN "|html", NULL),
    LOOK(no_recipe, FLAG, NULL, 0, 0, NULL, "leave out of files how they were made", NULL, NULL),
    LOOK(picture, TEXT, NULL, 0, 200, "NAME", "which picture is drawn (default: the first)",
         DRAWN "|html", NULL),
    LOOK(colormap, WORD, "auto|coolwarm|viridis|cividis|magma|grey", 0, 0, NULL,
         "colours of a heatmap", DRAWN "|html", NULL),
    LOOK(dpi, REAL, NULL, 10, 2400, "N", "resolution of a PNG (default 150, with `width` 300)",
         "png", NULL),
    LOOK(
        text, WORD, "auto|paths|text", 0, 0, NULL,
        "letters as outlines, which look the same everywhere, or as text, which can be searched and edited (default: "
        "text in a PDF, which brings its fonts along; paths in an SVG)",
        "svg|pdf", NULL),
    LOOK(font, TEXT, NULL, 0, 200, "FAMILY", "family of the letters (default DejaVu Sans)", DRAWN,
         NULL),
    LOOK(width, LENGTH, NULL, 1, 14400, "LENGTH",
         "width of the page, e.g. 85mm, 8.5cm, 3.3in or 240pt; letters keep 5 points at least",
         DRAWN, NULL),
    LOOK(
        font_size, REAL, NULL, 5, 72, "POINTS",
        "size of the names of axes; other letters in proportion, none below 5 points (default 8, or what `width` "
        "allows)",
        DRAWN, NULL),
    LOOK(no_notes, FLAG, NULL, 0, 0, NULL, "leave out the small print", DRAWN, "hide_notes"),
};

/* The first of them are of kinds with edits, the last one of kinds that continue. */
enum { N_EDIT_FIELDS = 3 };
#define PAGE_FIELD                                                                                 \
    FIELD_FLAGGED(study_asked, page,                                                               \
                  "keep what an HTML page needs: the attention that its cells open")
static const field input_fields[] = {
    FIELD(study_asked, source, LIST, "NAME=TEXT", 0, STUDY_MOST_TEXT,
          "the prompt that patch:NAME takes its values from"),
    FIELD(study_asked, set_prompts, FILE, "FILE", 0, 1 << 24,
          "prompts that mean:set and patch:resample are about, one per line"),
    FIELD_FLAGGED(study_asked, read_vectors,
                  "read the vectors that edits take from files, @FILE#NAME"),
    PAGE_FIELD,
    FIELD(study_asked, results, PATH, "FILE", 0, 1 << 16,
          "store what a long study computes in this file, SQLite, and continue from what it holds"),
};
static const field figure_input_fields[] = {
    PAGE_FIELD,
    FIELD_FLAGGED(study_asked, report, "measure what a report of the figure says"),
};
/* clang-format on */
const field_table qkv_study_look_table = FIELD_TABLE(look_fields, QKV_FIELD_LOOK);

void qkv_study_tables(const study_kind *kind, field_table tables[3]) {
    const field_table inputs = FIELD_TABLE(input_fields, QKV_FIELD_INPUT);
    const field_table figure_inputs = FIELD_TABLE(figure_input_fields, QKV_FIELD_INPUT);
    field_table *input = &tables[QKV_FIELD_INPUT];
    tables[QKV_FIELD_WORK] = kind->fields;
    tables[QKV_FIELD_WORK].use = QKV_FIELD_WORK;
    tables[QKV_FIELD_LOOK] = kind->figure ? kind->look : qkv_study_look_table;
    if (kind->no_pictures) tables[QKV_FIELD_LOOK].n = N_TABLE_LOOK;
    *input = kind->figure ? figure_inputs : inputs;
    if (kind->figure) return;
    if (!kind->keeps_results) input->n--;
    if (kind->edits) return;
    input->fields += N_EDIT_FIELDS;
    input->n -= N_EDIT_FIELDS;
}

static qkv_field_type type_of(field_kind kind) {
    static const qkv_field_type types[] = {
        [FIELD_FLAG] = QKV_FIELD_FLAG,        [FIELD_INDEX] = QKV_FIELD_INTEGER,
        [FIELD_POSITION] = QKV_FIELD_INTEGER, [FIELD_INT] = QKV_FIELD_INTEGER,
        [FIELD_COUNT] = QKV_FIELD_INTEGER,    [FIELD_REAL] = QKV_FIELD_REAL,
        [FIELD_RANGE] = QKV_FIELD_RANGE,      [FIELD_LENGTH] = QKV_FIELD_LENGTH,
        [FIELD_WORD] = QKV_FIELD_WORD,        [FIELD_TEXT] = QKV_FIELD_TEXT,
        [FIELD_LIST] = QKV_FIELD_LIST,        [FIELD_FILE] = QKV_FIELD_FILE,
        [FIELD_PATH] = QKV_FIELD_PATH,
    };
    return types[kind];
}

int qkv_study_get_field(const char *kind, size_t index, qkv_study_field *to) {
    const study_kind *found = kind ? qkv_study_find_kind(kind) : NULL;
    field_table tables[3];
    size_t t = 0;
    if (!found || !to) return 0;
    qkv_study_tables(found, tables);
    for (; t < 3 && index >= tables[t].n; t++) index -= tables[t].n;
    if (t == 3) return 0;
    const field *f = &tables[t].fields[index];
    const int is_text = type_of(f->kind) >= QKV_FIELD_WORD;
    const qkv_study_field own = {.name = f->name,
                                 .type = type_of(f->kind),
                                 .use = tables[t].use,
                                 .words = f->words,
                                 .least = is_text ? 0 : f->least,
                                 .most = is_text ? 0 : f->most,
                                 .value = f->value,
                                 .help = f->help,
                                 .outputs = f->outputs};
    return qkv_sized_write(to, &own, sizeof own, "qkv_study_field", NULL) == QKV_OK;
}
