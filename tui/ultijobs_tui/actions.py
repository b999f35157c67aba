"""Every key as data: bindings, footer, help, palette and docs/keys.md are made from `ACTIONS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["ACTIONS", "BY_ID", "KEY_NAMES", "VIEWS", "KeyAction", "all_keys", "key_name"]

Group = Literal["tabs", "move", "list", "look", "act"]
VIEWS: Final = {
    "incident": "Incident",
    "queues": "Queues",
    "jobs": "Jobs",
    "leases": "Leases",
    "dead": "Dead",
    "workers": "Workers",
    "backfills": "Backfills",
    "tasks": "Tasks",
    "outbox": "Outbox",
    "activity": "Activity",
    "database": "Database",
    "run": "Run",
}

_LISTS: Final = tuple(view for view in VIEWS if view != "run")
_SORTED: Final = ("queues", "jobs", "leases", "workers", "backfills", "tasks")
_JOBS: Final = ("jobs", "dead", "run")
_LIVING: Final = ("jobs", "leases", "backfills", "run")
_HELD: Final = ("incident", "queues", "jobs", "leases", "backfills", "run")
_PAUSED: Final = ("incident", "queues", "backfills")


@dataclass(frozen=True, slots=True)
class KeyAction:
    """One thing that a key does. `views` empty means everywhere; `footer` ranks it there, 0 leaves it to the help."""

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: Group
    views: tuple[str, ...] = ()
    writes: bool = False
    """It changes the queue: always through a plan, greyed when read-only or without a connection."""
    stops: bool = False
    """It stops work; upper case, and refused once after the cursor was moved by a refresh."""
    footer: int = 0


ACTIONS: Final[tuple[KeyAction, ...]] = (
    KeyAction("tab.incident", ("1",), "Incident", "what is stuck, why, since when, and what to press", "tabs"),
    KeyAction("tab.queues", ("2",), "Queues", "every queue with its state and numbers", "tabs"),
    KeyAction("tab.jobs", ("3",), "Jobs", "jobs by filter, page by page", "tabs"),
    KeyAction("tab.leases", ("4",), "Leases", "what runs now, where, and for how long it is held", "tabs"),
    KeyAction("tab.dead", ("5",), "Dead", "dead letters by cause", "tabs"),
    KeyAction("tab.workers", ("6",), "Workers", "which processes live, and whether they make progress", "tabs"),
    KeyAction("tab.backfills", ("7",), "Backfills", "how far each is, how fast, and what stopped it", "tabs"),
    KeyAction("tab.tasks", ("8",), "Tasks", "the schedule, what is late, and the ledger of occurrences", "tabs"),
    KeyAction("tab.outbox", ("9",), "Outbox", "jobs on their way into the queue, and what was set aside", "tabs"),
    KeyAction("tab.activity", ("0",), "Activity", "what operators did, from every surface", "tabs"),
    KeyAction("tab.database", ("d",), "Database", "what holds it back, and what to run by hand", "tabs"),
    KeyAction("move.down", ("j", "down"), "Down", "next row", "move"),
    KeyAction("move.up", ("k", "up"), "Up", "previous row", "move"),
    KeyAction("move.top", ("g", "home"), "Top", "first row", "move"),
    KeyAction("move.end", ("G", "end"), "End", "last row", "move"),
    KeyAction("move.page_down", ("pagedown",), "Page", "next page", "move"),
    KeyAction("move.page_up", ("pageup",), "Page back", "previous page", "move"),
    KeyAction(
        "move.pane",
        ("tab",),
        "Switch pane",
        "the other list of this screen",
        "move",
        ("dead", "tasks", "run"),
        footer=30,
    ),
    KeyAction("open", ("enter",), "Open", "what the cursor is on", "move", _LISTS, footer=100),
    KeyAction(
        "holder",
        ("w",),
        "Holder",
        "who holds it: the worker, the queue, the twin",
        "move",
        _HELD,
        footer=25,
    ),
    KeyAction("back", ("escape",), "Back", "close, or one level up", "move"),
    KeyAction("history.back", ("left_square_bracket",), "Previous place", "where you were before", "move"),
    KeyAction("history.forward", ("right_square_bracket",), "Next place", "undo the step back", "move"),
    KeyAction("canary", ("c",), "Canary", "retry one job and follow it", "act", ("incident", "dead"), True, footer=90),
    KeyAction(
        "retry",
        ("r",),
        "Retry",
        "run again; stored steps are kept",
        "act",
        ("incident", "backfills", "outbox", *_JOBS),
        True,
        footer=89,
    ),
    KeyAction(
        "run_task", ("r",), "Run now", "the task's jobs, outside of its schedule", "act", ("tasks",), True, footer=89
    ),
    KeyAction("cancel", ("X",), "Cancel", "stop for good what still lives", "act", _LIVING, True, True, footer=80),
    KeyAction("start", ("b",), "Start", "a pass of the backfill", "act", ("backfills",), True, footer=85),
    KeyAction(
        "force",
        ("F",),
        "Force",
        "a new pass, also where one has completed",
        "act",
        ("backfills",),
        True,
        True,
        footer=84,
    ),
    KeyAction("pause", ("p",), "Pause", "no more claims from the queue", "act", _PAUSED, True, footer=79),
    KeyAction(
        "drain",
        ("D",),
        "Drain",
        "no more claims by the worker; it finishes what it runs",
        "act",
        ("workers",),
        True,
        True,
        footer=80,
    ),
    KeyAction(
        "move",
        ("D",),
        "Drain to",
        "moves the queue to another database; it stays paused",
        "act",
        ("queues",),
        True,
        True,
        footer=75,
    ),
    KeyAction(
        "resume",
        ("u",),
        "Resume",
        "claims again, by the worker or from the queue",
        "act",
        (*_PAUSED, "workers"),
        True,
        footer=78,
    ),
    KeyAction(
        "undo",
        ("ctrl+z",),
        "Undo",
        "the last pause, resume, drain, retry or cancel, if nothing has come of it",
        "act",
        writes=True,
    ),
    KeyAction("mark", ("space",), "Mark", "add the row to what the next act is for", "list", ("jobs",), footer=60),
    KeyAction("mark.page", ("a",), "Mark page", "every row of this page", "list", ("jobs",)),
    KeyAction("mark.all", ("A",), "All matching", "act on the whole filter, page or not", "list", ("jobs",), footer=50),
    KeyAction("mark.clear", ("N",), "Clear marks", "no row is marked", "list", ("jobs",)),
    KeyAction("filter", ("slash",), "Filter", "narrow the list", "list", _LISTS, footer=70),
    KeyAction("sort", ("s",), "Sort", "next order", "list", _SORTED, footer=40),
    KeyAction("states", ("s",), "State", "only one state; again: the next", "list", ("outbox",), footer=40),
    KeyAction("tenant", ("t",), "Tenant", "every screen for the tenant of this row alone; again: all", "list"),
    KeyAction(
        "group", ("v",), "Group by", "by tenant, queue or job in place of cause or queue", "list", ("queues", "dead")
    ),
    KeyAction("dead_of_queue", ("l",), "Dead letters", "dead letters of this queue", "list", ("queues",), footer=45),
    KeyAction(
        "why",
        ("h",),
        "Why",
        "why this job is where it is, and what frees it",
        "look",
        ("incident", "leases", *_JOBS),
        footer=65,
    ),
    KeyAction("input", ("i",), "Input", "the job's input, redacted by its declaration", "look", ("run",), footer=55),
    KeyAction("upcoming", ("i",), "Upcoming", "what comes, in the task's own zone", "look", ("tasks",), footer=55),
    KeyAction(
        "pager", ("o",), "Traceback", "the error whole, in your pager", "look", ("incident", "dead", "run"), footer=54
    ),
    KeyAction("export", ("e",), "Export", "what is shown, as csv, json or md", "look"),
    KeyAction("copy.id", ("y",), "Copy id", "the id, the name or the statement under the cursor", "look"),
    KeyAction("copy.cli", ("Y",), "Copy CLI", "the command that shows or does the same", "look", footer=35),
    KeyAction("time.back", ("comma",), "Back in time", "the moment before, as it was shown", "look"),
    KeyAction("time.forward", ("full_stop",), "Forward in time", "the moment after", "look"),
    KeyAction("time.minute_back", ("less_than_sign",), "A minute back", "as it was a minute earlier", "look"),
    KeyAction("time.minute_forward", ("greater_than_sign",), "A minute on", "as it was a minute later", "look"),
    KeyAction(
        "freeze", ("f",), "Freeze", "ask the database nothing; again, and after a look back: live", "look", footer=20
    ),
    KeyAction("now", ("ctrl+r",), "Refresh", "ask the database now", "look"),
    KeyAction("absolute", ("Z",), "Clock times", "times of day in place of ages", "look"),
    KeyAction("help", ("question_mark",), "Help", "every key, and why one is grey", "look", footer=99),
    KeyAction("commands", ("colon", "ctrl+p"), "Commands", "everything by name", "look", footer=10),
    KeyAction("quit", ("q", "ctrl+c"), "Quit", "leave the cockpit", "look"),
)

BY_ID: Final = {action.id: action for action in ACTIONS}

KEY_NAMES: Final = {
    "slash": "/", "colon": ":", "question_mark": "?", "left_square_bracket": "[", "right_square_bracket": "]",
    "comma": ",", "full_stop": ".", "less_than_sign": "<", "greater_than_sign": ">",
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑",
}  # fmt: skip


def key_name(action: KeyAction) -> str:
    """The key as it is written on screens."""
    return KEY_NAMES.get(action.keys[0], action.keys[0])


def all_keys(action: KeyAction) -> str:
    return " ".join(KEY_NAMES.get(key, key) for key in action.keys)
