#!/usr/bin/env python3
"""Makes a model of a directory with tokenizer.json: chat_directory.py DIRECTORY.

The smallest llama that has so many tokens, with weights that are all 0. What a chat becomes depends
on the tokeniser's files alone.
"""
import json
import os
import struct
import sys

WIDTH = 8


def count_tokens(directory):
    with open(os.path.join(directory, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    last = max(tokenizer["model"]["vocab"].values())
    return 1 + max([last] + [token["id"] for token in tokenizer["added_tokens"]])


def write_weights(path, n_tokens):
    square, vector = [WIDTH, WIDTH], [WIDTH]
    layer = {"self_attn.%s_proj" % which: square for which in "qkvo"}
    layer.update({"mlp.%s_proj" % which: square for which in ("gate", "up", "down")})
    layer.update({"input_layernorm": vector, "post_attention_layernorm": vector})
    shapes = {"model.layers.0.%s.weight" % name: shape for name, shape in layer.items()}
    shapes.update({"model.embed_tokens.weight": [n_tokens, WIDTH], "model.norm.weight": vector})
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def main(directory):
    n_tokens = count_tokens(directory)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
              "intermediate_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 1,
              "num_key_value_heads": 1, "vocab_size": n_tokens, "max_position_embeddings": 64,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": True}
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    write_weights(os.path.join(directory, "model.safetensors"), n_tokens)


main(sys.argv[1])
