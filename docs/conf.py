"""Configuration of Sphinx for ``make docs``. Neither the build nor the pages need a network."""

import re
import sys
from importlib.metadata import version as installed_version
from inspect import unwrap
from os.path import normpath
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes

import treegram

sys.path.insert(0, str(Path(__file__).parent))
from make_commands import write_commands
from make_reference import write_reference

write_reference(Path(__file__).parent)
write_commands(Path(__file__).parent)
project = "treegram"
author = "The treegram developers"
copyright = "the treegram developers, MIT license"  # noqa: A001 (Sphinx's name for it)
version = release = installed_version("treegram")

root_doc = "contents"  # the menu; pages stay plain Markdown, readable without Sphinx
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",  # links to the source
    "sphinx_copybutton",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "reset_modules": ("matplotlib", "gallery_style.use"),
    "thumbnail_size": (480, 300),
    "image_srcset": ["2x"],  # sharp on screens with small pixels
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 3600,  # times on this machine mean nothing to a reader
    "write_computation_times": False,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # is not copied
copybutton_prompt_is_regexp = True
templates_path = ["_templates"]
nitpicky = True  # a reference that leads nowhere is a warning, and make docs fails on warnings

autodoc_typehints = "none"  # docstrings state types in words
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # the template lists them, without those inherited from scikit-learn
highlight_language = "none"  # a block without a language is a command and its output
smartquotes = False  # "rbf" and x' are code and mathematics
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

html_theme = "furo"
html_title = f"treegram {release}"
html_static_path = ["_static"]
html_css_files = ["treegram.css"]
html_show_sourcelink = False
html_copy_source = False
REPOSITORY, PAPER = "https://github.com/treegram/treegram", "https://doi.org/10.1109/TNNLS.2017.2705694"
html_context = {"repository": REPOSITORY, "paper": PAPER}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "links.html",  # to the repository and the paper
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    # The sidebar is hidden on a phone, and the end of a page is not.
    "footer_icons": [
        {"name": "Repository", "url": REPOSITORY, "html": "Repository", "class": "footer-link"},
        {"name": "Paper", "url": PAPER, "html": "Paper", "class": "footer-link"},
    ],
    "light_css_variables": {"color-brand-primary": "#1b6b50", "color-brand-content": "#1b6b50"},
    "dark_css_variables": {"color-brand-primary": "#6fcfaa", "color-brand-content": "#6fcfaa"},
}

SCIKIT_LEARN = "https://scikit-learn.org/stable/modules/generated"


def setup(app: Any) -> None:
    """Register the functions below."""
    app.add_html_math_renderer("mathml", (write_inline_formula, None), (write_formula, None))
    app.connect("autodoc-skip-member", skip_foreign_member)
    app.connect("source-read", offer_other_files)
    app.connect("missing-reference", link_scikit_learn)
    app.connect("doctree-read", link_public_names)
    app.connect("html-page-context", begin_with_landing_page)


def write_inline_formula(writer: Any, node: nodes.math) -> None:
    """Write an inline formula as MathML, which browsers draw themselves: MathJax would have to be downloaded."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_formula(writer: Any, node: nodes.math_block) -> None:
    """Write a displayed formula as MathML."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def skip_foreign_member(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:  # noqa: ARG001, FBT001
    """Leave out members inherited from scikit-learn or Python, such as ``get_params``."""
    function = unwrap(member.fget if isinstance(member, property) else member)
    return None if (getattr(function, "__module__", None) or "").startswith("treegram") else True


def offer_other_files(app: Any, page: str, source: list[str]) -> None:  # noqa: ARG001
    """Make downloads of Markdown files outside this folder, such as benchmarks/RESULTS.md, which are not pages."""

    def offer(link: re.Match[str]) -> str:
        leaves = normpath(Path(page).parent / link[2]).startswith("..")
        return f"{{download}}`{link[1]} <{link[2]}>`" if leaves else link[0]

    source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)#]+\.md)\)", offer, source[0])


def begin_with_landing_page(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:  # noqa: ARG001
    """Link the name of the project to the landing page, not to the menu, which is an empty page."""
    context["master_doc"] = "index"
    if page == "index":
        context["prev"] = None


def link_scikit_learn(app: Any, environment: Any, reference: Any, content: nodes.Element) -> nodes.reference | None:  # noqa: ARG001
    """Link names of scikit-learn to its pages, whose addresses follow from the names."""
    target = reference.get("reftarget", "")
    if not target.startswith("sklearn."):
        return None
    return nodes.reference("", "", content, internal=False, refuri=f"{SCIKIT_LEARN}/{target}.html")


def link_public_names(app: Any, tree: nodes.document) -> None:
    """Link code such as ``ODDCL`` or ``ODDCL()`` on Markdown pages to its entry in the reference."""
    if not str(tree.get("source", "")).endswith(".md"):
        return
    for literal in list(tree.findall(nodes.literal)):
        name = literal.astext().removeprefix("tg.").partition("(")[0]
        if name in treegram.__all__ and not isinstance(literal.parent, nodes.reference):
            target = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=f"treegram.{name}", refdoc=app.env.docname, refexplicit=True
            )
            literal.replace_self(target)
            target += literal
