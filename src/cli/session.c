/* Sessions of the program: their work can be stopped, and --verbose tells what it was. */
#include <inttypes.h>

#include "cli/inputs.h"
#include "cli/messages.h"

int cli_session_new(qkv_session **out, const qkv_model *model, const qkv_session_options *options,
                    qkv_error *err) {
    const int status = qkv_session_new(out, model, options, err);
    return status == QKV_OK ? qkv_session_set_progress(*out, cli_progress(), err) : status;
}

void cli_session_free(qkv_session *session) {
    qkv_run_stats stats = QKV_RUN_STATS_INIT;
    if (qkv_session_get_stats(session, &stats) && stats.n_passes)
        cli_detail("computed %" PRIu64 " pass%s, %.3g GFLOP, %.3g MB of weights read",
                   stats.n_passes, stats.n_passes == 1 ? "" : "es", stats.flop / 1e9,
                   stats.weight_bytes / 1e6);
    qkv_session_free(session);
}
