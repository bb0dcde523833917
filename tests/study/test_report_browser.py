"""Tests of the report in a real browser: no console messages, fits a phone, and runs no script from a study."""

import re
import shutil
import subprocess
from html import escape

import pytest
from rows import make_row

from treegram.study.protocol import Comparison, KernelSpec, Pair, Protocol, Published, Study, StudyEntry, entry_key
from treegram.study.report import render_report
from treegram.study.store import DatasetFacts, GramTime, Store
from treegram.study.summary import summarize

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--no-first-run",
    "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
SCRIPT = (
    "<script>document.title = 'owned'; console.error('owned')</script><img src=x onerror=\"document.title='owned'\">"
)


def browse(path, profile):
    """Return the DOM of the page after loading, and the console messages."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a page with all sections: six data sets, long and hostile names, published numbers, ranks, a pair."""
    datasets = tuple(f"DATASET_{i}" for i in range(6))
    names = ("ODDCL_ST", "A_KERNEL_WITH_A_VERY_LONG_NAME_" * 3, f"hostile {SCRIPT}")
    entries = tuple(
        StudyEntry(
            name,
            (KernelSpec("wl", parameters={"n_iterations": i}),),
            note=SCRIPT,
            published=Published(dict.fromkeys(datasets, 80.0 + i), dict.fromkeys(datasets, 1.0), {datasets[0]: 600.0}),
        )
        for i, name in enumerate(names)
    )
    study = Study(
        name="example",
        title=f"An example {SCRIPT}",
        datasets=datasets,
        kernels=entries,
        protocol=Protocol(repeats=2, outer_folds=10, inner_folds=2),
        about=SCRIPT,
        comparisons=(Comparison("all", names, datasets),),
        pairs=(Pair(names[0], (names[1],), datasets),),
        dataset_notes={datasets[0]: SCRIPT},
    )
    with Store.open(tmp_path_factory.mktemp("store") / "example.sqlite") as store:
        run = store.begin_run(SCRIPT).id
        for i, (entry, dataset) in enumerate((entry, dataset) for entry in entries for dataset in datasets[:2]):
            store.put_dataset(DatasetFacts(dataset, 40, {"a": 30, "b": 10}, 5.0, 4.0, 2, "d2"))
            key = entry_key(study, entry, dataset)
            store.add_gram_time(key, GramTime(dataset, entry.name, {}, 0.5, learns=False, run=run))
            for fold in range(10):
                row = make_row(dataset, entry.name, 0, fold, 0.7 + fold / 50 + i / 100, {"C": 1.0})
                store.add_row(key, row)
        return render_report(summarize(store, study), ".html")


def test_page_renders_without_console_messages(page, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    dom, console = browse(path, tmp_path / "profile")
    assert console == []
    assert "<title>An example &lt;script&gt;" in dom
    # Plots of the two data sets with results, and ranks of the published table.
    assert len(re.findall(r'<img src="data:image/svg', dom)) == 5
    for title in ("Accuracy", "Time", "Ranks: all", "Chosen parameters", "Provenance"):
        assert f"<h2>{title}</h2>" in dom


HARNESS = """<!doctype html><meta charset="utf-8"><body>{frames}<script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument, root = page.documentElement;
    page.querySelectorAll("details").forEach(one => one.open = true);
    const tables = [...page.querySelectorAll(".frame")];
    return [frame.clientWidth, root.scrollWidth, page.title.startsWith("owned"),
            tables.filter(one => one.scrollWidth > one.clientWidth).length > 0];
  }});
  document.body.innerHTML = "<p id=found>" + JSON.stringify(found) + "</p>";
}});
</script>"""


def test_page_fits_a_phone_and_runs_no_injected_script(page, tmp_path):
    """Remove the content security policy, so that only escaping protects; a wide page with a script shows that the test can fail."""
    unprotected = re.sub(r"<meta http-equiv=[^>]*>", "", page)
    assert unprotected != page
    wide = f"<title>wide</title><div style='width:2000px'>{SCRIPT}</div>"
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:800px" srcdoc="{escape(content)}"></iframe>'
        for width, content in ((360, unprotected), (1200, unprotected), (360, wide))
    )
    path = tmp_path / "harness.html"
    path.write_text(HARNESS.format(frames=frames), encoding="utf-8")
    dom, console = browse(path, tmp_path / "profile")
    found = re.search(r'<p id="found">(.*?)</p>', dom).group(1)
    assert found == "[[360,360,false,true],[1200,1200,false,false],[360,2008,true,false]]"
    assert len(console) == 1  # from the page with a script
