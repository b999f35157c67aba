from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultijobs._queue.records import JobState, StopReason
from ultijobs._queue.where import ANY, Field, Op, Term, Where
from ultijobs.errors import FilterInvalid
from ultijobs.inspection.filter import format_where, parse_where


def term(field: Field, *values: str, op: Op = Op.IS, negated: bool = False, path: str | None = None) -> Term:
    return Term(field, op, values, negated, path=path)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        ("  \t ", ()),
        ("state:dead", (term(Field.STATE, "dead"),)),
        ("queue:billing,mail", (term(Field.QUEUE, "billing", "mail"),)),
        ("-queue:bulk", (term(Field.QUEUE, "bulk", negated=True),)),
        ("job:charge*", (term(Field.JOB, "charge*"),)),
        ("tenant:t42 worker:w-17", (term(Field.TENANT, "t42"), term(Field.WORKER, "w-17"))),
        ("fp:7F3A", (term(Field.FINGERPRINT, "7f3a"),)),
        ("code:X_JOB_TIMEOUT", (term(Field.CODE, "X_JOB_TIMEOUT"),)),
        ('key:"a b,c"', (term(Field.KEY, "a b,c"),)),
        ("key:charge:inv_8812", (term(Field.KEY, "charge:inv_8812"),)),
        (r'key:"say \"hi\" \\"', (term(Field.KEY, 'say "hi" \\'),)),
        ("priority:10,-3", (term(Field.PRIORITY, "10", "-3"),)),
        ("step:charge", (term(Field.STEP, "charge"),)),
        ("age:>10m", (Term(Field.AGE, Op.OVER, duration=timedelta(minutes=10)),)),
        ("age:<1h30m", (Term(Field.AGE, Op.UNDER, duration=timedelta(minutes=90)),)),
        ("id:…0ABCDEF1", (term(Field.ID, "0abcdef1"),)),
        (
            "run:0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
            (term(Field.RUN, "0190a1b2c3d47e5f8a9b0c1d2e3f4a5b"),),
        ),
        (
            'state:dead err~"timed out"',
            (term(Field.STATE, "dead"), term(Field.ERROR, "timed out", op=Op.CONTAINS)),
        ),
        (
            "queue:mail input.customer.id:42",
            (term(Field.QUEUE, "mail"), term(Field.INPUT, "42", path="customer.id")),
        ),
    ],
)
def test_each_word_of_the_grammar_means_what_it_says(text: str, terms: tuple[Term, ...]) -> None:
    assert parse_where(text).terms == terms


@pytest.mark.parametrize("state", list(JobState))
def test_all_eight_states_can_be_asked_for(state: JobState) -> None:
    assert parse_where(f"state:{state}").states() == (state,)


def test_the_tenant_scope_is_kept_beside_the_words() -> None:
    assert parse_where("", tenant="t1") == Where(tenant="t1")
    assert parse_where("") == ANY


@pytest.mark.parametrize(
    ("text", "position", "fix"),
    [
        ("stat:dead", 0, "state:"),
        ("state:dead quue:mail", 11, "queue:"),
        ("state:ded", 0, "state:dead"),
        ("reason:attempts-exhaust", 0, "attempts-exhausted"),
        ("er~x", 0, "err~"),
        ("name:charge", 0, "job:"),
        ("last_error:boom", 0, "err~"),
        ("err:x state:dead", 0, "err~"),
        ("queue~x", 0, "queue:"),
        ("queue:", 0, "queue:"),
        ("queue:a,", 0, "queue:"),
        ('key:"open', 4, "close"),
        ('key:"a"b', 7, "blank"),
        ("age:10m", 0, "age:>"),
        ("age:>soon", 0, "age:>"),
        ("age:>-5m", 0, "age:>"),
        ("id:xyz", 0, "id:"),
        ("id:12345", 0, "id:"),
        ("priority:high", 0, "priority:"),
        ("priority:99999999999", 0, "priority:"),
        ("dead", 0, "state:dead"),
        ("charge_invoice", 0, "job:charge_invoice"),
        ("deadbeef01", 0, "id:deadbeef01"),
        ("-", 0, "KEY:VALUE"),
        ('"quoted"', 0, "KEY:VALUE"),
        (":dead", 0, "use one of"),
        ("input:3 state:dead", 0, "input."),
        ("input.a..b:3 state:dead", 0, "input."),
        ("state.x:dead", 0, "state:"),
        ("key:a\0b", 5, "remove"),
        ("key:\ud800", 4, "remove"),
    ],
)
def test_a_bad_word_is_refused_where_it_stands_with_the_word_that_mends_it(text: str, position: int, fix: str) -> None:
    with pytest.raises(FilterInvalid) as caught:
        parse_where(text)
    assert caught.value.position == position
    assert fix in caught.value.fix


