import tracemalloc

import numpy as np
import pytest

from imm.control.pomdp import read_pomdp
from tests.control.pomdp.pomdps import TIGER

HEAD = "discount: 0.9\nvalues: reward\nstates: 3\nactions: go stay\nobservations: dark light\n"
BODY = "T: go\nuniform\nT: stay identity\nO: *\n0.5 0.5\n0.25 0.75\n1 0\nR: *: * : * : * 1\n"


def read(tmp_path, text):
    path = tmp_path / "x.POMDP"
    path.write_text(text, encoding="utf-8")
    return read_pomdp(path)


def test_the_tiger(tmp_path):
    tiger = read(tmp_path, TIGER)
    assert tiger.states == ("tiger-left", "tiger-right")
    assert tiger.actions == ("listen", "open-left", "open-right")
    assert tiger.discount == 0.95
    np.testing.assert_array_equal(tiger.transition[0].toarray(), np.eye(2))
    np.testing.assert_array_equal(tiger.transition[2].toarray(), np.full((2, 2), 0.5))
    np.testing.assert_array_equal(tiger.observation[0].toarray(), [[0.85, 0.15], [0.15, 0.85]])
    np.testing.assert_array_equal(tiger.reward, [[-1, -100, 10], [-1, 10, -100]])
    np.testing.assert_array_equal(tiger.start, [0.5, 0.5])


