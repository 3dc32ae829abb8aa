/* Studies: fields and files that were given to printed tables and written files. See study.h. */
#define _POSIX_C_SOURCE 200809L
#include "cli/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/temporary.h"
#include "cli/columns.h"
#include "cli/continue.h"
#include "cli/messages.h"
#include "cli/sweep.h"

/* ---- names of files ---- */

/* Outputs as files, and which picture or table each of them holds: heads.png:heads. */
typedef struct study_files {
    cli_list paths;
    const char **names; /* NULL: none was given */
    char *results;      /* of a study that is computed from cells, which go to a file; NULL: none */
} study_files;

static void files_release(study_files *files) {
    for (size_t i = 0; i < files->paths.n; i++) free((void *)files->paths.items[i].value);
    free(files->paths.items);
    free((void *)files->names);
    free(files->results);
}

/* The name of a picture or table at the end of an output, after a colon; NULL: none is there. */
static const char *name_in(const char *output) {
    const char *colon = strrchr(output, ':');
    if (!colon || !colon[1] ||
        strspn(colon + 1, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(colon + 1))
        return NULL;
    return colon + 1;
}

static int take_results(study_files *files, char *path, qkv_error *err) {
    char *first = files->results;
    if (!first) return files->results = path, QKV_OK;
    free(path);
    return cli_usage(err, "there is one file of results: %s", first);
}

static int add_file(study_files *files, const char *output, const qkv_study_kind *kind,
                    qkv_error *err) {
    const char *name = cli_study_is_figure(kind) ? NULL : name_in(output);
    char *path = qkv_strndup(output, name ? (size_t)(name - 1 - output) : strlen(output));
    if (!path) return qkv_fail_memory(err);
    if (kind->has_cells && !name && !cli_is_stdout(path) &&
        strcmp(qkv_path_suffix(path), "sqlite") == 0)
        return take_results(files, path, err);
    files->names[files->paths.n] = name;
    files->paths.items[files->paths.n++] = (cli_item){.value = path};
    const char *suffix = qkv_path_suffix(path);
    if (name && (strcmp(suffix, "html") == 0 || strcmp(suffix, "json") == 0 ||
                 strcmp(suffix, "sqlite") == 0))
        return cli_usage(err, "%s holds all pictures or tables: leave out ':%s'", path, name);
    return QKV_OK;
}

/* Of studies with cells, .sqlite is the file of results. Release it also after a failure. */
static int files_make(study_files *files, const cli_list *outputs, const qkv_study_kind *kind,
                      qkv_error *err) {
    files->paths.items = qkv_calloc(outputs->n, sizeof *files->paths.items);
    files->names = qkv_calloc(outputs->n, sizeof *files->names);
    int status = files->paths.items && files->names ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < outputs->n && status == QKV_OK; i++)
        status = add_file(files, outputs->items[i].value, kind, err);
    return status;
}

/* ---- fields ---- */

#define LARGEST_FILE ((size_t)256 << 20) /* of a field that is the text of one */

/* A mistake on the command line, in its words. */
static int as_usage(int status, qkv_error *err) {
    (void)cli_name_fields(status, err);
    if (status != QKV_ERR_ARGUMENT && status != QKV_ERR_UNSUPPORTED && status != QKV_ERR_SYNTAX)
        return status;
    const qkv_error why = *err;
    return cli_usage(err, "%s", why.message);
}

int cli_study_set_file(qkv_study *study, const char *name, const char *path, qkv_error *err) {
    char *text = NULL;
    size_t size = 0;
    int status = qkv_read_file(&text, &size, path, LARGEST_FILE, err);
    if (status == QKV_OK && (strlen(text) != size || !qkv_utf8_valid(text, size)))
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is not UTF-8 text", path);
    if (status == QKV_OK) status = cli_name_fields(qkv_study_set(study, name, text, err), err);
    free(text);
    return status;
}

int cli_study_set(qkv_study *study, const char *kind, const cli_list *settings, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < settings->n && status == QKV_OK; i++) {
        const cli_item *item = &settings->items[i];
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        if (!qkv_study_get_field(kind, (size_t)item->tag, &field)) continue;
        status = field.type == QKV_FIELD_FILE
                     ? cli_study_set_file(study, field.name, item->value, err)
                     : as_usage(qkv_study_set(study, field.name, item->value, err), err);
    }
    return status;
}