@pytest.mark.parametrize("text", ["err~timeout", "input.a:1", "job:charge* err~x", "-state:dead err~x"])
def test_a_word_that_scans_needs_an_indexed_word_beside_it(text: str) -> None:
    with pytest.raises(FilterInvalid, match="indexed word"):
        parse_where(text)
    assert parse_where(f"queue:mail {text}").terms[0].field is Field.QUEUE


def _values(value: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(value, min_size=1, max_size=4).map(tuple)


_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_free = st.sampled_from([Field.QUEUE, Field.JOB, Field.TENANT, Field.CODE, Field.KEY, Field.WORKER, Field.STEP])
_path = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters='.:~"\0'), min_size=1), min_size=1
)
_terms = st.one_of(
    st.builds(Term, _free, st.just(Op.IS), _values(_text), st.booleans()),
    st.builds(Term, st.just(Field.STATE), st.just(Op.IS), _values(st.sampled_from(list(JobState))), st.booleans()),
    st.builds(Term, st.just(Field.REASON), st.just(Op.IS), _values(st.sampled_from(list(StopReason))), st.booleans()),
    st.builds(
        Term,
        st.sampled_from([Field.ID, Field.RUN]),
        st.just(Op.IS),
        _values(st.text("0123456789abcdef", min_size=6, max_size=32)),
        st.booleans(),
    ),
    st.builds(
        Term,
        st.just(Field.PRIORITY),
        st.just(Op.IS),
        _values(st.integers(-(2**31), 2**31 - 1).map(str)),
        st.booleans(),
    ),
    st.builds(
        Term,
        st.just(Field.AGE),
        st.sampled_from([Op.OVER, Op.UNDER]),
        st.just(()),
        st.booleans(),
        st.integers(0, 10**12).map(lambda ms: timedelta(milliseconds=ms)),
    ),
    st.builds(Term, st.just(Field.ERROR), st.just(Op.CONTAINS), _values(_text), st.booleans()),
    st.builds(
        Term, st.just(Field.INPUT), st.just(Op.IS), _values(_text), st.booleans(), st.none(), _path.map(".".join)
    ),
)


@given(st.lists(_terms, max_size=5))
def test_a_filter_written_out_reads_back_as_itself(terms: list[Term]) -> None:
    where = Where((Term(Field.STATE, Op.IS, ("dead",)), *terms))
    assert parse_where(format_where(where)) == where


@given(st.text())
def test_any_text_is_a_filter_or_refused_by_position(text: str) -> None:
    refused: FilterInvalid | None = None
    try:
        where = parse_where(text)
    except FilterInvalid as exc:
        refused = exc
    else:
        assert parse_where(format_where(where)) == where
    if refused is not None:
        assert 0 <= refused.position <= len(text)
        assert refused.fix


@pytest.mark.parametrize(
    "text", ["{}", "{}=1", "{}:1", "state:{}", "priority:{}", "id:{}", "age:>{}", "input.{}~", "{}~1"]
)
def test_what_refuses_a_filter_of_any_length_fits_on_a_screen(text: str):
    with pytest.raises(FilterInvalid) as caught:
        parse_where(text.format("x" * 10_000))
    assert len("".join(caught.value.lines())) < 1_000
