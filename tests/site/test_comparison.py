"""The comparison of the protocols: its formulas hold against rounds that are run, and it follows the code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from docs.pages import comparison, comparison_runs
from docs.pages.comparison_runs import COMMON, ENTRANTS, SMALL, Setting, counted, heterosag_lost
from tests.quick import part
from tests.site.browser import Browser

from secagg_spec.protocols.heterosag import costs as heterosag_costs
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Role

COUNTED = [key for key in ENTRANTS if key in comparison.formulas(COMMON)]
EXACT = ("secagg", "lightsecagg", "basecagg", "heterosag")
SETTINGS = (COMMON, replace(COMMON, d=77))


def work(key: str, setting: Setting, name: str) -> tuple[int, int]:
    """Return the most of a user in the sum, and the server's."""
    run = counted(ENTRANTS[key], setting)
    none = comparison_runs.Work()
    user = run.most(lambda user: getattr(run.work.get(user, none), name))
    return user, getattr(run.work.get(SERVER, none), name)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"d={s.d}")
@pytest.mark.parametrize("key", COUNTED)
def test_a_round_computes_what_the_formulas_say(key: str, setting: Setting) -> None:
    cost = comparison.formulas(setting)[key]
    masks, products = work(key, setting, "mask_elements"), work(key, setting, "products")
    assert (masks[0], *products) == (cost.user_masks, cost.user_products, cost.server_products)
    if key in EXACT:
        assert masks[1] == cost.server_masks
    else:
        assert cost.user_masks < masks[1] <= cost.server_masks


@pytest.mark.parametrize("key", COUNTED)
def test_what_a_longer_update_adds_to_the_bytes_of_a_user_is_what_the_formula_adds(key: str) -> None:
    longer = replace(COMMON, d=2 * COMMON.d)
    runs = [counted(ENTRANTS[key], setting) for setting in (COMMON, longer)]
    added = [run.most(run.sent.__getitem__) for run in runs]
    vectors = [comparison.formulas(setting)[key].vectors for setting in (COMMON, longer)]
    assert added[1] - added[0] == vectors[1] - vectors[0]


def test_masks_of_heterosag_are_those_of_its_cost_formulas() -> None:
    parameters = comparison_runs.heterosag_parameters(COMMON)
    left = sorted(set(range(COMMON.N)) - set(heterosag_lost(COMMON)))
    users = max(heterosag_costs.user_masks(parameters, user).elements for user in left)
    server = heterosag_costs.server_masks(parameters, left).elements
    assert work("heterosag", COMMON, "mask_elements") == (users, server)


@pytest.mark.slow
@pytest.mark.parametrize("key", part(2, ENTRANTS))
def test_as_many_as_the_page_says_may_go_and_not_one_more(key: str) -> None:
    entrant = ENTRANTS[key]
    phases = [entrant.uploads, *entrant.answers[-1:]]
    for phase in phases:
        most = comparison_runs.tolerated(entrant, phase)
        assert comparison_runs.summed(entrant, entrant.spread[:most], phase) is not None
        assert comparison_runs.summed(entrant, entrant.spread[: most + 1], phase) is None
        assert comparison_runs.tolerated(entrant, phase, most) == most
        assert comparison_runs.tolerated(entrant, phase, max(most - 1, 1)) == most


@pytest.mark.slow
def test_the_promise_is_kept_where_the_order_does_not_matter() -> None:
    for key, entrant in ENTRANTS.items():
        tolerated = comparison_runs.tolerated(entrant, entrant.uploads)
        assert (tolerated >= COMMON.D) == (key not in ("heterosag", "multi-round")), key


@pytest.mark.slow
def test_everybody_left_is_in_the_sum_but_for_batches_that_are_not_whole() -> None:
    for key, entrant in ENTRANTS.items():
        batch = COMMON.T + 2
        expected = COMMON.N - (batch if key == "multi-round" else COMMON.D)
        assert len(counted(entrant).played.contributors) == expected, key


@pytest.mark.slow
def test_only_whole_batches_keep_users_together() -> None:
    sizes = {key: comparison.together(entrant) for key, entrant in ENTRANTS.items()}
    assert sizes == {**dict.fromkeys(ENTRANTS, 1), "multi-round": COMMON.T + 2}


@pytest.mark.slow
def test_up_to_T_colluders_learn_nothing_and_the_verdicts_are_those_of_the_page() -> None:
    found = comparison.decided()
    assert found.keys() == {entrant.key for entrant in ENTRANTS.values() if not entrant.active} - {"multi-round"}
    for key, verdicts in found.items():
        assert all(not learned.dimension for size, learned in verdicts.by_size.items() if size <= verdicts.T), key
        shown = comparison.verdicts().rows[key]
        assert shown[2:4] == ("nothing", "nothing")
        assert shown[5].startswith(str(verdicts.first) if verdicts.first else "no ")
    assert [found[key].first for key in ("secagg", "lightsecagg", "basa")] == [3, 2, None]


@pytest.mark.slow
def test_a_phase_that_is_planted_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before = comparison.messages()
    entrant = ENTRANTS["secagg"]
    sending = next(step for step in secagg.TABLE if step.phase == "unmasking" and step.role is Role.USER)
    planted = replace(entrant, table=(*entrant.table, replace(sending, phase="planted")))
    monkeypatch.setattr(comparison, "ENTRANTS", {**ENTRANTS, "secagg": planted})
    after = comparison.messages()
    assert "planted" in after.rows["secagg"][2]
    assert (before.rows["secagg"][0][0], after.rows["secagg"][0][0]) == ("4", "5")
    assert {key for key in ENTRANTS if before.rows[key] != after.rows[key]} == {"secagg"}


def test_a_message_that_grows_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    entrant = ENTRANTS["secagg"]
    before = counted(entrant, SMALL)
    monkeypatch.setattr(comparison_runs, "sizes", lambda messages: 1 + sum(1 for _ in messages))
    after = counted.__wrapped__(entrant, SMALL)
    assert after.sent[0] != before.sent[0]


@pytest.mark.slow
def test_every_cell_has_a_column_that_says_where_it_comes_from() -> None:
    text = comparison.page()
    assert len(text.encode()) < 500_000
    for sheet in comparison.sheets():
        assert all(column.source for column in sheet.columns)
        assert all(len(cells) == len(sheet.columns) for cells in sheet.rows.values())
        assert f"## {sheet.heading}" in text


@pytest.mark.slow
def test_a_wide_table_fits_a_desk_and_keeps_the_names_of_its_rows_on_a_phone(address: str, window: Browser) -> None:
    boxes = "[...document.querySelectorAll('.sheet .md-typeset__scrollwrap')]"
    window.open(f"{address}/reference/comparison/")
    assert window.run(f"{boxes}.length") == len(comparison.sheets())
    assert window.run(f"{boxes}.filter((box) => box.scrollWidth > box.clientWidth).length") == 0
    window.show(390, 900, "dark")
    window.open(f"{address}/reference/comparison/")
    window.run(f"{boxes}.forEach((box) => {{ box.scrollLeft = 50; }})")
    seen = window.run(
        f"{boxes}.map((box) => [box.scrollLeft, box.scrollWidth - box.clientWidth,"
        " box.querySelector('tbody th').getBoundingClientRect().left - box.getBoundingClientRect().left])"
    )
    assert [moved for moved, _, _ in seen] == [min(50, room) for _, room, _ in seen]
    assert max(moved for moved, _, _ in seen) == 50
    assert all(left >= 0 for _, _, left in seen)
