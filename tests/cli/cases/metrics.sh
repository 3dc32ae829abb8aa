# Some metrics by name, as text and as JSON; all of them have a formula and a source.
qkv metrics sink tv
qkv metrics --json sink_rate
qkv metrics --json | grep -c '"formula": ".'
qkv metrics --json | grep -c '"source": ".'
qkv metrics nothing
echo "exit $?"
qkv metrics --json --markdown
echo "exit $?"
