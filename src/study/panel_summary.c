#include "study/panel_summary.h"

#include <math.h>

size_t qkv_panel_sample_size(size_t n_panels) {
    const size_t share = n_panels ? (size_t)16 * PANEL_SAMPLE / n_panels : PANEL_SAMPLE;
    return share > PANEL_SAMPLE ? PANEL_SAMPLE : share ? share : 1;
}

size_t qkv_panel_sample_place(size_t n_rows, size_t n_cols, size_t k, size_t n) {
    const size_t row = n_rows - 1 - k * n_rows / n;
    const size_t width = row + 1 < n_cols ? row + 1 : n_cols;
    /* Multiples of the golden ratio are spread evenly, whatever their number. */
    const size_t share = k * 40503 % 65536;
    return row * n_cols + (k % 2 ? share * width / 65536 : 0);
}

int qkv_panel_summarize(panel_summary *to, const float *values, size_t n_rows, size_t n_cols,
                        size_t n_sample, qkv_error *err) {
    const size_t n = n_rows * n_cols;
    qkv_fingerprint print;
    const int status = qkv_fingerprint_start(&print, err);
    if (status != QKV_OK) return status;
    qkv_fingerprint_add_number(&print, n_rows);
    qkv_fingerprint_add_number(&print, n_cols);
    qkv_fingerprint_add(&print, values, n * sizeof *values);
    qkv_fingerprint_end(&print, to->digest);
    double squares = 0;
    to->n_rows = n_rows;
    to->n_cols = n_cols;
    to->least = INFINITY;
    to->most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        to->least = fmin(to->least, values[i]);
        to->most = fmax(to->most, values[i]);
        if (!isnan(values[i])) squares += (double)values[i] * values[i];
    }
    to->norm = sqrt(squares);
    to->n_sample = n_sample;
    for (size_t k = 0; k < n_sample; k++) {
        to->sample[k] = values[qkv_panel_sample_place(n_rows, n_cols, k, n_sample)];
    }
    return QKV_OK;
}
