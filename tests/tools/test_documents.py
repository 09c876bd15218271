"""Documents that are made from the code are fresh, and the READMEs say the same things."""

import re
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_data.catalogue import operators
from trellis_tools import documents
from trellis_tools.operator_docs import render_operators

ROOT = Path(__file__).resolve().parents[2]


def test_every_setting_is_described() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()

    undescribed = [name for name, field in Settings.model_fields.items() if not field.description]

    assert undescribed == []
    assert text == documents.render_configuration()


def test_the_page_on_data_lists_every_operator() -> None:
    text = (ROOT / "docs" / "data.md").read_text()

    assert text == render_operators(text)
    assert all(f"| `{name}` |" in text for name in operators())


def test_both_readmes_run_the_same_commands() -> None:
    blocks = {
        name: [
            re.sub(r"#.*", "", block)
            for block in re.findall(r"```bash\n(.*?)```", (ROOT / name).read_text(), re.S)
        ]
        for name in ("README.md", "README.zh-CN.md")
    }

    english, chinese = (
        blocks["README.md"],
        [each.replace("第一次训练", "first run") for each in blocks["README.zh-CN.md"]],
    )

    assert english == chinese


def test_links_to_files_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
