"""Check that the documentation is complete, that its links work, and that its code and commands run.

Data sets named on a page are replaced by small ones of the same name, so that every block runs on any machine. The block on PyTorch
Geometric runs if torch_geometric is installed (CONTRIBUTING.md says how). The examples of the gallery run when the documentation is built.
"""

import ast
import re
import runpy
import shlex
import shutil
import tomllib
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import gemmi
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import treegram as tg
from treegram.cli import COMMANDS, main
from treegram.study.study_file import parse_study

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted([*DOCS.glob("*.md"), *DOCS.glob("kernels/*.md")])]
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))
DATA_SETS = ["BZR", "COX2", "DHFR", "ENZYMES", "MUTAG", "PROTEINS", "SYNTHETICnew", "mine", "new", "solubility"]
COMMAND_LINES = {"text", ""}
LANGUAGES = {"python", "toml", *COMMAND_LINES}
# Commands that are parsed but not run here: they take long, and have their own tests.
NOT_RUN = {"evaluate", "report", "reproduce", "precompile", "--help"}
RUN_IF_INSTALLED = {"torch_geometric"}
# Running a page takes seconds to a minute: make test runs these two, make test-all runs all.
FAST_PAGES = {"README.md", "docs/tutorial.md"}
PAGES_TO_RUN = [
    pytest.param(page, id=name, marks=[] if name in FAST_PAGES else pytest.mark.slow)
    for page, name in zip(PAGES, IDS, strict=True)
]


def blocks(page):
    """Yield the language and the text of each block, and the number of its first line."""
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"^```([^\n`]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        language = block.group(1).split(" ")[0]
        assert language in LANGUAGES, f"{page.name}: nothing here runs blocks in {language}"
        yield language, block.group(2), text.count("\n", 0, block.start(2)) + 1


def commands(block, first):
    """Yield the line number and the words of each command in a block, without comments."""
    for line, text in enumerate(block.splitlines(), start=first):
        if found := re.match(r"(?:\$ )?treegram (.*)", text):
            yield line, shlex.split(found[1], comments=True)


def compiled(page, line, block):
    """Compile a block so that tracebacks name the lines of the page."""
    return compile("\n" * (line - 1) + block, str(page), "exec")