def test_later_entries_override_and_names_and_numbers_mix(tmp_path):
    text = HEAD + BODY + "T: go : 1\n0 0 1\nT: 0 : 2 : 0 1\nT: go:2:1 0\nT: go:2:2 0.0\nO: stay : 2\nuniform\n"
    found = read(tmp_path, text)
    third = 1 / 3
    np.testing.assert_allclose(found.transition[0].toarray(), [[third] * 3, [0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(found.observation[1].toarray()[2], [0.5, 0.5])
    np.testing.assert_allclose(found.observation[0].toarray()[2], [1, 0])


def test_rewards_of_what_follows_enter_by_their_mean(tmp_path):
    text = HEAD + BODY + "R: go : 0 : * : light 5\nR: go : 1 : 2\n7 9\nR: go : 2\n1 2\n3 4\n5 6\n"
    found = read(tmp_path, text)
    light = (0.5 + 0.75 + 0) / 3
    here = [
        5 * light + (1 - light),
        (1 + 1 + 7) / 3,  # only the third state follows with another reward, and there it is dark
        (1.5 + (0.25 * 3 + 0.75 * 4) + 5) / 3,
    ]
    np.testing.assert_allclose(found.reward[:, 0], here)
    np.testing.assert_allclose(found.reward[:, 1], 1)


FORMS = [
    ("R: go : 2\n1 2\n3 4\n5 6\n", [0, 0, 1], [[1, 2], [3, 4], [5, 6]]),
    ("R: go : *\n1 2\n3 4\n5 6\n", [1, 1, 1], [[1, 2], [3, 4], [5, 6]]),
    ("R: * : *\n1 2\n3 4\n5 6\n", [1, 1, 1], [[1, 2], [3, 4], [5, 6]]),
    ("R: go : 2 : *\n7 9\n", [0, 0, 1], [[7, 9]] * 3),
    ("R: go : * : *\n7 9\n", [1, 1, 1], [[7, 9]] * 3),
    ("R: go : 2 : 1\n7 9\n", [0, 0, 1], [[0, 0], [7, 9], [0, 0]]),
    ("R: go : 2 : 1 : light 7\n", [0, 0, 1], [[0, 0], [0, 7], [0, 0]]),
    ("R: go : 2 : * : * 7\n", [0, 0, 1], [[7, 7]] * 3),
]


@pytest.mark.parametrize(("text", "states", "table"), FORMS, ids=lambda given: given if isinstance(given, str) else "")
def test_each_form_of_a_reward_alone(tmp_path, text, states, table):
    """``Σ_s' T(s'|s, a) Σ_o O(o|a, s') R(s', o)``, with uniform T, where the entry applies."""
    found = read(tmp_path, HEAD + BODY.replace("R: *: * : * : * 1\n", text))
    seen = np.array([[0.5, 0.5], [0.25, 0.75], [1, 0]])
    np.testing.assert_allclose(found.reward[:, 0], np.array(states) * (seen * table).sum() / 3)


def test_a_later_reward_for_all_that_follows_overrides_a_row(tmp_path):
    found = read(tmp_path, HEAD + BODY + "R: go : 1 : *\n7 9\nR: go : 1 : * : * 2\nR: go : 0 : * : dark 3\n")
    np.testing.assert_allclose(found.reward[:, 0], [1 + 2 * (0.5 + 0.25 + 1) / 3, 2, 1])


def test_rewards_of_what_follows_need_no_table_of_all_states(tmp_path):
    """300 states and 300 observations: all at once would be 27 million entries."""
    n = 300
    head = HEAD.replace("states: 3", f"states: {n}").replace("dark light", str(n)).replace("go stay", "1")
    tracemalloc.start()
    found = read(tmp_path, head + "T: * identity\nO: *\nuniform\nR: * : * : * : 0 1\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found.reward, 1 / n)
    assert peak < n**3 * 8 / 4


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    assert read(tmp_path, "\ufeff" + HEAD + BODY).discount == 0.9


def test_costs_are_negative_rewards(tmp_path):
    assert (read(tmp_path, (HEAD + BODY).replace("reward", "cost")).reward == -1).all()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("start: 0.5 0.25 0.25", [0.5, 0.25, 0.25]),
        ("start: uniform", [1 / 3] * 3),
        ("start: 2", [0, 0, 1]),
        ("start include: 0 2", [0.5, 0, 0.5]),
        ("start exclude: 1", [0.5, 0, 0.5]),
    ],
)
def test_starts(tmp_path, line, wanted):
    found = read(tmp_path, HEAD + line + "\n" + BODY + "T: go : 1 reset\n")
    np.testing.assert_allclose(found.start, wanted)
    np.testing.assert_allclose(found.transition[0].toarray()[1], wanted)


def test_comments_and_missing_spaces(tmp_path):
    text = HEAD + BODY + "R: go : 2 : * : light 5\n"
    found = read(tmp_path, "# a world\n" + text.replace(": ", ":").replace(" :", ":").replace("\n", " # T: x\n"))
    wanted = read(tmp_path, text)
    np.testing.assert_array_equal(found.reward, wanted.reward)
    for ours, theirs in zip(found.transition + found.observation, wanted.transition + wanted.observation, strict=True):
        np.testing.assert_array_equal(ours.toarray(), theirs.toarray())
    assert (found.states, found.actions, found.observations) == (wanted.states, wanted.actions, wanted.observations)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x.POMDP is not a .POMDP file: it has no line `discount:`"),
        ("discount: 0.9\nstates: 2\n", "it has no line `actions:`"),
        ("hello\n" + HEAD, "line 1: 'hello' begins no entry; entries are discount, values"),
        (HEAD.replace("0.9", "much") + BODY, "line 1: `discount:` needs finite numbers, got 'much'"),
        (HEAD.replace("0.9", "1.5") + BODY, r"x.POMDP: discount must be at least 0 and below 1, got 1.5"),
        (HEAD.replace("reward", "points") + BODY, "line 2: `values:` must be reward or cost, got 'points'"),
        (
            HEAD.replace("states: 3", "states: 0") + BODY,
            "line 3: `states:` must be a number above 0 or different names, got '0'",
        ),
        (
            HEAD.replace("states: 3", "states: 9999999999") + BODY,
            "2 actions, 9999999999 states and 2 observations need 199999999960000000002 entries, more than",
        ),
        (HEAD + BODY + "T: go : ²\nuniform\n", "line 14: '²' is not one of the 3 states"),
        (HEAD.replace("dark light", "dark dark") + BODY, "line 5: `observations:` must be .* got 'dark dark'"),
        (HEAD + BODY + "T: fly\nuniform\n", "line 14: 'fly' is not one of the 2 actions"),
        (HEAD + BODY + "T: go : 3\nuniform\n", "line 14: '3' is not one of the 3 states"),
        (HEAD + BODY + "T: go : 1 : 1 : 1 0.5\n", "line 14: `T:` has 4 fields, not 1 to 3"),
        (HEAD + BODY + "R: go 5\n", "line 14: `R:` has 1 fields, not 2 to 4"),
        (HEAD + BODY + "T: go : 1\n0.5 0.5\n", "line 14: `T:` needs 3 finite numbers here, got 2"),
        (HEAD + BODY + "O: go : 1\n0.5 x\n", "line 14: `O:` needs finite numbers, got 'x'"),
        (HEAD + BODY + "T: go : 1 : 1 nan\n", "line 14: `T:` needs finite numbers, got 'nan'"),
        (HEAD + BODY + "R: go : 1 : * : * 1e400\n", "line 14: `R:` needs finite numbers, got '1e400'"),
        (HEAD + "start:\n" + BODY, "line 6: `start:` needs uniform, states, or 3 probabilities, got nothing"),
        (HEAD + "start exclude:\n" + BODY, "line 6: `start:` needs uniform, states, or 3 prob.* got nothing"),
        (HEAD + "states: 4\n" + BODY, "line 6: `states:` is given again, first in line 3"),
        (HEAD + "discount: 0.5\n" + BODY, "line 6: `discount:` is given again, first in line 1"),
        (
            HEAD.replace("states: 3", "states: " + "9" * 5000) + BODY,
            r"x.POMDP, line 3: `states:` must be .* '9{57}\.\.\.'",
        ),
        (HEAD + BODY + f"T: go : {'9' * 5000}\nuniform\n", r"line 14: '9{57}\.\.\.' is not one of the 3 states"),
        (
            HEAD + BODY + "T: go : 1 : 1 0.5\n",
            "x.POMDP: transition of action go must be probabilities; the row of state 1 sums to 1.16667",
        ),
        (
            HEAD + BODY + "O: stay : 0 : dark 0.6\n",
            "observation of action stay must be probabilities; the row of state 0 sums to 1.1",
        ),
        (
            HEAD + "T: go\nuniform\nO: *\nuniform\n",
            "transition of action stay must be probabilities; the row of state 0 sums to 0",
        ),
        (HEAD + "start: 0.5 0.2 0.2\n" + BODY, "start must be probabilities; it sums to 0.9"),
        (HEAD + "start exclude: 0 1 2\n" + BODY, "line 6: `start` leaves no state"),
        (HEAD + BODY + "E: go : 1 0.5\n", "line 14: 'E' before a colon begins no entry that is known here"),
    ],
)
def test_a_malformed_file_is_one_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value)


def test_what_is_no_text_is_one_line(tmp_path):
    path = tmp_path / "x.POMDP"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"cannot be read as a .POMDP file"):
        read_pomdp(path)
