"""The report of a study: one document, built from a summary, and a renderer for each format."""

from treegram.study.report.build import brief_blocks, build_document, score_table
from treegram.study.report.html import render_html
from treegram.study.report.markdown import render_block, render_compact_table, render_markdown
from treegram.study.report.text import render_text
from treegram.study.report.write import check_page, write_report

__all__ = [
    "brief_blocks",
    "build_document",
    "check_page",
    "render_block",
    "render_compact_table",
    "render_html",
    "render_markdown",
    "render_text",
    "score_table",
    "write_report",
]
