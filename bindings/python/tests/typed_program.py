"""What a program with types looks like: checked by types.sh."""
import qkv


def weights_of(model: qkv.Model, text: str) -> float:
    result: qkv.Result = model.run(text, edits=[qkv.scale("q", layer=2, head=1, by=1e-3)], capture=["pattern@2"])
    figure: qkv.Figure = model.modify(text, layer=3, head=1)
    figure.save("a.pdf")
    changed = result[1].changed["q@2.h1=scale:0.001"]
    assert changed is not None
    for step in model.generate(text, n=3):
        print(step.text[0])
    return float(result[1]["pattern", 2].max()) + changed
