"""The picture of which protocol to choose is the one that plans give."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree as ET

import pytest
from docs.pages import which
from docs.pages.which import COLLUDERS, USERS
from tests.site.commands import ROOT


@pytest.mark.slow
def test_the_stored_picture_is_what_plans_give() -> None:
    drawn = which.picture()
    assert which.PICTURE.read_text(encoding="utf-8") == drawn, "run python -m docs.pages.which"
    texts = [element.text for element in ET.fromstring(drawn) if element.tag.endswith("text")]
    assert len(texts) == 2 * len(USERS) * len(COLLUDERS) + len(USERS) + len(COLLUDERS) + 3
    assert "k = 80, t = 48" in texts


def test_the_page_shows_the_picture() -> None:
    page = (ROOT / "docs" / "explanation" / "which-protocol.md").read_text(encoding="utf-8")
    assert f"(../assets/{which.PICTURE.name})" in page
    assert "# Which protocol to choose" in page
    assert "## Which protocol for 1000 phones?" in page


def test_the_words_in_place_of_the_picture_say_what_it_shows() -> None:
    page = (ROOT / "docs" / "explanation" / "which-protocol.md").read_text(encoding="utf-8")
    words = "SecAgg comes first with up to 30 users, and with 100 of\nwhom 30% or more collude; SecAgg+ with more users"
    assert f"{words}; with 10 users and 20% colluders or more there is none]" in page
    texts = [element.text for element in ET.fromstring(which.PICTURE.read_bytes()) if element.tag.endswith("text")]
    shown = iter(texts[-2 * len(USERS) * len(COLLUDERS) :: 2])
    for share in COLLUDERS:
        for users in USERS:
            few = users <= 30 or (users == 100 and share >= Fraction(3, 10))
            none = users == 10 and share >= Fraction(1, 5)
            assert next(shown) == ("none" if none else "SecAgg" if few else "SecAgg+"), (users, share)