/* ---- checks ---- */

static int has_one_of(const cli_list *out, const char *format, const char *wanted) {
    char words[64];
    snprintf(words, sizeof words, "%s", wanted);
    for (char *rest = NULL, *word = strtok_r(words, "|", &rest); word;
         word = strtok_r(NULL, "|", &rest)) {
        if (cli_outputs_have(out, format, word)) return 1;
    }
    return 0;
}

/* "png|svg|pdf" as "png, svg and pdf". */
static void append_words(qkv_text *out, const char *words) {
    while (*words) {
        const size_t n = strcspn(words, "|");
        const int last = !words[n] || !strchr(words + n + 1, '|');
        qkv_text_append(out, words, n);
        if (words[n]) qkv_text_puts(out, last ? " and " : ", ");
        words += n + (words[n] == '|');
    }
}

/* A field of the look that no output shows would have no effect. */
static int check_effect(const char *kind, const cli_study *how, const cli_list *out,
                        qkv_error *err) {
    for (size_t i = 0; i < how->settings.n; i++) {
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        if (!qkv_study_get_field(kind, (size_t)how->settings.items[i].tag, &field)) continue;
        if (!field.outputs || has_one_of(out, how->format, field.outputs)) continue;
        qkv_text name = {0}, files = {0};
        qkv_text_printf(&name, "`%s`", field.name);
        append_words(&files, field.outputs);
        const int status =
            name.failed || files.failed
                ? qkv_fail_memory(err)
                : cli_usage(err, "%s has an effect on %s files alone: add such a file with -o",
                            name.data, files.data);
        qkv_text_release(&name);
        qkv_text_release(&files);
        return cli_name_fields(status, err);
    }
    return QKV_OK;
}

/* The kind by whose fields the settings are numbered. */
static const char *settings_kind(const cli_study_job *job) {
    return job->settings_kind ? job->settings_kind : job->kind;
}

/* What -o - writes where --format does not say it; NULL: it has to be said. */
static const char *usual_format(const qkv_study_kind *kind) {
    return cli_study_is_figure(kind) ? NULL : "csv";
}

static int check_files(const cli_study_job *job, const qkv_study_kind *kind, const cli_list *out,
                       qkv_error *err) {
    const cli_study *how = job->how;
    if (cli_study_is_figure(kind) && out->n == 0 && !how->json)
        return cli_usage(err, "no output: add for example -o figure.png");
    if (how->json && cli_outputs_have_stdout(out))
        return cli_usage(err, "--json and -o - both write to standard output: give one of them");
    int status = cli_outputs_check(out, kind->formats, how->format, usual_format(kind), err);
    if (status == QKV_OK) status = check_effect(settings_kind(job), how, out, err);
    return status == QKV_OK ? cli_outputs_check_writable(out, err) : status;
}

/* ---- files ---- */

static int print_bytes(const qkv_study *study, const char *format, qkv_error *err) {
    char *bytes = NULL;
    size_t n_bytes = 0;
    const int status = qkv_study_render(study, format, &bytes, &n_bytes, err);
    return cli_print_bytes(status, bytes, n_bytes);
}

/* The look of one file: the picture or table that its name names. A figure is one picture. */
static int choose(qkv_study *study, const qkv_study_kind *kind, const study_files *files, size_t i,
                  const char *usual[2], qkv_error *err) {
    const char *path = files->paths.items[i].value, *name = files->names[i];
    const int is_table = strcmp(qkv_path_suffix(path), "csv") == 0;
    int status = QKV_OK;
    if (strstr(kind->formats, "png")) /* kinds without pictures do not have the field */
        status = qkv_study_set(study, "picture", name && !is_table ? name : usual[0], err);
    if (status == QKV_OK)
        status = qkv_study_set(study, "table", name && is_table ? name : usual[1], err);
    return status == QKV_OK ? qkv_study_check_look(study, err) : status;
}

