/* Results files of sweeps, made by hand. See sweep_maker.h. */
#include "support/sweep_maker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

static const char TABLES[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);"
    "CREATE TABLE prompts(id INTEGER PRIMARY KEY, text TEXT, tokens TEXT);"
    "CREATE TABLE cells(id INTEGER PRIMARY KEY, prompt INTEGER, layer INTEGER, head INTEGER,"
    " target TEXT, op TEXT, epsilon REAL, edit TEXT);"
    "CREATE TABLE results(cell INTEGER, metric TEXT, value REAL, PRIMARY KEY (cell, metric))"
    " WITHOUT ROWID;"
    "CREATE VIEW rows AS SELECT prompt, layer, head, target, op, epsilon, metric, value"
    " FROM cells JOIN results ON results.cell = cells.id;"
    "INSERT INTO meta VALUES('format', 'qkv sweep 1'), ('model_name', 'Brook'),"
    " ('model_path', '/models/brook.gguf'), ('model_hash', '00112233445566778899aabbccddeeff'),"
    " ('spec_hash', 'ffeeddccbbaa99887766554433221100');";

typedef struct maker {
    const sweep_shape *shape;
    sqlite3 *db;
    int64_t next;
    int ok;
} maker;

static void run(maker *m, const char *sql) {
    if (m->ok) m->ok = sqlite3_exec(m->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* The word number i of a list, "" past its end. */
static const char *word(const char *list, int i, char out[32]) {
    while (i-- > 0 && *list) list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',');
    snprintf(out, 32, "%.*s", (int)strcspn(list, ","), list);
    return out;
}

static void add_results(maker *m, int64_t cell, double value, int is_baseline) {
    char metric[32], sql[160];
    for (int i = 0; *word(m->shape->metrics, i, metric); i++) {
        const int kl = strcmp(metric, "kl") == 0;
        char number[40];
        snprintf(number, sizeof number, "%.17g", kl ? value / 1000 : value);
        snprintf(sql, sizeof sql, "INSERT INTO results VALUES(%lld, '%s', %s)", (long long)cell,
                 metric, kl && is_baseline ? "NULL" : number);
        run(m, sql);
    }
}

static void add_cell(maker *m, int prompt, int layer, int head, const char *target, const char *op,
                     const char *epsilon, double value) {
    char sql[256];
    const int64_t cell = m->next++;
    snprintf(sql, sizeof sql,
             "INSERT INTO cells VALUES(%lld, %d, %d, %d, '%s', '%s', %s, 'as told')",
             (long long)cell, prompt, layer, head, target, op, epsilon);
    run(m, sql);
    if (m->shape->done < 0 || cell < m->shape->done) add_results(m, cell, value, !*op);
}

static void add_edits(maker *m, int prompt, int layer, int head, double value) {
    char target[32], op[32], epsilon[32];
    for (int t = 0; *word(m->shape->targets, t, target); t++) {
        for (int o = 0; *word(m->shape->ops, o, op); o++) {
            if (strcmp(op, "scale") != 0 && strcmp(op, "noise") != 0) {
                add_cell(m, prompt, layer, head, target, op, "NULL", 0);
                continue;
            }
            for (int e = 0; *word(m->shape->epsilons, e, epsilon); e++) {
                const double strength = atof(epsilon), share = pow(0.5, t);
                const double loss = share * (1 - strength / (strength + 0.01));
                add_cell(m, prompt, layer, head, target, op, epsilon, value * (1 - loss));
            }
        }
    }
}

static void add_all(maker *m) {
    const sweep_shape *shape = m->shape;
    for (int p = 0; p < shape->prompts; p++) {
        char sql[96];
        snprintf(sql, sizeof sql, "INSERT INTO prompts VALUES(%d, 'Text %d.', '[1, 2]')", p, p);
        run(m, sql);
        for (int l = 0; l < shape->layers; l++) {
            for (int h = 0; h < shape->heads; h++) {
                const double value =
                    (double)(1 + l + h) / (shape->layers + shape->heads) + p / 100.0;
                add_cell(m, p, l, h, "none", "", "NULL", value);
                add_edits(m, p, l, h, value);
            }
        }
    }
}

int make_sweep(const char *path, const sweep_shape *shape) {
    maker m = {.shape = shape, .ok = 1};
    remove(path);
    m.ok = sqlite3_open(path, &m.db) == SQLITE_OK;
    run(&m, "BEGIN");
    run(&m, TABLES);
    add_all(&m);
    run(&m, "COMMIT");
    return sqlite3_close(m.db) == SQLITE_OK && m.ok;
}
