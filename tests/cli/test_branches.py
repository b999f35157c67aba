"""Commands are made one by one."""

from __future__ import annotations

import subprocess
import sys

import typer

from ultijobs_cli.app import app


def test_a_command_line_loads_the_module_of_its_command_alone():
    script = (
        "import sys\n"
        "from ultijobs_cli.app import app\n"
        "app(['explain', 'X_INVARIANT'], standalone_mode=False)\n"
        "print(*(name for name in sys.modules if name.startswith('ultijobs_cli.commands.')), sep='\\n')\n"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert [line for line in out.splitlines() if line.startswith("ultijobs_cli.")] == ["ultijobs_cli.commands.explain"]


def test_the_names_of_a_group_are_known_before_any_of_them_is_made_and_each_is_made_once():
    root = typer.main.get_command(app)
    jobs = root.commands["jobs"]
    assert {"ls", "show", "drain"} <= set(jobs.commands)
    assert jobs.commands["ls"] is jobs.commands["ls"]
    assert "lss" not in jobs.commands
