"""The size of the writing in pictures, as a reader sees it."""

from __future__ import annotations

from pathlib import Path

from tests.site.browser import Browser

SMALLEST = 11.5
_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8").strip().removesuffix(";")


def assert_written_large(window: Browser, selector: str, number: int) -> None:
    """Fail unless there are so many pictures, whose writing is large enough and not cut off."""
    pictures = window.run(f"({_SCRIPT})('{selector}')")
    assert len(pictures) == number, selector
    for picture in pictures:
        assert picture["size"] >= SMALLEST
        assert picture["cut"] == []
