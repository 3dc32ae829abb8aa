qkv --weather
