"""The lines of keys and values, on all shapes that TOML allows."""

import tomllib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from treegram.study.toml import line_numbers


@st.composite
def documents(draw):
    """Valid TOML in many shapes, whose keys are all different."""
    n_keys = iter(range(1000))

    def key():
        word = f"k{next(n_keys)}k"
        return draw(st.sampled_from([word, f'"{word}"', f"'{word}'", f'"\\u006b{word[1:]}"']))

    def dotted():
        return draw(st.sampled_from([".", " . "])).join(key() for _ in range(draw(st.integers(1, 3))))

    def value(depth):
        kind = draw(st.sampled_from(["scalar", "list", "table"] if depth else ["scalar"]))
        if kind == "scalar":
            return draw(st.sampled_from(SCALARS))
        sizes = range(draw(st.integers(0, 3)))
        if kind == "table":
            return "{" + ", ".join(f"{dotted()} = {value(depth - 1)}" for _ in sizes) + "}"
        gap = draw(st.sampled_from([" ", "\n", " # ], [ \n  "]))
        return "[" + gap + "".join(f"{value(depth - 1)}{gap},{gap}" for _ in sizes) + "]"

    def block(header):
        pairs = "".join(f"{dotted()} = {value(2)}{draw(st.sampled_from(ENDS))}" for _ in range(draw(st.integers(0, 3))))
        return header + draw(st.sampled_from(ENDS)) + pairs

    blocks = [block("")]
    for _ in range(draw(st.integers(0, 3))):
        outer = key()
        blocks += [block(f"[{outer}]")] * draw(st.booleans())
        inner = f"{outer}.{key()}"
        blocks += [block(f"[[{inner}]]") for _ in range(draw(st.integers(0, 3)))]
        blocks += [block(f"[{inner}.{key()}]"), block(f"[[{inner}.{key()}]]")]
    return "".join(blocks)


ENDS = ["\n", '  # a = [ { "\n', "\n\n# [[x]]\n\t\n"]
SCALARS = [
    "1",
    "-1_000.5e3",
    "true",
    "1979-05-27 07:32:00",
    '"a # ] } , = \\" \\\\"',
    "'a # ] } \\'",
    '""',
    "''",
    '"""\n[x]\n\\""" " ""a"""""',
    "'''\n\\ k = 1 # '' \n'''''",
]


def paths_of(value, path=()):
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from paths_of(inner, (*path, step))


@given(documents())
@settings(max_examples=60, deadline=None)
@example("a.b = 1\n[[c]]\n[[c.d]]\n[[c.d]]\n[c.d.e]\nf = 1\n[[c]]\n[[c.d]]\n")
def test_every_value_has_a_line_and_keys_stand_there(source):
    lines = line_numbers(source)
    assert set(lines) == set(paths_of(tomllib.loads(source)))
    text = source.split("\n")
    for path, line in lines.items():
        if isinstance(path[-1], str):
            assert path[-1].removeprefix("k") in text[line - 1]
