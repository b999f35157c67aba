"""The public names: exactly those that are documented, sorted, each with its own word of explanation."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import ultijobs

ROOT = [
    "Actor",
    "App",
    "BatchSource",
    "Context",
    "Enqueued",
    "Event",
    "JobHandle",
    "JobState",
    "Limits",
    "Rate",
    "Relay",
    "Request",
    "Retention",
    "RetryAfter",
    "RetryPolicy",
    "Scheduler",
    "Sizes",
    "Step",
    "SyncStep",
    "Terminal",
    "UltijobsError",
    "Worker",
    "backfill",
    "cross_tenant",
    "current",
    "job",
    "task",
]
MODULES = (
    "ultijobs",
    "ultijobs.errors",
    "ultijobs.inspection",
    "ultijobs.memory",
    "ultijobs.testing",
    "ultijobs.typing",
)


def test_the_root_has_the_documented_names_and_no_other():
    assert sorted(ROOT) == ultijobs.__all__
    assert {name for name in dir(ultijobs) if not name.startswith("_")} == set(ROOT)
    assert {name for name in ROOT if getattr(ultijobs, name, None) is None} == set()


@pytest.mark.parametrize("module", MODULES)
def test_what_is_exported_exists_and_is_listed_once(module):
    exported = import_module(module).__all__
    assert len(set(exported)) == len(exported)
    assert [name for name in exported if not hasattr(import_module(module), name)] == []


@pytest.mark.parametrize("name", ROOT)
def test_each_public_name_explains_itself(name):
    value = getattr(ultijobs, name)
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        silent = [
            member
            for member, function in vars(value).items()
            if inspect.isfunction(function) and not member.startswith("_") and not inspect.getdoc(function)
        ]
        assert silent == []


@pytest.mark.parametrize("module", MODULES)
def test_each_exported_class_and_function_explains_itself(module):
    """What a dataclass writes by itself is its signature, which explains nothing."""
    exported = {name: getattr(import_module(module), name) for name in import_module(module).__all__}
    told = {
        name: vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        for name, value in exported.items()
    }
    silent = {name for name, text in told.items() if not text or text.startswith(f"{name}(")}
    assert {name for name in silent if inspect.isclass(exported[name]) or inspect.isroutine(exported[name])} == set()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        ultijobs.nothing_like_it  # noqa: B018


def test_importing_the_library_loads_no_front_end_and_no_driver():
    code = (
        "import sys, ultijobs; [getattr(ultijobs, name) for name in ultijobs.__all__];"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'typer', 'textual', 'asyncpg', 'rich',"
        "'prometheus_client', 'wsgiref', 'opentelemetry'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
