"""A summary as Markdown and as one HTML page."""

from treegram.experiments.report.html import write_html
from treegram.experiments.report.markdown import write_markdown

__all__ = ["write_html", "write_markdown"]
