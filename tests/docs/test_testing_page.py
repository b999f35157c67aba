"""The examples of docs/testing.md are modules that pass, as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.inner import ROOT, run_pytest

MODULE = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n", re.MULTILINE)


def test_every_example_runs_and_passes(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    modules = MODULE.findall(page)
    assert len(modules) == len(BLOCK.findall(page)) == 4
    for name, text in modules:
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\npythonpath = .\nfilterwarnings = error\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
