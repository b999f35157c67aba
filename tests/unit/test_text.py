"""Text that is stored and shown is bounded and inert."""

from ultijobs._text import clip, inert, storable, unstorable


def test_what_a_database_refuses_is_named_and_made_visible():
    assert unstorable("a\x00b") == "U+0000"
    assert unstorable("a\ud800") == "the lone surrogate U+D800"
    assert unstorable("plain \U0001f600") is None
    assert storable("a\x00\ud800") == "a\\x00\\ud800"


def test_a_clipped_text_fits_in_bytes_and_says_what_is_missing():
    text = "é" * 10_000
    clipped = clip(text, 1_000)
    assert len(clipped.encode()) <= 1_000
    assert clipped.endswith("[truncated, 20000 bytes in all]")
    assert clip("short", 1_000) == "short"


def test_clipping_never_leaves_what_cannot_be_stored():
    assert clip("a\x00" * 3, 100) == "a\\x00" * 3
    clip("\ud800" * 3_000, 100).encode()


def test_a_clipped_text_says_the_size_of_what_was_given_not_of_its_escapes():
    assert clip("\x00" * 3_000, 100).endswith("[truncated, 3000 bytes in all]")
    assert clip("é" * 3_000, 100).endswith("[truncated, 6000 bytes in all]")


def test_a_terminal_sees_no_control_character():
    assert inert("a\x1b[31mb") == "a\\x1b[31mb"
    assert inert("a\u202eb\r") == "a\\u202eb\\r"
    assert inert("a\tb\nc") == "a\tb\nc"
    assert inert("a\tb\nc", line=True) == "a\\tb\\nc"
    assert "\x9b" not in inert("\x9b2J")
