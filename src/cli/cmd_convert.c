/* qkv convert: a model as one GGUF file. */
#include <stdio.h>

#include "base/file.h"
#include "cli/inputs.h"
#include "cli/messages.h"
#include "qkv/convert.h"

typedef struct convert_args {
    const char *model;
    const char *output;
    const char *type;
} convert_args;

static const convert_args defaults = {0};

static const cli_option options[] = {
    {'m', "model", "MODEL", "the model, in place of the argument", CLI_MODEL,
     offsetof(convert_args, model), 0, 0, 0},
    {'o', "output", "FILE", "the GGUF file to write; '-' for standard output", CLI_PATH,
     offsetof(convert_args, output), 0, 0, 0},
    {0, "type", "TYPE",
     "how matrices are stored: f32, f16, bf16, q8_0, q4_0, q4_K, q6_K, ... (default: as they are)",
     CLI_TEXT, offsetof(convert_args, type), 0, 0, 0},
};

static int run_convert(const cli_call *call, qkv_error *err);

const cli_command cli_command_convert = {
    .name = "convert",
    .summary = "a model as one GGUF file",
    .synopsis = "(MODEL | -m MODEL) -o FILE [--type TYPE]",
    .description =
        "Writes a Hugging Face directory (config.json, *.safetensors, tokenizer.json) as one GGUF "
        "file, which llama.cpp reads too. A GGUF file is accepted as well, to store it in another "
        "type. MODEL may be a name, too (org/name, org/name:Q4_K_M): see 'qkv models'.\n"
        "\n"
        "Matrices get the requested type; norms, biases, routers and position embeddings are "
        "F32. A matrix whose rows do not divide into the blocks of a type gets another type, "
        "with a message on standard error.\n"
        "\n"
        "  qkv convert SmolLM2-135M -o smollm2.gguf --type q8_0\n",
    CLI_OPTIONS(options),
    CLI_ARGS(defaults),
    .max_operands = 1,
    .operand = CLI_MODEL,
    .run = run_convert,
};

static void print_note(void *user, const char *line) {
    (void)user;
    cli_notice("qkv: note: %s", line);
}

static int run_convert(const cli_call *call, qkv_error *err) {
    const convert_args *args = call->args;
    const qkv_convert_options how = {.size = sizeof(qkv_convert_options),
                                     .type = args->type,
                                     .note = print_note,
                                     .progress = cli_progress()};
    if (!args->model == !call->n_operands)
        return cli_usage(err,
                         call->n_operands ? "the model is given twice: '%s' and -m"
                                          : "say which model to convert: a path or a name%s",
                         call->n_operands ? call->operands[0] : "");
    if (!args->output) return cli_usage(err, "say with -o which file to write");
    qkv_model_place *place = NULL;
    const int to_stdout = cli_is_stdout(args->output);
    const char *output = to_stdout ? "/dev/stdout" : args->output;
    int status = to_stdout ? cli_stdout_check("gguf", err) : qkv_output_check(output, err);
    if (status == QKV_OK)
        status = cli_model_find(&place, args->model ? args->model : call->operands[0], err);
    if (status == QKV_OK)
        status = qkv_model_convert(qkv_model_place_get_info(place)->path, output, &how, err);
    qkv_model_place_free(place);
    return status;
}
