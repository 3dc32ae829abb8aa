"""The binding itself: cffi in API mode, from the headers of the installed libqkv.

The declarations are the headers, as the C preprocessor leaves them: nothing is written down twice, and the compiler
checks every layout. Initialisers are macros, which are gone by then, so a few lines of C bring them back, and do the
loops that would be slow in Python.

Where the library is: QKV_PREFIX names the prefix it was installed to, or QKV_INCLUDE_DIR and QKV_LIB_DIR the two
directories; otherwise pkg-config is asked. CC and CFLAGS are honoured.
"""
import os
import re
import shlex
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from cffi import FFI

# Structs that Python makes, each with its initialiser.
STRUCTS = (
    "session_options",
    "progress",
    "run_stats",
    "tensor",
    "prompt",
    "custom_edit",
    "weight",
    "layer_info",
    "measure_options",
    "next_options",
    "next_token",
    "next_answer",
    "next_loss",
    "generator_options",
    "sampler_options",
    "sweep_share_options",
    "sweep_summary",
    "sweep_row",
    "store_item",
    "chat_options",
    "plot_options",
    "plot_info",
    "plot_value",
    "chart_style",
    "heatmap",
    "heatmap_panel",
    "server_options",
    "server_model",
    "study_info",
    "study_table",
    "study_map",
    "reproduction_info",
    "reproduction_difference",
)

CALLBACKS = """
extern "Python" int qkvpy_step(void *user, const char *what, double done, double total);
extern "Python" int qkvpy_swept(void *user, int64_t done, int64_t wanted);
extern "Python" int qkvpy_custom(void *user, const qkv_custom_call *call, qkv_error *err);
"""

LOOPS = """
void qkvpy_table_columns(const qkv_table *table, int32_t *variant, int32_t *layer, int32_t *head, int32_t *metric,
                         double *value);
void qkvpy_sweep_columns(const qkv_sweep_rows *rows, int32_t *prompt, int32_t *layer, int32_t *head, int32_t *target,
                         int32_t *op, double *epsilon, double *value, int8_t *missing);
int qkvpy_dimensions(const qkv_tensor *tensor);
void qkvpy_study_column(const qkv_study *study, size_t table, size_t column, size_t n, double *numbers,
                        const char **texts);
"""

LOOPS_SOURCE = r"""
static void qkvpy_table_columns(const qkv_table *table, int32_t *variant, int32_t *layer, int32_t *head,
                                int32_t *metric, double *value) {
    qkv_measurement m = QKV_MEASUREMENT_INIT;
    for (size_t i = 0; qkv_table_get(table, i, &m); i++) {
        variant[i] = (int32_t)m.variant;
        layer[i] = m.layer;
        head[i] = m.head;
        metric[i] = (int32_t)m.metric;
        value[i] = m.value;
    }
}

static void qkvpy_sweep_columns(const qkv_sweep_rows *rows, int32_t *prompt, int32_t *layer, int32_t *head,
                                int32_t *target, int32_t *op, double *epsilon, double *value, int8_t *missing) {
    qkv_sweep_row row = QKV_SWEEP_ROW_INIT;
    for (size_t i = 0; qkv_sweep_rows_get(rows, i, &row); i++) {
        prompt[i] = (int32_t)row.prompt;
        layer[i] = row.layer;
        head[i] = row.head;
        target[i] = row.target;
        op[i] = row.op;
        epsilon[i] = row.epsilon;
        value[i] = row.value;
        missing[i] = row.missing != 0;
    }
}

static int qkvpy_dimensions(const qkv_tensor *tensor) {
    return tensor->n_dims;
}

static void qkvpy_study_column(const qkv_study *study, size_t table, size_t column, size_t n, double *numbers,
                               const char **texts) {
    for (size_t i = 0; i < n; i++)
        qkv_study_get_value(study, table, i, column, &numbers[i], &texts[i], NULL);
}
"""


def pkg_config(*options):
    """What pkg-config says about the library."""
    environment = dict(os.environ)
    prefix = environment.get("QKV_PREFIX")
    if prefix:
        found = [str(p.parent) for p in Path(prefix).glob("lib*/**/pkgconfig/qkv.pc")]
        environment["PKG_CONFIG_PATH"] = os.pathsep.join(found + [environment.get("PKG_CONFIG_PATH", "")])
    try:
        return subprocess.run(
            ["pkg-config", *options, "qkv"], env=environment, check=True, capture_output=True, text=True
        ).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(
            "libqkv was not found: install it (make install), or say where it is with QKV_PREFIX"
        ) from None


def places():
    """Include directories, library directories, as the environment or pkg-config says."""
    if os.environ.get("QKV_INCLUDE_DIR") and os.environ.get("QKV_LIB_DIR"):
        return [os.environ["QKV_INCLUDE_DIR"]], [os.environ["QKV_LIB_DIR"]]
    flags = pkg_config("--keep-system-cflags", "--keep-system-libs", "--cflags", "--libs")
    return [f[2:] for f in flags if f.startswith("-I")], [f[2:] for f in flags if f.startswith("-L")]


def compiler():
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def declarations(include):
    """What qkv/qkv.h declares, without what it includes from elsewhere."""
    with tempfile.TemporaryDirectory() as work:
        source = Path(work, "all.c")
        source.write_text("#define QKV_UNSTABLE\n#include <qkv/qkv.h>\n")
        text = subprocess.run(
            [*compiler(), "-E", *(f"-I{d}" for d in include), str(source)], check=True, capture_output=True, text=True
        ).stdout
    kept, own = [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            own = re.search(r"/qkv/\w+\.h$", marker.group(1)) is not None
        elif own:
            kept.append(line)
    return re.sub(r"__attribute__\s*\(\(visibility\(\"default\"\)\)\)", "", "\n".join(kept))


def initialisers():
    names = [(f"qkvpy_init_{s}", f"qkv_{s}", f"QKV_{s.upper()}_INIT") for s in STRUCTS]
    declared = "\n".join(f"void {function}({struct} *to);" for function, struct, _ in names)
    source = "\n".join(
        f"static void {function}({struct} *to) {{ *to = ({struct}){macro}; }}" for function, struct, macro in names
    )
    return declared, source


def make_ffi():
    include, lib = places()
    ffi = FFI()
    declared, source = initialisers()
    ffi.cdef(declarations(include) + declared + LOOPS + CALLBACKS)
    # Beside the module, where a wheel has it; or where it was installed.
    runtime = "$ORIGIN" if os.environ.get("QKV_BUNDLE", "1") != "0" else os.path.abspath(lib[0])
    ffi.set_source(
        "qkv._native",
        "#define QKV_UNSTABLE\n#include <qkv/qkv.h>\n" + source + LOOPS_SOURCE,
        include_dirs=include,
        library_dirs=lib,
        libraries=["qkv"],
        extra_link_args=[f"-Wl,-rpath,{runtime}"],
        py_limited_api=True,
    )
    return ffi


if __name__ != "__main__":
    ffibuilder = make_ffi()
