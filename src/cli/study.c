/* The commands of studies. See study.h. */
#include "cli/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/messages.h"
#include "cli/sweep.h"

/* ---- options ---- */

static void set(cli_study_job *job, const char *name, json_t *value) {
    if (json_object_set_new(job->options, name, value) == 0) return;
    json_decref(job->options);
    job->options = NULL; /* memory is short, which cli_study_run says */
}

void cli_study_set_text(cli_study_job *job, const char *name, const char *value) {
    if (value) set(job, name, qkv_json_text(value));
}

void cli_study_set_number(cli_study_job *job, const char *name, double value) {
    if (value < 0 || value > 0) set(job, name, qkv_json_exact(value));
}

void cli_study_set_flag(cli_study_job *job, const char *name, int value) {
    if (value) set(job, name, json_true());
}

void cli_study_set_word(cli_study_job *job, const char *name, const char *words, int value) {
    for (; value > 0 && *words; value--) {
        words += strcspn(words, "|");
        words += *words == '|';
    }
    if (value == 0) set(job, name, json_stringn(words, strcspn(words, "|")));
}

int cli_study_check(const cli_study *how, qkv_error *err) {
    const cli_list *out = &how->outputs;
    if (how->json && cli_outputs_have_stdout(out))
        return cli_usage(err, "--json and -o - both write to standard output: give one of them");
    int status = cli_outputs_check(out, CLI_STUDY_FORMATS, how->format, NULL, err);
    if (status == QKV_OK) status = cli_print_check(&how->print, out, how->format, err);
    if (status != QKV_OK) return status;
    if (how->dpi > 0 && !cli_outputs_have(out, how->format, "png"))
        return cli_usage(err, "--dpi is the resolution of a PNG, and no output is one");
    if ((how->picture || how->title || how->colormap != CLI_AUTO) &&
        !cli_outputs_draw(out, how->format) && !cli_outputs_have(out, how->format, "html"))
        return cli_usage(err, "--picture, --title and --colormap belong to a drawing: add -o");
    return cli_outputs_check_writable(out, err);
}

static qkv_study_look look_of(const cli_study *how) {
    qkv_study_look look = QKV_STUDY_LOOK_INIT;
    look.picture = how->picture;
    look.table = how->table;
    look.title = how->title;
    look.dpi = how->dpi;
    look.colormap = (qkv_colormap)(how->colormap + 1);
    look.text = (qkv_text_form)(how->print.text + 1);
    look.font = how->print.font;
    look.width = how->print.width;
    look.hide_notes = how->print.no_notes;
    look.no_recipe = how->no_recipe;
    return look;
}

/* ---- printing ---- */

static void append_value(qkv_text *to, const qkv_study *study, size_t table, size_t row,
                         size_t column) {
    double number = NAN;
    const char *text = NULL;
    (void)qkv_study_get_value(study, table, row, column, &number, &text, NULL);
    if (text) {
        qkv_text_append_visible(to, text, strlen(text));
    } else if (isnan(number)) {
        qkv_text_puts(to, "-");
    } else if (number == floor(number) && fabs(number) < 1e9) {
        qkv_text_printf(to, "%.0f", number);
    } else {
        qkv_text_append_number(to, qkv_round_digits(number, 4));
    }
}