/* A name of -o FILE:NAME is not one of --picture or --table. */
static int fail_name(const char *path, const char *name, int status, const qkv_error *why,
                     qkv_error *err) {
    static const char *const options[] = {"`picture`: ", "`table`: "};
    const char *message = why->message;
    for (size_t i = 0; name && i < sizeof options / sizeof *options; i++) {
        const size_t n = strlen(options[i]);
        if (strncmp(message, options[i], n) == 0)
            return qkv_fail(err, status, "-o %s:%s: %s", path, name, message + n);
    }
    return qkv_fail(err, status, "%s", message);
}

typedef struct file_bytes {
    char *bytes;
    size_t n;
} file_bytes;

static int render_files(qkv_study *study, const cli_study_job *job, const qkv_study_kind *kind,
                        const study_files *files, const char *usual[2], file_bytes *made,
                        qkv_error *err) {
    int status = qkv_study_check_look(study, err);
    for (size_t i = 0; i < files->paths.n && status == QKV_OK; i++) {
        const char *path = files->paths.items[i].value;
        qkv_error why = {0};
        if (!cli_study_is_figure(kind)) status = choose(study, kind, files, i, usual, &why);
        if (status != QKV_OK) return fail_name(path, files->names[i], status, &why, err);
        const char *format = job->how->format ? job->how->format : usual_format(kind);
        status = qkv_study_render(study, cli_is_stdout(path) ? format : qkv_path_suffix(path),
                                  &made[i].bytes, &made[i].n, err);
    }
    return status;
}

static int write_bytes(const study_files *files, file_bytes *made, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < files->paths.n && status == QKV_OK; i++) {
        const char *path = files->paths.items[i].value;
        if (cli_is_stdout(path)) {
            status = cli_print_bytes(QKV_OK, made[i].bytes, made[i].n);
            made[i].bytes = NULL;
        } else {
            status = qkv_output_write(path, made[i].bytes, made[i].n, err);
        }
    }
    return status;
}

static void print_warnings(const qkv_study *study) {
    const char *warning;
    for (size_t i = 0; (warning = qkv_study_warning(study, i)); i++) {
        qkv_text named = {0};
        cli_append_named(&named, warning);
        cli_warn("%s", cli_shown(&named));
        qkv_text_release(&named);
    }
}

/* What cannot be drawn is told before any file is written. */
static int write_files(qkv_study *study, const cli_study_job *job, const qkv_study_kind *kind,
                       const study_files *files, const char *usual[2], qkv_error *err) {
    file_bytes *made = qkv_calloc(files->paths.n, sizeof *made);
    if (!made) return qkv_fail_memory(err);
    int status = render_files(study, job, kind, files, usual, made, err);
    print_warnings(study);
    if (status == QKV_OK) status = write_bytes(files, made, err);
    for (size_t i = 0; i < files->paths.n; i++) qkv_bytes_free(made[i].bytes);
    free(made);
    return status;
}

/* What was given for a field; NULL: nothing. */
static const char *given_for(const char *kind, const cli_study *how, const char *name) {
    const char *value = NULL;
    for (size_t i = 0; i < how->settings.n; i++) {
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        if (qkv_study_get_field(kind, (size_t)how->settings.items[i].tag, &field) &&
            strcmp(field.name, name) == 0)
            value = how->settings.items[i].value;
    }
    return value;
}

/* Once all is printed and written: does what the study looked for hold? */
static int judge(const qkv_study *study, qkv_error *err) {
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    const int status = qkv_study_get_info(study, &info, err);
    if (status != QKV_OK || !info.n_failed) return status;
    return qkv_fail(err, QKV_ERR_NUMERIC,
                    "%zu of the checks FAILED: do not trust this model's numbers here",
                    info.n_failed);
}

static int show(qkv_study *study, const cli_study_job *job, const qkv_study_kind *kind,
                const study_files *files, qkv_error *err) {
    const cli_study *how = job->how;
    const char *usual[2] = {given_for(settings_kind(job), how, "picture"),
                            given_for(settings_kind(job), how, "table")};
    const char *note;
    for (size_t i = 0; cli_study_is_figure(kind) && (note = qkv_study_get_note(study, i)); i++)
        cli_notice("qkv: %s", note);
    int status = write_files(study, job, kind, files, usual, err);
    if (status == QKV_OK && how->json)
        status = print_bytes(study, "json", err);
    else if (status == QKV_OK && !cli_outputs_have_stdout(&files->paths))
        status = cli_study_print(study, usual[1], err);
    if (status == QKV_OK) status = judge(study, err);
    return cli_name_fields(status, err);
}

