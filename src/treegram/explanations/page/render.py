"""Views of graphs as one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from treegram._core.html import Markup, element, join, page
from treegram._core.progress import track
from treegram._core.text import counted
from treegram.explanations.page.drawings import (
    draw_graph,
    draw_molecule,
    draw_scale,
    draw_tree,
    has_labels,
    node_label,
    signed,
)
from treegram.explanations.page.views import FittedGraph, GraphView
from treegram.graphs import Graphs

__all__ = ["PageContent", "render_page"]

GENERATOR = "treegram explain"
_LONGEST_NAME = 90  # characters of a feature's name that are shown at once
_MOST_THUMBNAIL = 120  # nodes of a fitted graph that is drawn


@dataclass(frozen=True)
class PageContent:
    """What a page is made of."""

    title: str
    n_graphs: int  # in the collection, of which the views are some
    views: Sequence[GraphView]
    molecules: Sequence[Any] | None  # of the views
    fitted: Graphs | None
    facts: Sequence[tuple[str, str]]  # how the page came about
    is_spread: bool

    @cached_property
    def thumbnails(self) -> dict[int, Markup]:
        """Pictures of the fitted graphs that some view names."""
        named = {one.number for view in self.views for one in (*view.speaking_for, *view.speaking_against)}
        if self.fitted is None:
            return {}
        return {number: _thumbnail(self.fitted[number], number) for number in sorted(named)}


def render_page(content: PageContent) -> str:
    """The whole page."""
    contents = [("predictions", "Predictions"), ("graphs", "Graphs"), ("provenance", "How this page came about")]
    cards = [_card(content, i) for i in track(range(len(content.views)), len(content.views), "pictures")]
    return page(
        content.title,
        generator=GENERATOR,
        head=join(*_head(content)),
        contents=join(*(element("a", words, href=f"#{name}") for name, words in contents)),
        sections=join(
            element("section", element("h2", "Predictions"), _predictions(content), id="predictions"),
            element("section", element("h2", "Graphs"), *cards, id="graphs"),
            element("section", element("h2", "How this page came about"), _facts(content), id="provenance"),
        ),
    )


# -------------------------------------------------------------------- the beginning


def _head(content: PageContent) -> Iterator[Markup]:
    yield element("p", "treegram explain", class_="kicker")
    yield element("h1", content.title)
    n_shown = len(content.views)
    yield element(
        "p",
        f"This page explains {counted(n_shown, 'graph')} of {content.n_graphs:,}. ",
        f"A {_output_word(content)} is the intercept plus what each node adds; nothing is sampled or approximated. ",
        _color_words(content),
        " Colors are scaled to the strongest node of each graph.",
        class_="lead",
    )
    if n_shown < content.n_graphs:
        left = f"{content.n_graphs - n_shown:,} more of the data set are not on this page: choose others with --graphs or chosen."
        yield element("p", left, class_="about")
    tiles = (element("div", element("b", number), element("span", words)) for number, words in _tiles(content))
    yield element("div", *tiles, class_="tiles")


def _output_word(content: PageContent) -> str:
    """What the nodes add up to."""
    return "prediction" if content.views[0].direction.is_number else "decision"


def _color_words(content: PageContent) -> Markup:
    directions = {(view.direction.above, view.direction.below) for view in content.views}
    if len(directions) > 1:
        return join("Red nodes speak for the prediction, blue ones for the class that is named with it.")
    ((above, below),) = directions
    red, blue = element("b", above, class_="for"), element("b", below, class_="against")
    return join("Red nodes speak for ", red, ", blue ones for ", blue, ".")


def _tiles(content: PageContent) -> Iterator[tuple[str, str]]:
    views = content.views
    yield str(len(views)), f"graphs of {content.n_graphs:,} on this page"
    judged = [view.is_right for view in views if view.is_right is not None]
    if judged:
        yield f"{sum(judged)} of {len(judged)}", "predictions are right"
    error = max((abs(view.decision - value) for view in views for value in view.sums.values()), default=0.0)
    yield _error(error), f"largest difference between two sums of a {_output_word(content)} (sum check)"


def _predictions(content: PageContent) -> Markup:
    views = content.views
    has_truth, has_certainty = any(view.truth for view in views), any(view.certainty for view in views)
    certainty = "standard deviation" if any("±" in view.certainty for view in views) else "probability"
    has_decision = _output_word(content) == "decision"
    optional = [*[certainty] * has_certainty, *["decision"] * has_decision, *["true"] * has_truth]
    names = ["graph", "prediction", *optional, "nodes", "strongest nodes"]
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in names)))
    body = element("tbody", *(_prediction(view, has_certainty=has_certainty, has_truth=has_truth) for view in views))
    table = element("table", head, body)
    frame = element("div", table, class_="frame", tabindex="0", role="region", aria_label="Predictions")
    words = ["A decision above 0 is for the first of the two that stand below it."] * has_decision
    words += ["Nodes have their label in parentheses."] * any(has_labels(view.graph) for view in views)
    return join(element("p", " ".join(words), class_="caption") if words else "", frame)


def _prediction(view: GraphView, *, has_certainty: bool, has_truth: bool) -> Markup:
    link = element("a", f"graph {view.number}", href=f"#graph-{view.number}")
    named = [f"{node}{_in_brackets(node_label(view.graph, node))}" for node in view.top_nodes[:3].tolist()]
    between = f"{view.direction.above} / {view.direction.below}"
    cells = [
        element("th", link, scope="row"),
        element("td", view.prediction, _verdict(view)),
        *[element("td", view.certainty)] * has_certainty,
        *[element("td", signed(view.decision), element("span", between, class_="small"))]
        * (not view.direction.is_number),
        *[element("td", view.truth)] * has_truth,
        element("td", f"{view.graph.n_nodes:,}"),
        element("td", ", ".join(named)),
    ]
    return element("tr", *cells)


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _verdict(view: GraphView) -> Markup:
    if view.is_right is None:
        return Markup()
    return element(
        "span", "right" if view.is_right else "wrong", class_="change up" if view.is_right else "change down"
    )


# -------------------------------------------------------------------- one graph


def _card(content: PageContent, i: int) -> Markup:
    view = content.views[i]
    above, below = view.direction.above, view.direction.below
    summary = [
        *[f"{'probability ' * ('±' not in view.certainty)}{view.certainty}"] * bool(view.certainty),
        *[f"decision {signed(view.decision)}"] * (not view.direction.is_number),
        *[f"true: {view.truth}"] * bool(view.truth),
    ]
    limit = float(np.abs(view.shares).max(initial=0.0))
    caption = join(
        "Blue speaks for ", element("b", below, class_="against"), ", red for ", element("b", above, class_="for"), "."
    )
    scale = draw_scale(limit, is_molecule=content.molecules is not None)
    colors = [scale, element("figcaption", caption)] if view.graph.n_nodes else []
    picture = element("figure", _picture(content, i), *colors)
    lists = element("div", _nodes(view), *_features(view), class_="lists")
    return element(
        "article",
        element("h3", f"Graph {view.number}"),
        element(
            "p", f"prediction {view.prediction}", _verdict(view), *(f", {words}" for words in summary), class_="summary"
        ),
        element("div", picture, lists, class_="sides"),
        *_speakers(content, view),
        element("p", _sum_check(view), class_="about check"),
        id=f"graph-{view.number}",
    )


def _picture(content: PageContent, i: int) -> Markup:
    view = content.views[i]
    top = [f"node {node} {_label_of(view, node)}{signed(view.shares[node])}" for node in view.top_nodes[:3].tolist()]
    description = f"Graph {view.number}, {counted(view.graph.n_nodes, 'node')}. Strongest: {'; '.join(top) or 'none'}."
    top_nodes = tuple(view.top_nodes.tolist())
    if content.molecules is not None:
        return draw_molecule(content.molecules[i], view.shares, description, top_nodes)
    return draw_graph(view.graph, view.shares, description, numbered=top_nodes)


def _label_of(view: GraphView, node: int) -> str:
    label = node_label(view.graph, node)
    return f"{label} " if label else ""


def _nodes(view: GraphView) -> Markup:
    rows = [
        (join(f"node {node}", element("span", node_label(view.graph, node), class_="label")), float(view.shares[node]))
        for node in view.top_nodes.tolist()
    ]
    return join(element("h4", "Nodes that add most"), _bars(rows))


def _features(view: GraphView) -> Iterator[Markup]:
    if view.features is None:
        return
    yield element("h4", "Features that add most")
    rows = []
    for name, share in view.features:
        kernel, colon, rest = name.partition(": ")
        tree = draw_tree(rest if colon and kernel.isidentifier() else name)
        short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 30]} … {name[-25:]}"
        rows.append((join(element("code", short, title=name), tree or ""), share))
    yield _bars(rows)


def _bars(rows: Sequence[tuple[Markup, float]]) -> Markup:
    """Lines with a bar to the right or left of a middle, as long as what is added."""
    limit = max((abs(share) for _, share in rows), default=0.0) or 1.0
    lines = []
    for words, share in rows:
        part = 50 * abs(share) / limit
        place = f"left:{50 if share > 0 else 50 - part:.1f}%;width:{part:.1f}%"
        side = element("i", style=place, class_="for" if share > 0 else "against")
        bar = element("span", side, class_="both", aria_hidden="true")
        lines.append(element("li", element("span", words), bar, element("span", signed(share), class_="value")))
    return element("ul", *lines, class_="bars") if lines else element("p", "None.", class_="about")


def _speakers(content: PageContent, view: GraphView) -> Iterator[Markup]:
    if content.fitted is None:
        return
    sides = [(view.direction.above, "for", view.speaking_for), (view.direction.below, "against", view.speaking_against)]
    columns = [
        element(
            "div",
            element("h4", "Fitted graphs that speak for ", element("b", name, class_=role)),
            element("div", *(_speaker(content, one) for one in graphs), class_="thumbnails")
            if graphs
            else element("p", "None.", class_="about"),
        )
        for name, role, graphs in sides
    ]
    yield element("div", *columns, class_="speakers")


def _speaker(content: PageContent, one: FittedGraph) -> Markup:
    words = join(f"graph {one.number}", f", class {one.target}" if one.target else "", element("b", signed(one.share)))
    return element("figure", content.thumbnails[one.number], element("figcaption", words))


def _thumbnail(graph: Graphs, number: int) -> Markup:
    if graph.n_nodes > _MOST_THUMBNAIL:
        return element("p", f"{graph.n_nodes:,} nodes", class_="undrawn")
    return draw_graph(graph, None, f"Fitted graph {number}, {counted(graph.n_nodes, 'node')}", size=1.5)


def _sum_check(view: GraphView) -> str:
    nodes = f"{counted(view.graph.n_nodes, 'node')} {signed(view.decision - view.intercept, 6)}"
    total = f"Sum check: {nodes}, intercept {signed(view.intercept, 6)}, together {signed(view.decision, 6)}."
    others = [
        f" By {name} {signed(value, 6)}, difference {_error(value - view.decision)}."
        for name, value in view.sums.items()
    ]
    return total + "".join(others)


def _error(difference: float) -> str:
    return f"{abs(difference):.0e}" if difference else "0"


def _facts(content: PageContent) -> Markup:
    shared = "is shared by the nodes of the tree" if content.is_spread else "counts for the node where it is rooted"
    items = [*content.facts, ("shares", f"What a tree or color adds {shared}.")]
    return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in items))
