"""Deploys by the bundles of a page and by what services report: what is one, and what is none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphstore.events.deploys import bundles, delivery
from tests.conftest import after

pytestmark = pytest.mark.served

ONE = ["/js/main.4f8a2c1b.js", "/js/vendor.11aa22bb.js", "/css/styles.99ff88ee.css"]
TWO = ["/js/main.77cc66dd.js", "/js/vendor.11aa22bb.js", "/css/styles.99ff88ee.css"]
THREE = ["/js/main.01234567.js", "/js/vendor.89abcdef.js", "/css/styles.99ff88ee.css"]


def github(state: str | None, *, id: int = 42, environment: str = "production") -> dict:
    """A payload as GitHub sends it, shortened."""
    deployment = {
        "url": "https://api.github.test/repos/shop/app/deployments/42", "id": id, "sha": "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
        "ref": "main", "task": "deploy", "environment": environment, "created_at": "2026-02-01T00:01:00Z", "creator": {"login": "ana", "id": 1},
    }  # fmt: skip
    payload = {"action": "created", "deployment": deployment, "repository": {"full_name": "shop/app"}, "sender": {"login": "ana"}}  # fmt: skip
    if state is not None:
        payload["deployment_status"] = {"id": 9, "state": state, "environment": environment, "created_at": "2026-02-01T00:03:00Z"}  # fmt: skip
    return payload


GITLAB = {
    "object_kind": "deployment", "status": "success", "status_changed_at": "2026-02-01 02:03:00 +0200", "deployment_id": 15,
    "environment": "staging", "project": {"path_with_namespace": "shop/app"}, "short_sha": "279484c0", "user": {"username": "root"}, "ref": "1.0.0",
}  # fmt: skip


def deploys(store) -> list:
    return [each for each in store.events() if each.type == "deploy"]


def test_a_chunk_loaded_lazily_another_page_and_other_hosts_are_no_deploy(store, recorder):
    recorder.observe_resources([*ONE, "/js/412.aaaa1111.chunk.js"], page="/", at=after(0))
    for number, more in enumerate(
        (["/js/413.bbbb2222.chunk.js"], ["https://tags.test/gtm.12345.js"], [], ["/js/chunk-ABCDEFGH.js"])
    ):
        assert None is recorder.observe_resources([*ONE, *more], page="/", at=after(10 + number))
    recorder.observe_resources(
        [*ONE, "https://tags.test/gtm.99999.js", "/js/chunk-ZZZZZZZ2.js"], page="/", at=after(20)
    )
    assert None is recorder.observe_resources(["/js/orders.5555aaaa.js", *ONE], page="/orders", at=after(30))

    assert [] == deploys(store)


def test_another_version_of_a_bundle_is_a_deploy_once_whichever_page_comes_to_it(store, recorder):
    for page in ("/", "/orders"):
        recorder.observe_resources(ONE, page=page, at=after(0))
    assert recorder.observe_resources(TWO, page="/", at=after(100)).is_new
    assert None is recorder.observe_resources(TWO, page="/orders", at=after(9000))
    assert None is recorder.observe_resources(ONE, page="/", at=after(160)), "an old tab"
    assert None is recorder.observe_resources(TWO, page="/", at=after(9500))

    (deploy,) = deploys(store)
    assert ("/", ["/js/main.77cc66dd.js"]) == (deploy.metadata["page"], deploy.metadata["added"])


def test_the_way_back_to_an_earlier_build_is_a_deploy(store, recorder):
    for number, urls in enumerate((ONE, TWO, ONE)):
        recorder.observe_resources(urls, page="/", at=after(3600 * number))

    assert 2 == len(deploys(store))


def test_a_threshold_says_how_much_must_be_other(store, recorder):
    recorder.observe_resources(ONE, page="/", at=after(0))

    assert None is recorder.observe_resources(TWO, page="/", at=after(10), share=0.5)
    assert recorder.observe_resources(THREE, page="/", at=after(20), share=0.5).is_new


@pytest.mark.parametrize(("apart", "count"), [(600, 1), (601, 2)])
@pytest.mark.parametrize("reported_first", [True, False])
def test_bundles_and_a_report_within_ten_minutes_are_one_deploy(
    store, recorder, apart, count, reported_first
):
    recorder.observe_resources(ONE, page="/", at=after(0))
    reported, seen = (100, 100 + apart) if reported_first else (100 + apart, 100)
    for at in sorted((reported, seen)):
        if at == reported:
            recorder.observe_deploy({"sha": "abc", "environment": "production"}, at=after(at))
        else:
            recorder.observe_resources(TWO, page="/", at=after(at))

    found = deploys(store)
    assert count == len(found)
    if count == 1:
        assert ("abc", True) == (found[0].metadata["sha"], found[0].metadata["implied"])


def test_two_builds_within_ten_minutes_are_two(store, recorder):
    recorder.observe_resources(ONE, page="/", at=after(0))
    recorder.observe_resources(TWO, page="/", at=after(100))
    recorder.observe_resources(THREE, page="/", at=after(200))

    assert 2 == len(deploys(store))


def test_a_github_deployment_is_a_deploy_once_it_has_succeeded(store, recorder):
    for state in ("queued", "in_progress"):
        assert None is recorder.observe_deploy(github(state))
    told = recorder.observe_deploy(github("success"))
    again = recorder.observe_deploy(github("success"))
    recorder.observe_deploy(github("inactive"))

    assert (True, False, after(180)) == (told.is_new, again.is_new, told.event.occurred_at)
    assert "Deployed 1a2b3c4 (main) to production by ana" == told.event.description
    assert {"state": "success", "sha": "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d", "environment": "production", "ref": "main"}.items() <= told.event.metadata.items()  # fmt: skip
    assert 1 == len(deploys(store))


def test_one_that_failed_is_no_deploy_and_one_announced_is_taken_back(store, recorder):
    assert None is recorder.observe_deploy(github("failure", id=1))
    assert None is recorder.observe_deploy({"sha": "abc", "status": "failed"})
    assert recorder.observe_deploy(github(None, id=2)).is_new
    assert None is recorder.observe_deploy(github("error", id=2))

    assert [] == deploys(store)


def test_one_announced_and_done_is_one(store, recorder):
    told = recorder.observe_deploy(github(None))
    done = recorder.observe_deploy(github("success"))

    assert (told.event.id, False, "success") == (done.event.id, done.is_new, done.event.metadata["state"])


def test_gitlab_tells_its_own_way(store, recorder):
    told = recorder.observe_deploy(GITLAB)
    assert None is recorder.observe_deploy({**GITLAB, "deployment_id": 16, "status": "running"})

    assert ("Deployed 279484c (1.0.0) to staging by root", after(180)) == (
        told.event.description,
        told.event.occurred_at,
    )


def test_what_else_a_service_sends_is_no_deploy(store, recorder):
    for payload in (
        {"zen": "Keep it simple.", "hook_id": 1},
        {"object_kind": "pipeline"},
        {"ref": "refs/heads/main", "commits": []},
    ):
        assert None is recorder.observe_deploy(payload)


def test_names_of_bundles_have_no_hash_number_or_query_of_a_build():
    urls = [
        "https://cdn.test/assets/index-BfX3k9_q.js",
        "/app.12.js",
        "/site.css?v=3",
        "/b/4f8a2c1b/runtime.js",
    ]

    assert {"/app.*.js": "12", "/b/*/runtime.js": "4f8a2c1b", "/site.css": "3"} == bundles(urls)
    assert {"cdn.test/assets/index-*.js": "BfX3k9_q"} == bundles(urls[:1])


def test_what_the_recorder_knows_is_in_the_store(store, recorder):
    recorder.observe_error("it broke", at=after(0))
    for second in range(50, 300, 50):
        type(recorder)(store).tick(after(second))

    assert 1 == len(type(recorder)(store).tick(after(300)))


@pytest.mark.parametrize("idle", [timedelta(seconds=30), timedelta(minutes=2)])
def test_how_long_a_gap_may_be_is_a_setting(store, recorder, idle):
    recorder = type(recorder)(store, idle=idle)
    recorder.observe_error("it broke", at=after(0))
    for second in range(60, 420, 60):
        recorder.observe_metric("lcp_ms", 1000, at=after(second))

    assert int(idle > timedelta(minutes=1)) == len(recorder.tick(after(360), active=None))


def test_a_delivery_says_how_it_is():
    assert ["done", "none", "failed", "announced"] == [
        delivery(each).state for each in (github("success"), github("pending"), github("error"), github(None))
    ]


def loaded(build: str, *names: str) -> list[str]:
    """What a page of a build loads: each file has the build in its hash."""
    return [f"/assets/{name}-{build}.js" for name in ("index", *names)]


def test_the_bundle_of_a_route_that_nobody_came_to_only_catches_up(store, recorder):
    old, new = "a1b2c3d4", "e5f6a7b8"
    for number, page in enumerate(("/", "/orders/7", "/cart")):
        recorder.observe_resources(loaded(old, f"route{number}"), page=page, at=after(number))
    assert recorder.observe_resources(loaded(new, "route0"), page="/", at=after(1000)).is_new

    for at, page, more in (
        (5000, "/orders/8", ["route1"]),
        (9000, "/cart", ["route2", "chart"]),
        (9100, "/cart", ["route2", "map"]),
    ):
        assert None is recorder.observe_resources(loaded(new, *more), page=page, at=after(at))
    assert recorder.observe_resources(loaded("c9d8e7f6", "route2"), page="/cart", at=after(9900)).is_new
    assert 2 == len(deploys(store))


def test_an_old_tab_is_no_way_back_when_the_new_build_is_seen_again(store, recorder):
    recorder.observe_resources(ONE, page="/", at=after(0))
    recorder.observe_resources(TWO, page="/", at=after(100))
    taken = recorder.observe_resources(ONE, page="/", at=after(8000))
    recorder.observe_error("it broke", at=after(8001))
    recorder.observe_resources([*ONE, "/js/orders.5555aaaa.js"], page="/orders", at=after(8010))
    assert None is recorder.observe_resources(TWO, page="/", at=after(8020))
    assert None is recorder.observe_resources(ONE, page="/", at=after(16000)), "the same tab"

    assert ["retracted"] == [store.inspect(taken.event.id).node.standing]
    assert 1 == len(deploys(store))


def test_a_way_back_that_a_service_reported_stays_one(store, recorder):
    recorder.observe_resources(ONE, page="/", at=after(0))
    recorder.observe_resources(TWO, page="/", at=after(100))
    recorder.observe_resources(ONE, page="/", at=after(8000))
    recorder.observe_deploy({"sha": "abc", "environment": "production"}, at=after(8030))
    recorder.observe_resources(TWO, page="/", at=after(9000))

    assert 2 <= len(deploys(store))


def test_a_hash_that_looks_like_a_word_is_known_by_the_name_before_it(store, recorder):
    recorder.observe_resources(
        ["/assets/index-BfX3k9_q.js", "/assets/vendor-Q1W2e3R4.js"], page="/", at=after(0)
    )

    told = recorder.observe_resources(
        ["/assets/index-Diwrgtda.js", "/assets/vendor-Q1W2e3R4.js"], page="/", at=after(100)
    )

    assert told is not None and told.is_new