/* ---- prompts ---- */

typedef struct study_state {
    study_files files;
    qkv_study_kind kind;
    qkv_model *models[2];
    qkv_session *sessions[2];
    qkv_own_prompts prompts;
    cli_sources sources;
    qkv_scratch scratch; /* for results that the user does not want to keep */
    char **command;
} study_state;

static const cli_chat no_chat;

static unsigned flags_of(const cli_study_job *job) {
    return QKV_TOKENIZE_ADD_SPECIAL | (job->parse_special ? QKV_TOKENIZE_PARSE_SPECIAL : 0u);
}

/* `name`: of a source, or QKV_SET_PROMPT; NULL: neither. */
static int add_prompt(const cli_study_job *job, const qkv_own_prompt *from, const char *name,
                      qkv_error *err) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.flags = flags_of(job);
    prompt.text = from->tokens ? NULL : from->text;
    prompt.length = from->tokens ? 0 : from->length;
    prompt.tokens = from->tokens;
    prompt.n_tokens = from->n_tokens;
    prompt.written = from->tokens ? from->text : NULL;
    prompt.name = name;
    return qkv_study_add_prompt(job->study, &prompt, err);
}

static int add_prompts(const study_state *s, const cli_study_job *job, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < s->prompts.n && status == QKV_OK; i++)
        status = add_prompt(job, &s->prompts.items[i], NULL, err);
    for (size_t i = 0; i < s->sources.n && status == QKV_OK; i++)
        status = add_prompt(job, &s->sources.items[i].prompt, s->sources.items[i].name, err);
    for (size_t i = 0; i < s->sources.set.n && status == QKV_OK; i++)
        status = add_prompt(job, &s->sources.set.items[i], QKV_SET_PROMPT, err);
    return status;
}

/* The edits of a grid name sources, a set and files of vectors. */
static int load_sources(study_state *s, const cli_study_job *job, const cli_chat *chat,
                        qkv_error *err) {
    const cli_list *settings = &job->how->settings;
    cli_list edits = {.items = qkv_calloc(settings->n, sizeof *edits.items)};
    const cli_list *const all[] = {&edits};
    if (!edits.items) return qkv_fail_memory(err);
    for (size_t i = 0; i < settings->n; i++) {
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        if (qkv_study_get_field(job->kind, (size_t)settings->items[i].tag, &field) &&
            field.type == QKV_FIELD_LIST)
            edits.items[edits.n++] = settings->items[i];
    }
    int status = cli_sources_load(&s->sources, job->sources, chat, err);
    /* Of other studies the library does that. */
    if (status == QKV_OK && cli_study_is_figure(&s->kind))
        status = cli_sources_take_edits(&s->sources, all, 1, err);
    if (status == QKV_OK && job->generate && s->sources.n && s->prompts.n > 1)
        status = cli_usage(err, "with --generate a source continues as the prompt does: give one "
                                "prompt");
    free(edits.items);
    return status;
}

/* Conversations need the model's template, and texts that are continued the model; all others are added before a
 * model is opened. */
static int needs_model(const cli_study_job *job) {
    return (job->chat && job->chat->on) || job->generate;
}

static int load_prompts(study_state *s, const cli_study_job *job, qkv_error *err) {
    const cli_chat *chat = job->chat ? job->chat : &no_chat;
    int status = job->prompts ? cli_prompts_load(&s->prompts, job->prompts, chat, err) : QKV_OK;
    if (status == QKV_OK && s->prompts.n == 0 && s->kind.default_prompts &&
        (chat->on || chat->show))
        status = cli_usage(err, "--chat and --show-prompt want a prompt: -p TEXT");
    if (status == QKV_OK && s->prompts.n == 0 && job->generate)
        status = cli_prompts_add_default(&s->prompts, s->kind.default_prompts, err);
    if (status == QKV_OK && s->prompts.n == 0 && s->kind.least_prompts && !s->kind.prompt_names &&
        !s->kind.default_prompts)
        status = cli_usage(err, "give a prompt with -p, -f, --file or --tokens");
    if (status == QKV_OK && s->kind.most_prompts == 1 && s->prompts.n > 1)
        status = chat->column
                     ? cli_usage(err, "one prompt is wanted, and %zu are given", s->prompts.n)
                     : cli_prompts_check_one(&s->prompts, job->prompts, err);
    if (status == QKV_OK && job->sources) status = load_sources(s, job, chat, err);
    if (status != QKV_OK || needs_model(job)) return status;
    status = add_prompts(s, job, err);
    return status == QKV_OK ? as_usage(qkv_study_check(job->study, err), err) : status;
}

