"""One self-contained HTML page that shows what a run of ``dpsvi fit lda`` found.

`write_report` turns a run folder into ``report.html``; `topic_map` places topics in the plane so
that the page can draw which ones resemble each other.
"""

from .layout import MOST_TOPICS, topic_map
from .page import write_report

__all__ = ["MOST_TOPICS", "topic_map", "write_report"]
