"""What makes two reports one bug: ids are left out where their place says that they are ids, and what says what went wrong stays."""

from __future__ import annotations

import pytest

from graphstore.values.fingerprints import fingerprint, plain_source


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User 12 not found", "User 57 not found"),
        ("User 404 not found", "User 12 not found"),
        ("Order #8 failed", "Order #77 failed"),
        ("userId=12 missing", "userId=9 missing"),
        ("user (12) gone", "user (7) gone"),
        ("no user with id 12", "no user with id 5"),
        ("Session '12' expired", "Session '7' expired"),
        ("order-57 locked", "order-9 locked"),
        ("items[3] is undefined", "items[12] is undefined"),
        ("GET /api/users/12 500 (Internal Server Error)", "GET /api/users/57 500 (Internal Server Error)"),
        ("Unexpected token < in JSON at position 0", "Unexpected token < in JSON at position 17"),
        ("Loading chunk 12 failed", "Loading chunk 57 failed"),
    ],
)
def test_numbers_that_are_ids_by_their_place_do_not_make_another_bug(one, other):
    assert fingerprint("error", one) == fingerprint("error", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP 404", "HTTP 500"),
        ("404 Not Found", "500 Not Found"),
        ("Request failed with status code 404", "Request failed with status code 500"),
        ("the server responded with a status of 404 ()", "the server responded with a status of 500 ()"),
        ("GET /api/users/12 404", "GET /api/users/12 500"),
        ("GET https://x.test/y 404", "GET https://x.test/y 503"),
        ("API returned 500 for user 1", "API returned 404 for user 2"),
        ("login 401", "login 403"),
        ("Minified React error #185", "Minified React error #418"),
        ("Expected 2 arguments, but got 3", "Expected 3 arguments, but got 3"),
        ("took 12.5 s", "took 13.5 s"),
    ],
)
def test_numbers_that_say_what_went_wrong_make_another_bug(one, other):
    assert fingerprint("error", one) != fingerprint("error", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("app.9f3ac1.js:42", "app.77ab12.js:57"),
        ("main.4f8a2c1b.js:42:17", "main.00aa11bb.js:1:2"),
        ("index-BfX3k9_q.js:3", "index-Qq1dd4ss.js:9"),
        ("chunk-ABCDEFGH.js:1", "chunk-ZYXWVUTS.js:1"),
        ("https://a.test/app.9f3ac1d2.js:1:2", "https://b.test/app.aaf3ac1d.js:1:9"),
        ("user-profile.js:42", "user-profile.js:43"),
        ("app.js?v=2:42", "app.js?v=3:9"),
        ("src/user.ts (line 12)", "src/user.ts (line 13)"),
    ],
)
def test_another_build_host_or_line_of_a_source_is_no_other_source(one, other):
    assert plain_source(one) == plain_source(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("user-profile.js:1", "user-service.js:1"),
        ("dist/my-settings2.js", "dist/my-dashboard2.js"),
        ("index-UserCard.js", "index-UserList.js"),
        ("https://x.test/a.js:1", "https://x.test/b.js:1"),
    ],
)
def test_another_file_is_another_source(one, other):
    assert plain_source(one) != plain_source(other)