static int write_chats(study_state *s, const cli_study_job *job, qkv_error *err) {
    const cli_chat *chat = job->chat ? job->chat : &no_chat;
    if (!needs_model(job) && !chat->show) return QKV_OK;
    int status = cli_prompts_tokenize(&s->prompts, chat, s->models[0], flags_of(job), err);
    if (status == QKV_OK && job->sources)
        status = cli_sources_tokenize(&s->sources, chat, s->models[0], flags_of(job), err);
    return status == QKV_OK && needs_model(job) && !job->generate ? add_prompts(s, job, err)
                                                                  : status;
}

/* The text that the unedited model adds belongs to the prompt from then on. */
static int continue_prompts(study_state *s, const cli_study_job *job, qkv_error *err) {
    if (!job->generate) return QKV_OK;
    int status = cli_prompts_continue(&s->prompts, s->sessions[0], job->generate, err);
    if (status == QKV_OK && s->sources.n)
        status = cli_sources_follow(&s->sources, &s->prompts.items[0], err);
    return status == QKV_OK ? add_prompts(s, job, err) : status;
}

/* ---- cells, which processes share ---- */

static int check_cells(const study_state *s, const cli_study_job *job, const sweep_job *sweep,
                       qkv_error *err) {
    const char *results = s->files.results;
    if (job->explain && (results || s->files.paths.n))
        return cli_usage(err, "--explain computes nothing: leave out -o");
    if (sweep->n_shards && (!results || s->files.paths.n))
        return cli_usage(err, "a shard is not drawn: give --shard one file of results, -o "
                              "PART.sqlite, and draw the merged one");
    if (s->kind.has_cells && !results && cli_mpi_is_wanted() && !job->explain)
        return cli_usage(err, "under mpirun give a file of results, -o RESULTS.sqlite");
    return QKV_OK;
}

