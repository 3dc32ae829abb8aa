#include "qkv/host.h"

#include "ggml.h"

void qkv_host_on_abort(void (*callback)(const char *message)) {
    ggml_set_abort_callback(callback);
}
