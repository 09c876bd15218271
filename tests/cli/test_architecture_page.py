"""docs/architecture.md: one picture, and every file that the walks name is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: Node, label in brackets of any shape.
NODE = re.compile(r"\b(\w+)[\[(]+\"([^\"]+)\"[\])]+")


def test_the_picture_joins_only_nodes_that_it_shows() -> None:
    (picture,) = re.findall(r"```mermaid\n(.*?)```", PAGE, re.S)
    assert picture.startswith("flowchart LR\n")
    shown = {node for node, _ in NODE.findall(picture)}
    bare = NODE.sub(r"\1", picture.partition("\n")[2])
    joined = set(re.findall(r"\w+", re.sub(r"\|[^|]*\|", " ", bare)))

    assert joined == shown
    assert all(line.count("[") == line.count("]") for line in picture.splitlines())


def test_the_files_that_the_page_names_are_there() -> None:
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+)`", PAGE))
    pictured = {path for line in NODE.findall(PAGE) for path in re.findall(r"<br/>([\w/]+)$", line[1])}

    missing = sorted(path for path in named | pictured if not (ROOT / path).exists())
    assert len(named) > 20
    assert missing == []
