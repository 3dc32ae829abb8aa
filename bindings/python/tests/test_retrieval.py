"""The recipe retrieval-heads against numpy: prompts, answers, recalls and scores once more, from captured patterns and
logits."""
import re
from collections import Counter

import numpy as np
import pytest

NEEDLE = "The key to the old boathouse hangs behind the kitchen clock, next to the calendar."
QUESTION = "Where does the key to the old boathouse hang?"
ANSWER = "behind the kitchen clock, next to the calendar"
ASK = "Based on the content of the book, Question: {}\nAnswer:"
DEPTHS, LENGTHS = (0, 0.5, 1), (70, 100)


def table(study, name):
    found = next(t for t in study["tables"] if t["name"] == name)
    return [dict(zip(found["columns"], row)) for row in found["rows"]]


def recipe(program, *options):
    given = [a for option in options for a in (("--set", option) if "=" in option else (option,))]
    lengths, depths = ",".join(map(str, LENGTHS)), ",".join(map(str, DEPTHS))
    return program.json("recipe", "retrieval-heads", "--set", f"lengths={lengths}", "--set", f"depths={depths}", *given,
                        "--json")


def recall(answer, text):
    """ROUGE-1 without stemming."""
    wanted, found = (Counter(re.findall("[a-z0-9]+", t.lower())) for t in (answer, text))
    return sum((wanted & found).values()) / sum(wanted.values())


def looks(model, prompt, answer):
    """Layers, heads, steps: the key with the largest weight at the query that predicts each token of the answer; and
    the most likely tokens there."""
    result = model.run([*prompt, *answer[:-1]], capture=["pattern", "logits"])[0]
    patterns = np.stack([np.asarray(result["pattern", l]) for l in range(model.info.n_layer)])
    first = len(prompt) - 1
    return patterns[:, :, first:].argmax(-1), np.asarray(result["logits"])[first:].argmax(-1)


def window(model, prompt, answer):
    """What the paper's code takes for the needle."""
    wanted = model.tokenize(answer, special=False).tolist()
    for i in range(len(prompt)):
        if len(set(prompt[i:i + len(wanted)]) & set(wanted)) / len(set(wanted)) > 0.9:
            return i, i + len(wanted)
    return None, None


def span(model, prompt):
    """Tokens that have a part of the answer in them."""
    ends = np.cumsum([len(model.token_text(t).encode()) for t in prompt])
    text = "".join(map(model.token_text, prompt))
    at = text.index(NEEDLE) + NEEDLE.index(ANSWER)
    return int(np.argmax(ends > at)), int(np.argmax(ends >= at + len(ANSWER))) + 1


@pytest.mark.parametrize("options", [("all=true", "tokens=20"), ("decode=forced",),
                                     ("all=true", "tokens=20", "--parity"),
                                     ("all=true", "tokens=20", f"answer={NEEDLE}", "--parity")])
def test_every_number(model, program, options):
    study = recipe(program, *options)
    wanted = NEEDLE if f"answer={NEEDLE}" in options else ANSWER
    parity, forced = "--parity" in options, "decode=forced" in options
    tokens, tests, copies = table(study, "tokens"), table(study, "tests"), table(study, "copies")
    shape = model.info.n_layer, model.info.n_head
    scores = np.zeros((len(tests), *shape))
    assert [(t["length"], t["depth"]) for t in tests] == [(l, d) for l in LENGTHS for d in DEPTHS]
    for number, test in enumerate(tests):
        prompt = [t["token"] for t in tokens if t["test"] == number and not t["is_answer"]]
        answer = [t["token"] for t in tokens if t["test"] == number and t["is_answer"]]
        assert len(prompt) == test["tokens"] and test["length"] - 8 <= len(prompt) <= test["length"]
        start, end = window(model, prompt, wanted) if parity else span(model, prompt)
        assert (test["start"], test["end"]) == (start, end)
        at, first = looks(model, prompt, answer)
        if forced:
            assert answer == prompt[start:end] and test["predicted"] == pytest.approx((first == answer).mean())
        else:
            assert first.tolist() == answer and test["recall"] == pytest.approx(recall(wanted, test["answer"]))
        if start is None:  # the code finds nothing, and counts nothing
            continue
        copied = (at >= start) & (at < end) & (np.array(prompt)[np.minimum(at, len(prompt) - 1)] == answer)
        for l, h in np.ndindex(shape):
            found = at[l, h][copied[l, h]]
            scores[number, l, h] = (len(found) if parity else len(set(found))) / (end - start)
    for row in copies:
        assert row["score"] == pytest.approx(scores[row["test"], row["layer"], row["head"]])
    assert len(copies) == (scores > 0).sum()
    heads = np.array([row["score"] for row in table(study, "heads")]).reshape(shape)
    np.testing.assert_allclose(heads, scores.mean(0))
    ranked = [row["score"] for row in table(study, "ranking")]
    np.testing.assert_allclose(ranked, np.sort(heads[heads > 0])[::-1][:20])
    counted = [(heads == 0).sum(), ((heads > 0) & (heads < .1)).sum(), ((heads >= .1) & (heads <= .5)).sum(),
               (heads > .5).sum()]
    assert [row["heads"] for row in table(study, "classes")] == counted
    assert wanted == ANSWER or heads.max() > 0
    assert not forced or (heads.max() > 0.5 and {(r["layer"], r["head"]) for r in table(study, "ranking")[:2]} ==
                          {(5, 0), (5, 1)})  # the induction heads that `qkv roles` finds


def test_prompts(model, program, source):
    """Filler, needle at a sentence's end, question: the text of the tokens."""
    filler = "\n".join((source / "recipes" / "prompts.txt").read_text().splitlines())
    study = recipe(program, "decode=forced")
    tokens = table(study, "tokens")
    for number, test in enumerate(table(study, "tests")):
        prompt = [t["token"] for t in tokens if t["test"] == number and not t["is_answer"]]
        text = model.detokenize(prompt)
        context, asked = text.split("\nBased on ")
        assert "Based on " + asked == ASK.format(QUESTION)
        before, after = context.split(NEEDLE)
        words = before.rstrip(" ") + (after[1:] if not before else after)
        assert filler.startswith(words) and len(words) > 20
        n = len(model.tokenize(words, special=False))
        if test["depth"] == 1:
            assert after == ""
        elif before:
            assert before.endswith(". ") and after[0] in " \n"
            assert len(model.tokenize(before.rstrip(), special=False)) <= n * test["depth"]
        else:  # the first sentence is longer
            assert len(model.tokenize(filler[:filler.index(".") + 1], special=False)) > int(n * test["depth"])


def test_only_right_answers_count(program):
    study = recipe(program, "tokens=20")
    assert all(not test["counts"] and test["recall"] <= 0.5 for test in table(study, "tests"))
    assert all(row["score"] is None for row in table(study, "heads"))