/* Pairs of prompts that give the same are told before there is a file: the first block holds their values. */
static int check_first_block(const sweep_work *work, qkv_error *err) {
    const qkv_session_options how = cli_session_options(1, work->job->memory);
    qkv_session *session = NULL;
    double *values = qkv_calloc(2 * qkv_sweep_n_metrics(work->sweep), sizeof *values);
    int status = values ? cli_session_new(&session, work->model, &how, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_sweep_compute(work->sweep, session, 0, values, err);
    cli_session_free(session);
    free(values);
    return status;
}

/* Computes the cells into their file; *done is 1 where that, or saying what there is to do, was all. */
static int run_cells(const study_state *s, const cli_study_job *job, sweep_work *work, int *done,
                     qkv_error *err) {
    const char *results = s->files.results;
    work->model = qkv_model_retain(s->models[0]);
    int status = qkv_study_make_sweep(job->study, s->models[0], &work->sweep, err);
    if (status == QKV_OK && s->kind.prompt_names && results && access(results, F_OK) != 0)
        status = check_first_block(work, err);
    if (status == QKV_OK) status = sweep_work_run(work, err);
    *done = !sweep_work_leads(work) || job->explain || work->job->n_shards;
    if (status == QKV_OK && !*done) status = qkv_study_set(job->study, "results", results, err);
    return status;
}

/* ---- all of it ---- */

static int open_models(study_state *s, const cli_study_job *job, qkv_error *err) {
    int status = QKV_OK;
    for (int i = 0; i < s->kind.n_models && status == QKV_OK; i++)
        status = cli_model_open(&s->models[i], job->models[i], err);
    return status;
}

static int compute(study_state *s, const cli_call *call, const cli_study_job *job, qkv_error *err) {
    const qkv_session_options how = cli_session_options(job->how->threads, job->how->memory);
    int status = QKV_OK;
    for (int i = 0; i < s->kind.n_models && status == QKV_OK; i++)
        status = cli_session_new(&s->sessions[i], s->models[i], &how, err);
    if (status == QKV_OK) status = continue_prompts(s, job, err);
    if (status == QKV_OK) status = cli_command_words(call, &s->command, err);
    if (status == QKV_OK)
        status = qkv_study_set_command(job->study, (const char *const *)s->command,
                                       (size_t)call->argc, err);
    if (status == QKV_OK && cli_outputs_have(&s->files.paths, job->how->format, "html"))
        status = qkv_study_set(job->study, "page", "true", err);
    if (status == QKV_OK)
        status =
            cli_name_fields(qkv_study_run(job->study, s->sessions[0], s->sessions[1], err), err);
    for (int i = 0; i < 2; i++) cli_session_free(s->sessions[i]);
    return status;
}

/* Processes share the cells of a sweep through a file also where the user does not keep it. Pairs of prompts are few, and are
 * computed by the study. */
static int make_scratch(study_state *s, const cli_study_job *job, sweep_job *sweep,
                        qkv_error *err) {
    if (!s->kind.has_cells || s->kind.prompt_names || s->files.results || job->explain)
        return QKV_OK;
    const int status = qkv_scratch_make(&s->scratch, "qkv-results", err);
    if (status != QKV_OK) return status;
    s->files.results = qkv_strdup(s->scratch.file.name);
    if (!s->files.results) return qkv_fail_memory(err);
    sweep->output = s->files.results;
    sweep->quiet = 1;
    return QKV_OK;
}

static int run(study_state *s, const cli_call *call, const cli_study_job *job, sweep_job *sweep,
               sweep_work *work, qkv_error *err) {
    int done = 0;
    int status = check_cells(s, job, sweep, err);
    if (status == QKV_OK) status = make_scratch(s, job, sweep, err);
    const int has_work = s->kind.has_cells && (s->files.results || job->explain);
    if (status == QKV_OK) status = check_files(job, &s->kind, &s->files.paths, err);
    if (status == QKV_OK && has_work) status = sweep_work_start(work, sweep, err);
    if (status == QKV_OK) status = load_prompts(s, job, err);
    if (status == QKV_OK) status = open_models(s, job, err);
    if (status == QKV_OK) status = write_chats(s, job, err);
    if (status == QKV_OK && has_work)
        status = cli_name_fields(run_cells(s, job, work, &done, err), err);
    if (status == QKV_OK && !done) status = compute(s, call, job, err);
    return status == QKV_OK && !done ? show(job->study, job, &s->kind, &s->files, err) : status;
}

/* Do its edits name other inputs? */
static int takes_edits(const char *kind) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_get_field(kind, i, &field); i++) {
        if (strcmp(field.name, "read_vectors") == 0) return 1;
    }
    return 0;
}

int cli_study_run(const cli_call *call, const cli_study_job *job, qkv_error *err) {
    study_state s = {.kind = QKV_STUDY_KIND_INIT};
    sweep_work work = {0};
    sweep_job sweep = {.name = job->kind,
                       .threads = job->how->threads,
                       .memory = job->how->memory,
                       .explain = job->explain};
    int status = qkv_study_get_kind(job->kind, &s.kind, err);
    if (status == QKV_OK) status = files_make(&s.files, &job->how->outputs, &s.kind, err);
    sweep.output = s.files.results;
    if (status == QKV_OK) status = sweep_shard_read(job->shard, &sweep.shard, &sweep.n_shards, err);
    if (status == QKV_OK && takes_edits(job->kind))
        status = qkv_study_set(job->study, "read_vectors", "true", err);
    if (status == QKV_OK) status = run(&s, call, job, &sweep, &work, err);
    sweep_work_release(&work);
    qkv_own_prompts_release(&s.prompts);
    cli_sources_release(&s.sources);
    cli_command_words_free(s.command);
    for (int i = 0; i < 2; i++) qkv_model_free(s.models[i]);
    files_release(&s.files);
    qkv_scratch_remove(&s.scratch);
    return status;
}
