QKV_MODEL=elsewhere.gguf qkv info