static size_t width_of(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

typedef struct printed {
    const qkv_study *study;
    size_t table;
    qkv_study_table size;
    size_t *widths;
    uint8_t *is_text; /* columns: to the left */
} printed;

static void measure(printed *p) {
    for (size_t c = 0; c < p->size.n_columns; c++) {
        p->widths[c] = width_of(qkv_study_column(p->study, p->table, c));
        for (size_t r = 0; r < p->size.n_rows; r++) {
            double number;
            const char *text = NULL;
            qkv_text cell = {0};
            (void)qkv_study_get_value(p->study, p->table, r, c, &number, &text, NULL);
            append_value(&cell, p->study, p->table, r, c);
            const size_t width = cell.data ? width_of(cell.data) : 0;
            if (width > p->widths[c]) p->widths[c] = width;
            p->is_text[c] |= text != NULL;
            qkv_text_release(&cell);
        }
    }
}

static void print_cell(const printed *p, size_t column, const char *text) {
    const int pad = (int)(p->widths[column] - width_of(text));
    const int last = column + 1 == p->size.n_columns;
    if (column) fputs("  ", stdout);
    if (p->is_text[column]) {
        printf("%s%*s", text, last ? 0 : pad, "");
    } else {
        printf("%*s%s", pad, "", text);
    }
    if (last) putchar('\n');
}

static int print_table(const qkv_study *study, size_t table, qkv_error *err) {
    printed p = {.study = study, .table = table, .size = QKV_STUDY_TABLE_INIT};
    int status = qkv_study_get_table(study, table, &p.size, err);
    if (status != QKV_OK) return status;
    p.widths = qkv_calloc(p.size.n_columns, sizeof *p.widths);
    p.is_text = qkv_calloc(p.size.n_columns, 1);
    if (p.widths && p.is_text) {
        measure(&p);
        cli_print_line(p.size.title);
        for (size_t c = 0; c < p.size.n_columns; c++)
            print_cell(&p, c, qkv_study_column(study, table, c));
        for (size_t i = 0; i < p.size.n_rows * p.size.n_columns; i++) {
            qkv_text cell = {0};
            append_value(&cell, study, table, i / p.size.n_columns, i % p.size.n_columns);
            print_cell(&p, i % p.size.n_columns, cell.data ? cell.data : "");
            qkv_text_release(&cell);
        }
    } else {
        status = qkv_fail_memory(err);
    }
    free(p.widths);
    free(p.is_text);
    return status;
}

/* The table that was asked for, or those that are the answer in short. */
static int print_study(const qkv_study *study, const char *name, qkv_error *err) {
    qkv_study_table table = QKV_STUDY_TABLE_INIT;
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    for (size_t i = 0; name && qkv_study_get_table(study, i, &table, NULL) == QKV_OK; i++) {
        if (strcmp(table.name, name) == 0) return print_table(study, i, err);
    }
    int status = qkv_study_get_info(study, &info, err);
    for (size_t i = 0; i < info.n_printed && status == QKV_OK; i++) {
        if (i) putchar('\n');
        status = print_table(study, i, err);
    }
    return status;
}

static int print_bytes(const qkv_study *study, const char *format, const qkv_study_look *look,
                       qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    const int status = qkv_study_render(study, format, look, &bytes, &n_bytes, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

int cli_study_show(const qkv_study *study, const cli_study *how, qkv_error *err) {
    const qkv_study_look look = look_of(how);
    const char *warning;
    int status = qkv_study_check_look(study, &look, err);
    for (size_t i = 0; i < how->outputs.n && status == QKV_OK; i++) {
        const char *path = how->outputs.items[i].value;
        status = cli_is_stdout(path) ? print_bytes(study, how->format, &look, err)
                                     : qkv_study_write(study, path, &look, err);
    }
    for (size_t i = 0; status == QKV_OK && (warning = qkv_study_warning(study, i)); i++)
        cli_warn("%s", warning);
    if (status == QKV_OK && how->json)
        status = print_bytes(study, "json", &look, err);
    else if (status == QKV_OK && !cli_outputs_have_stdout(&how->outputs))
        status = print_study(study, how->table, err);
    return cli_name_fields(status, err);
}

/* ---- all of it ---- */

typedef struct study_state {
    qkv_model *model, *other_model;
    qkv_session *session, *other;
    cli_prompts prompts;
    qkv_prompt *given;
    char **command;
} study_state;

static const cli_chat no_chat;

static int load(study_state *s, const cli_study_job *job, qkv_error *err) {
    const cli_chat *chat = job->chat ? job->chat : &no_chat;
    const unsigned flags =
        QKV_TOKENIZE_ADD_SPECIAL | (job->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
    int status = QKV_OK;
    if (job->prompts) status = cli_prompts_load(&s->prompts, job->prompts, chat, err);
    if (status == QKV_OK && s->prompts.n == 0 && job->default_prompts)
        status = cli_prompts_add_default(&s->prompts, job->default_prompts, err);
    if (status == QKV_OK) status = cli_model_open(&s->model, job->model, err);
    if (status == QKV_OK && (job->other || job->two_models))
        status = cli_model_open(&s->other_model, job->other, err);
    if (status == QKV_OK) status = cli_prompts_tokenize(&s->prompts, chat, s->model, flags, err);
    if (status != QKV_OK) return status;
    s->given = qkv_calloc(s->prompts.n, sizeof *s->given);
    if (!s->given) return qkv_fail_memory(err);
    for (size_t i = 0; i < s->prompts.n; i++) {
        const cli_prompt *from = &s->prompts.items[i];
        s->given[i] = (qkv_prompt)QKV_PROMPT_INIT;
        s->given[i].flags = flags;
        s->given[i].name = job->names ? job->names[i] : NULL;
        if (from->text && !chat->on) {
            s->given[i].text = from->text;
            s->given[i].length = from->length;
        } else {
            s->given[i].tokens = from->tokens;
            s->given[i].n_tokens = from->n_tokens;
            s->given[i].written = from->text;
        }
    }
    return QKV_OK;
}

/* What a long study costs is said before it begins: runs of a prompt, each under one set of edits. */
static int show_progress(void *user, int64_t done, int64_t wanted) {
    enum { MANY = 500 };
    sweep_progress *p = user;
    if (!p->wanted && wanted - done > MANY)
        cli_notice("qkv %s: %lld %s of a prompt to compute%s", p->command,
                   (long long)(wanted - done), p->unit, done ? "; the others are there" : "");
    return sweep_progress_step(user, done, wanted);
}

static int make(study_state *s, const cli_call *call, const cli_study_job *job, qkv_study **study,
                qkv_error *err) {
    const qkv_session_options how = cli_session_options(job->how->threads, job->how->memory);
    qkv_study_inputs inputs = QKV_STUDY_INPUTS_INIT;
    sweep_progress progress = {.command = job->kind, .unit = "runs", .quiet = cli_is_quiet()};
    int status = cli_session_new(&s->session, s->model, &how, err);
    if (status == QKV_OK && s->other_model)
        status = cli_session_new(&s->other, s->other_model, &how, err);
    if (status == QKV_OK) status = cli_command_words(call, &s->command, err);
    char *options = job->options ? qkv_json_dump(job->options, JSON_REAL_PRECISION(17)) : NULL;
    if (status == QKV_OK && !options) status = qkv_fail_memory(err);
    inputs.session = s->session;
    inputs.other = s->other;
    inputs.prompts = s->given;
    inputs.n_prompts = s->prompts.n;
    inputs.command = (const char *const *)s->command;
    inputs.n_command = s->command ? (size_t)call->argc : 0;
    inputs.living = cli_outputs_have(&job->how->outputs, job->how->format, "html");
    inputs.results = job->results;
    if (job->shows_progress) {
        inputs.progress = show_progress;
        inputs.user = &progress;
        sweep_progress_start(&progress, 0, 0);
    }
    if (status == QKV_OK)
        status = cli_name_fields(qkv_study_make(study, job->kind, &inputs, options, err), err);
    if (job->shows_progress) sweep_progress_end(&progress);
    free(options);
    return status;
}

int cli_study_run(const cli_call *call, cli_study_job *job, qkv_error *err) {
    study_state s = {0};
    qkv_study *study = NULL;
    int status = job->options ? cli_study_check(job->how, err) : qkv_fail_memory(err);
    if (status == QKV_OK && job->prompts && job->prompts->n == 0 && !job->default_prompts)
        status = cli_usage(err, "give a prompt with -p, -f, --file or --tokens");
    if (status == QKV_OK) status = load(&s, job, err);
    if (status == QKV_OK) status = make(&s, call, job, &study, err);
    cli_session_free(s.session);
    cli_session_free(s.other);
    if (status == QKV_OK) status = cli_study_show(study, job->how, err);
    qkv_study_free(study);
    cli_prompts_release(&s.prompts);
    free(s.given);
    cli_command_words_free(s.command);
    qkv_model_free(s.model);
    qkv_model_free(s.other_model);
    json_decref(job->options);
    job->options = NULL;
    return status;
}
