"""Keys of one's own: written as screens write them, refused by name where they cannot be."""

from __future__ import annotations

import pytest

from ultijobs.errors import Invariant
from ultijobs_tui.keyfile import load_keys
from ultijobs_tui.keymap import DEFAULT, Keymap


def test_a_choice_takes_the_place_of_the_registry_s_keys() -> None:
    keys = Keymap({"export": ["ctrl+e"], "history.back": ["[", "backspace"], "help": ["!"]})
    assert keys["export"].keys == ("ctrl+e",)
    assert keys["history.back"].keys == ("left_square_bracket", "backspace")
    assert keys["help"].keys == ("exclamation_mark",)
    assert keys.name("export") == "ctrl+e"
    assert keys.bindings()["history.back"] == "left_square_bracket,backspace"
    assert keys["retry"] == DEFAULT["retry"]


def test_two_actions_may_change_their_keys_with_each_other() -> None:
    keys = Keymap({"retry": ["c"], "canary": ["r"]})
    assert (keys.name("retry"), keys.name("canary")) == ("c", "r")


def test_two_actions_on_one_key_of_a_screen_are_refused_by_their_names() -> None:
    with pytest.raises(Invariant) as refused:
        Keymap({"export": ["r"]}, told="here.toml")
    assert "here.toml: 'r' would be both retry and export on Incident" in refused.value.cause


def test_one_key_on_screens_that_never_meet_is_fine() -> None:
    assert Keymap({"dead_of_queue": ["i"]}).name("dead_of_queue") == "i"


@pytest.mark.parametrize(
    ("chosen", "said", "fix"),
    [
        ({"exprt": ["x"]}, "there is no action 'exprt'", "export"),
        ({"export": ["ctrl+shift+e"]}, "no terminal sends 'ctrl+shift+e'", "one sign"),
        ({"export": []}, "export has no key", 'export = "e"'),
        ({"export": [""]}, "no terminal sends ''", "one sign"),
    ],
)
def test_what_cannot_be_a_key_is_refused_with_what_can(chosen, said, fix) -> None:
    with pytest.raises(Invariant) as refused:
        Keymap(chosen)
    assert said in refused.value.cause
    assert fix in refused.value.fix


def test_keys_are_read_from_the_project_and_over_them_from_home(tmp_path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (home / "ultijobs").mkdir(parents=True)
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[tool.ultijobs.keys]\nexport = "x"\nfreeze = "F2"\nhistory.back = "ctrl+b"\n'.replace("F2", "f2"),
        encoding="utf-8",
    )
    environ = {"XDG_CONFIG_HOME": str(home)}
    keys = load_keys(environ, project)
    assert [keys.name(name) for name in ("export", "freeze", "history.back")] == ["x", "f2", "ctrl+b"]
    (home / "ultijobs" / "keys.toml").write_text('export = "ctrl+e"\n', encoding="utf-8")
    assert load_keys(environ, project).name("export") == "ctrl+e"
    assert load_keys(environ, project).name("freeze") == "f2"


def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path) -> None:
    (tmp_path / "ultijobs").mkdir()
    file = tmp_path / "ultijobs" / "keys.toml"
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    for text, said in (
        ("export = ", "cannot be read"),
        ("export = 7", "export is 7, not a key"),
        ('export = "r"', "both"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(Invariant) as refused:
            load_keys(environ, tmp_path)
        assert str(file) in refused.value.cause
        assert said in refused.value.cause