def is_run(block):
    """Return True unless the block imports an optional package that is not installed."""
    nodes = list(ast.walk(ast.parse(block)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    packages = {name.partition(".")[0] for name in names}
    return all(find_spec(name) for name in packages & RUN_IF_INSTALLED)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a folder with small data sets, a model, and a file of molecules."""
    folder = tmp_path_factory.mktemp("docs")
    graphs, y = tg.load_digits_graphs(n_levels=3)
    few = graphs[y < 2][:40]  # two classes, labels and vectors
    for name in DATA_SETS:
        tg.save_tu(few, folder / name)
    tg.save_model(tg.GraphSVC(tg.WLOA(1), param_grid={}, C=1, cv=2).fit(few, y[y < 2][:40]), folder / "model.tgm")
    (folder / "new.csv").write_text("smiles\nCCO\nc1ccccc1O\n")
    wide = few.assign(attributes=np.tile(few.attributes, 6))  # 18 columns, as ENZYMES has
    raw = folder / "data" / "ENZYMES" / "raw"  # where PyTorch Geometric looks before it downloads
    raw.parent.mkdir(parents=True)
    tg.save_tu(wide, raw, name="ENZYMES")
    write_foreign_files(folder)
    write_own_files(folder)
    shutil.copytree(ROOT / "examples" / "data", folder / "examples" / "data")  # as in a clone
    return folder


def write_own_files(folder):
    """Write the tables and structures that docs/new_graphs.md reads."""
    smiles, y = tg.make_molecules(30, random_state=0)
    rows = [f"{text},{number}" for text, number in zip(smiles, y, strict=True)]
    (folder / "molecules.csv").write_text("\n".join(["smiles,solubility", *rows, ""]))
    for prefix in ("", "new_"):
        nodes = [f"g{i},{j},{'CO'[i % 2]},{i + j}.5" for i in range(20) for j in range(3)]
        edges = [f"g{i},{j},{j + 1}" for i in range(20) for j in range(2)]
        (folder / f"{prefix}tables").mkdir()
        (folder / f"{prefix}tables" / "nodes.csv").write_text("\n".join(["graph,node,label,x", *nodes, ""]))
        (folder / f"{prefix}tables" / "edges.csv").write_text("\n".join(["graph,source,target", *edges, ""]))
        (folder / f"{prefix}structures").mkdir()
        for i in range(20):
            lines = [
                f"ATOM  {k:5d}  CA  {('ALA', 'CYS')[i % 2]} A{k:4d}    {1.5 * k + i / 9:8.3f}{k % 3:8.3f}{0:8.3f}  1.00  0.00           C"
                for k in range(1, 9)
            ]
            (folder / f"{prefix}structures" / f"p{i}.pdb").write_text("\n".join([*lines, "END", ""]))
    (folder / "tables" / "graphs.csv").write_text("\n".join(["graph,y", *(f"g{i},{i % 2}" for i in range(20)), ""]))
    (folder / "classes.csv").write_text("\n".join(["protein,class", *(f"p{i},{i % 2}" for i in range(20)), ""]))


def write_foreign_files(folder):
    """Write the protein structures and Parquet files that docs/own_data.md reads."""
    for name in ("1ubq.cif", "4hhb.pdb"):
        helix = [
            f"ATOM  {i:5d}  CA  ALA A{i:4d}    {1.5 * i:8.3f}{i % 3:8.3f}{0:8.3f}  1.00  0.00           C"
            for i in range(1, 9)
        ]
        structure = gemmi.read_pdb_string("\n".join([*helix, "END"]))
        structure.setup_entities()
        if name.endswith("cif"):
            structure.make_mmcif_document().write_file(str(folder / name))
        else:
            structure.write_pdb(str(folder / name))
    rows = {"edge_index": [[[0, 1], [1, 0]]] * 2, "y": [[0], [1]], "num_nodes": [2, 2]}
    edges = {"edge_attr": [[[1, 0], [1, 0]]] * 2}
    parquet.write_table(pa.table(rows | {"node_feat": [[[1.0, 0.0], [0.0, 1.0]]] * 2}), folder / "mutag.parquet")
    parquet.write_table(pa.table(rows | edges | {"node_feat": [[[5, 0], [7, 1]]] * 2}), folder / "molhiv.parquet")


@pytest.fixture
def data_sets(made, tmp_path, monkeypatch):
    """Change to a working folder that contains these data sets, and allow no download."""
    folder = shutil.copytree(made, tmp_path / "reader")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TREEGRAM_DATA", str(folder))
    monkeypatch.setenv("TREEGRAM_MIRROR", "http://127.0.0.1:9")
    return folder


# -------------------------------------------------------------------- code and commands


@pytest.mark.parametrize("page", PAGES_TO_RUN)
def test_python_and_short_commands_run_in_order(page, data_sets, capsys):
    names = {}
    with warnings.catch_warnings():
        if "torch_geometric" in page.read_text(encoding="utf-8"):
            warnings.simplefilter("ignore", DeprecationWarning)  # torch_geometric uses functions that torch will remove
        if "import grakel" in page.read_text(encoding="utf-8"):
            warnings.simplefilter("ignore")  # GraKeL uses functions that numpy and scikit-learn will remove
            pytest.importorskip("grakel", reason="GraKeL has no wheel for this Python")
        for language, block, first in blocks(page):
            if language == "python":
                code = compiled(page, first, block)
                exec(code if is_run(block) else "", names)
            elif language in COMMAND_LINES:
                run_commands(page, block, first, capsys)


def run_commands(page, block, first, capsys):
    for line, words in commands(block, first):
        if NOT_RUN.isdisjoint(words):
            assert main(words) == 0, f"{page.name}:{line}: {capsys.readouterr().err}"


def test_every_command_can_be_parsed(monkeypatch, capsys):
    for page in PAGES:
        parse_commands(page, monkeypatch, capsys)


def parse_commands(page, monkeypatch, capsys):
    found = [command for language, *block in blocks(page) if language in COMMAND_LINES for command in commands(*block)]
    for line, words in found:
        assert words[0] in COMMANDS, f"{page.name}:{line}"
        monkeypatch.setattr(import_module(f"treegram.cli.{words[0]}"), "run", lambda args: None)
        assert main(words) == 0, f"{page.name}:{line}: {capsys.readouterr().err}"


def test_every_study_is_valid():
    for page in PAGES:
        for language, block, _ in blocks(page):
            if language == "toml":
                assert parse_study("study", block.encode(), page.name).datasets


def test_mistakes_on_a_page_are_found(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text("```text\ntreegram gram ENZYMES --dept 3 -o K.npz\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2: .*unknown option --dept"):
        parse_commands(page, monkeypatch, capsys)
    page.write_text("```bash\nls\n```\n")
    with pytest.raises(AssertionError, match="blocks in bash"):
        parse_commands(page, monkeypatch, capsys)


# -------------------------------------------------------------------- links


def source(page, link):
    """Return the file that a link leads to; for a generated page, the file it is generated from."""
    path = Path(re.sub(r"\.html$", ".md", link))
    if "auto_examples" in path.parts[:2]:
        parts = path.parts[path.parts.index("auto_examples") + 1 :]
        name = "GALLERY_HEADER.rst" if path.stem == "index" else Path(*parts).with_suffix(".py")
        return ROOT / "examples" / name
    made = {"reference.rst": "make_reference.py", "commands.rst": "make_commands.py"}
    return page.parent / made.get(str(path), path)


def test_links_to_files_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
        links += re.findall(r'href="([^"#:]+)"', text)
        assert [link for link in links if not source(page, link).exists()] == [], page.name


def test_relative_links_of_the_readme_become_absolute_on_the_package_index():
    """Relative links work in a clone; the package index shows the README alone and needs addresses."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    home = project["project"]["urls"]["Repository"]
    raw = home.replace("https://github.com", "https://raw.githubusercontent.com")
    text = without_code(ROOT / "README.md")
    relative = re.findall(r"\]\(([^)#:\s][^):\s]*)\)", text)
    assert len(relative) > 20
    for substitution in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    absolute = set(re.findall(r"\]\((?!#)([^)\s]+)\)", text))
    absolute -= set(re.findall(r"\]\((https:[^)\s]+)\)", without_code(ROOT / "README.md")))
    assert {link.removeprefix(f"{raw}/main/").removeprefix(f"{home}/blob/main/") for link in absolute} == set(relative)
    assert {link for link in absolute if link.startswith(raw)} == {
        f"{raw}/main/{link}" for link in relative if link.endswith("overview.png")
    }


def without_code(page):
    """Return the text of a page without blocks and spans of code."""
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_pages_are_plain_markdown():
    """Roles and directives of Sphinx would show as raw text wherever Markdown is read without it."""
    for page in PAGES:
        assert re.findall(r"\{[\w:-]+\}`|^:::|^```\{", page.read_text(encoding="utf-8"), re.MULTILINE) == [], page.name


def test_links_to_the_web_are_well_formed():
    for page in PAGES:
        for link in re.findall(r"https?://[^\s)>\"`]+", page.read_text(encoding="utf-8")):
            parts = urlsplit(link.rstrip(".,;"))
            assert parts.scheme == "https", (page.name, link)
            assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc), (page.name, link)


# -------------------------------------------------------------------- completeness


def test_reference_lists_every_public_name_once():
    page = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))["reference_page"]()
    listed = re.findall(r"^   (\w+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(tg.__all__)


def test_commands_page_has_every_option(capsys):
    page = runpy.run_path(str(ROOT / "docs" / "make_commands.py"))["commands_page"]()
    sections = re.split(r"^treegram (\w+)\n-+$", page, flags=re.MULTILINE)
    assert sections[1::2] == list(COMMANDS)
    for name, section in zip(sections[1::2], sections[2::2], strict=True):
        assert main([name, "--help"]) == 0
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", capsys.readouterr().out.split("examples:")[0]))
        assert options <= set(re.findall(r"--[a-z][a-z-]*", sections[0] + section)), name


def test_every_page_is_in_the_menu():
    menu = (ROOT / "docs" / "contents.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   ((?!auto_examples)[\w/]+)$", menu, re.MULTILINE)
    pages = [page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES[1:]]
    assert sorted(listed) == sorted([*pages, "reference", "commands"])


def test_readme_is_short_and_quotes_the_results():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 130
    assert len(readme.split()) <= 680
    programs = [text for language, text, _ in blocks(ROOT / "README.md") if language == "python"]
    assert all(text.startswith("import treegram as tg\n") for text in programs), "each block runs as pasted"
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- criteria: .*?<!-- end of results -->", results, re.DOTALL)[0]
    leads = [float(one.replace("\N{MINUS SIGN}", "-")) for one in re.findall(r"\w [\d.]+ \| (.[\d.]+) ±", block)]
    assert (len(leads), sum(lead > 0 for lead in leads), min(leads)) == (10, 8, -0.3)
    assert "first on eight of ten data sets, and within 0.3 points" in readme


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=["README", "index"])
def test_first_pages_quote_the_published_folds(page):
    rows = published_rows(page.read_text(encoding="utf-8"))
    assert list(rows) == ["ENZYMES", "NCI1", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI"]
    measured = ROOT / "results" / "published_folds.md"
    if not measured.exists():
        pytest.skip("python benchmarks/published_folds.py has not written results/published_folds.md")
    expected = published_rows(measured.read_text(encoding="utf-8").replace("PROTEINS_full", "PROTEINS"))
    assert rows == expected


def published_rows(text):
    """Return our accuracy, the best published one and the seconds, by the name of the data set."""
    found = {}
    for line in text.splitlines():
        if " ± " in line and line.startswith("| "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            ours, best = re.findall(r"[\d.]+ ± [\d.]+", line)
            found[cells[0].partition(",")[0].strip()] = ours, best, cells[-1].strip()
    return found


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=["README", "index"])
def test_first_block_prints_what_its_comment_says(page, capsys):
    block = next(text for language, text, _ in blocks(page) if language == "python")
    printed = re.search(r"print\(.*?\)  # (.*)", block)[1]
    exec(block, {})
    assert capsys.readouterr().out.strip() == printed


def test_colors_of_figures_can_be_seen_on_light_and_on_dark_pages():
    """At least 3 to 1, as the guidelines for accessible content ask of graphics, and 4 to 1 for text."""
    mpl = pytest.importorskip("matplotlib")
    style = mpl.rc_params_from_file(DOCS / "figures.mplstyle", use_default_template=False)
    assert style["savefig.transparent"]

    def brightness(color):
        parts = np.array(mpl.colors.to_rgb(color))
        return (
            np.where(parts <= 0.04, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722] + 0.05
        )

    for color in [*style["axes.prop_cycle"].by_key()["color"], style["text.color"]]:
        least = 4 if color == style["text.color"] else 3
        assert brightness("white") / brightness(color) > least, color
        assert brightness(color) / brightness("#131416") > least, color  # the dark pages of furo


@pytest.mark.parametrize("picture", sorted(DOCS.glob("_static/*.png")), ids=lambda path: path.name)
def test_pictures_have_no_background(picture):
    corner = pytest.importorskip("PIL.Image").open(picture).convert("RGBA").getpixel((0, 0))
    assert corner[3] == (255 if picture.name == "molecule.png" else 0)  # RDKit draws on white


def test_gallery_examples_have_a_title_a_plot_and_no_download():
    assert len(EXAMPLES) >= 18
    journeys = (ROOT / "tests" / "test_journeys.py").read_text(encoding="utf-8")
    for example in EXAMPLES:
        text = example.read_text(encoding="utf-8")
        title, underline, blank = (ast.get_docstring(ast.parse(text)) or "").splitlines()[:3]
        assert underline == "=" * len(title), example
        assert not blank
        if example.name.startswith("plot_"):  # the gallery runs it
            assert "plt.show()" in text
        else:
            assert example.stem in journeys, "a test runs it"
        assert "load_tu(" not in text  # nothing is downloaded
