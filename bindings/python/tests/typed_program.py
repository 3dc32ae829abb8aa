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


def answer_of(model: qkv.Model, other: qkv.Model) -> dict[str, qkv.Table]:
    lens: qkv.Study = model.lens("The river runs to the", answer=" sea", top=3, colormap="viridis")
    lens.save("lens.pdf", width="85mm", no_notes=True)
    model.patch(clean="The old mill", corrupt=["The new mill"], metric=["kl"], layers=[0, 1], results="patch.sqlite")
    compared = model.compare(["The river runs."], other=other, distance="js", edit=qkv.zero("q", layer=3))
    picture: bytes = model.study("heads", top=3).to_bytes("png")
    assert picture and compared.same is None
    return lens.tables
