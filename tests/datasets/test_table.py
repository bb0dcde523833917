import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treegram.datasets.tu import TextTable
from treegram.exceptions import DatasetError


def read_numbers(path, n_columns=None):
    return TextTable(path, whole=False, n_columns=n_columns).read()


def read_integers(path):
    return TextTable(path, whole=True).read()


@pytest.fixture
def table(tmp_path):
    def write(text):
        path = tmp_path / "T_table.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "1, 2\n-3, 4.5\n",
        "1,2\n-3,4.5",
        "1 2\r\n-3 4.5\r\n",
        "1\t2\n-3\t4.5\n\n \n\r\n",
        "  +1 ,\t2.  \n-.3e1 , 45E-1\n",
        "\ufeff1, 2\n-3, 4.5\n",
        "1e0, 0.2e+01\n-00003, 4.50000000000000000000000\n",
    ],
)
def test_all_spellings_of_a_table_give_the_same_values(table, text):
    assert read_numbers(table(text)).tolist() == [[1.0, 2.0], [-3.0, 4.5]]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_repr_of_floats_is_read_exactly(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("numbers") / "T_x.txt"
    path.write_text("\n".join(map(repr, numbers)))
    assert read_numbers(path)[:, 0].tobytes() == np.array(numbers).tobytes()


DIGITS = st.text("0123456789", min_size=1, max_size=25)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "-", "+"]),
            DIGITS,
            st.sampled_from([".", ""]),
            DIGITS,
            st.sampled_from(["", "e-9", "E17"]),
        ),
        min_size=1,
        max_size=30,
    ).map(lambda parts: ["".join(part) for part in parts])
)
def test_every_number_is_parsed_as_by_python(tmp_path_factory, tokens):
    path = tmp_path_factory.mktemp("numbers") / "T_x.txt"
    path.write_text("\n".join(tokens))
    assert read_numbers(path)[:, 0].tobytes() == np.array([float(token) for token in tokens]).tobytes()


@pytest.mark.parametrize(
    "token",
    [
        "9007199254740992",
        "9007199254740993",
        "0.9007199254740993",
        "999999999999999999",
        "9223372036854775808",
        "18446744073709551617",
        "-0.0",
        "0.1234567890123456789",
        "0.0000000000000000000000001",
        "0.00000000000000001",
        "1e22",
        "1e23",
        "4.9e-324",
        "1.7976931348623157e308",
    ],
)
def test_numbers_at_the_limits_of_the_fast_path(table, token):
    assert read_numbers(table(token))[0].tobytes() == np.array([float(token)]).tobytes()


def test_real_tables_match_numpy(data_dir):
    for path in sorted(data_dir.glob("*/*_node_attributes.txt")):
        with path.open() as file:
            lines = [next(file) for _ in range(200)]
        expected = np.loadtxt(lines, delimiter=",", ndmin=2)
        assert np.array_equal(read_numbers(path)[:200], expected), path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty; expected 2 numbers in each line"),
        ("\n \n", ": the file is empty"),
        ("1, 2\n3\n", ":2: expected 2 numbers, got 1: '3'"),
        ("1, 2\n3, 4, 5\n", ":2: expected 2 numbers, got 3: '3, 4, 5'"),
        ("1, 2\n3, 4 5\r\n", ":2: expected a finite number, got '4 5'"),
        ("1, 2\n3,\n", ":2: expected a finite number, got ''"),
        ("1, 2\n3, 4,\n", ":2: expected 2 numbers, got 3: '3, 4,'"),
        ("1, 2\n,3, 4\n", ":2: expected 2 numbers, got 3: ',3, 4'"),
        ("1, 2\n3,, 4\n", ":2: expected 2 numbers, got 3: '3,, 4'"),
        ("1, 2\n,\n", ":2: expected a finite number, got ''"),
        ("1, 2\n\n3, 4\n", ":2: there is a blank line in the middle"),
        ("\n1, 2\n", ":1: there is a blank line"),
        ("1, 2\nx, 4\n", ":2: expected a finite number, got 'x'"),
        ("1, 2\n3, nan\n", ":2: expected a finite number, got 'nan'"),
        ("1, 2\n3, -inf\n5\n", ":2: expected a finite number, got '-inf'"),
        ("1, 2\n3, 1e999\n", ":2: expected a finite number, got '1e999'"),
        ("1, 2\n3, 1_0\n", ":2: expected a finite number, got '1_0'"),
        ("1, 2\n3, 0x10\n", ":2: expected a finite number, got '0x10'"),
        ("1, 2\n3, 1.2.3\n", ":2: expected a finite number, got '1.2.3'"),
        ("1, 2\n3, 1-2\n", ":2: expected a finite number, got '1-2'"),
        ("1, 2\n3, --2\n", ":2: expected a finite number, got '--2'"),
        ("1, 2\n3, -\n", ":2: expected a finite number, got '-'"),
        ("1, 2\n3, .\n", ":2: expected a finite number, got '.'"),
        ("1, 2\n3, 1e\n", ":2: expected a finite number, got '1e'"),
        ("1, 2\n3, 4;\n", ":2: expected a finite number, got '4;'"),
        ("1, 2\n3, ٣\n", ":2: expected a finite number, got '٣'"),
        (b"1, 2\n3, \xff\n", r":2: expected a finite number, got '\\\\xff'"),
        (b"1, 2\n3, \0\n", r":2: expected a finite number, got '\\x00'"),
        ("1, 2\n3, " + 100 * "z", ":2: expected a finite number, got 'z{60}[.]{3}'"),
    ],
)
def test_error_names_file_and_line(table, text, message):
    with pytest.raises(DatasetError, match="T_table.txt" + message):
        read_numbers(table(text), n_columns=2)


