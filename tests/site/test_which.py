"""The picture of which protocol to choose is the one that plans give."""

from __future__ import annotations

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