def test_first_line_sets_the_number_of_columns(table):
    with pytest.raises(DatasetError, match=r"T_table.txt:2: expected 3 numbers, got 2"):
        read_numbers(table("1 2 3\n4 5\n"))


def test_long_first_line_does_not_allocate_for_short_ones(table):
    with pytest.raises(DatasetError, match=r"T_table.txt:2: expected 100,000 numbers, got 1"):
        read_numbers(table("1 " * 100_000 + "\n1" * 100_000))


def test_whole_numbers_are_read_as_integers(table):
    read = read_integers(table("1, -2.0\n3e2, 9007199254740991.0"))
    assert read.dtype == np.int64
    assert read.tolist() == [[1, -2], [300, 2**53 - 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2.5\n", ":2: expected a whole number .* got '2.5"),
        ("1\n2\n9007199254740994", ":3: expected a whole number .* got '9007199254740994"),
        ("9007199254740993", ":1: expected a whole number .* got '9007199254740993'"),
        ("-9007199254740993", ":1: expected a whole number .* got '-9007199254740993'"),
        ("9007199254740992.5", ":1: expected a whole number .* got '9007199254740992.5"),
        ("1\n" + 70 * "9", ":2: expected a whole number .* got '9{60}[.]{3}"),
        ("1e300\n0.5", ":1: expected a whole number .* got '1e"),
        ("0.5\n1e300", ":1: expected a whole number .* got '0.5"),
        ("1\nC\n", ":2: expected a finite number, got 'C'"),
    ],
)
def test_other_numbers_are_not_integers(table, text, message):
    with pytest.raises(DatasetError, match="T_table.txt" + message):
        read_integers(table(text))


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_unreadable_files_raise(tmp_path, kind):
    path = tmp_path / "T_table.txt"
    if kind == "folder":
        path.mkdir()
    with pytest.raises(DatasetError, match=r"T_table.txt: the file cannot be read \(.+\)"):
        read_numbers(path)


@pytest.mark.parametrize("form", ["%.18e", "%.17g", "%.16e", "%r"])
def test_numbers_in_all_common_formats_are_rounded_correctly(table, form):
    """Numbers of all magnitudes and next to rounding boundaries, on the fast and the slow path."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    numbers = np.concatenate([numbers[np.isfinite(numbers)], rng.normal(size=20_000), 2.0 ** np.arange(-1000, 1000)])
    texts = [form % number for number in numbers.tolist()]
    got = read_numbers(table("\n".join(texts)))[:, 0]
    assert got.tobytes() == np.array([float(text) for text in texts]).tobytes()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**19 - 1), st.integers(-345, 288)), min_size=1, max_size=50))
def test_many_digits_and_any_exponent_are_read(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("numbers") / "T_x.txt"
    tokens = [f"{digits}e{exponent}" for digits, exponent in parts]
    path.write_text("\n".join(tokens))
    assert read_numbers(path)[:, 0].tobytes() == np.array([float(token) for token in tokens]).tobytes()


@pytest.mark.parametrize("n_rows", [1, 2, 7, 50, 1000])
def test_table_can_be_read_in_chunks(table, n_rows):
    text = "\ufeff" + "".join(f"{i}, {i / 7}\n" for i in range(50)) + "\n \n\n"
    reader = TextTable(table(text), whole=False)
    pieces = [reader.read(n_rows)]
    while len(pieces[-1]):
        pieces.append(reader.read(n_rows))
    assert np.concatenate(pieces).tolist() == [[i, i / 7] for i in range(50)]
    assert reader.n_read == reader.count_rows() == 50
    for more, message in (
        ("\n1, 2\n", ":51: there is a blank line in the middle"),
        ("1, 2\n7", ":52: expected 2 numbers"),
    ):
        reader = TextTable(table(text.rstrip() + "\n" + more), whole=False)
        with pytest.raises(DatasetError, match="T_table.txt" + message):
            [reader.read(n_rows) for _ in range(53)]
