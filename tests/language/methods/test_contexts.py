import pytest
import torch

from imm.language.methods.contexts import BUCKETS, States, log_q_at, states_mb
from imm.language.windows import Windows
from tests.language import tiny


def kept(model, windows):
    """The states of a pass over the text, and the same in a list."""
    states, plain = States(len(windows), model.initial_state(windows.batch_size), 1), []
    state = model.initial_state(windows.batch_size)
    for number in range(len(windows)):
        states.keep(number, state)
        plain.append(state)
        with torch.no_grad():
            _, state = model(windows[number].inputs, state)
    return states, plain


def by_hand(model, windows, plain, position):
    """One position alone: its column, from the beginning of its window."""
    column, place = divmod(position, len(windows) * windows.unroll)
    number = place // windows.unroll
    state = tuple(part[:, column : column + 1] for part in plain[number])
    state = tuple(part.half().float() if part.is_floating_point() else part for part in state)
    words = windows.inputs[number * windows.unroll : place + 1, column : column + 1]
    assert len(words) == place % windows.unroll + 1
    return model(words, state)[0][-1]


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
@pytest.mark.parametrize(
    "positions",
    [
        [0],
        [59, 0, 23],
        [7, 7, 7],
        [4, 7, 5, 4],  # one window
        [19, 20, 39, 40],  # where columns end and begin
        list(range(59, -1, -1)),
        [3, 50, 3, 17, 42, 8, 31, 50, 12, 29, 55, 0, 36],
    ],
)
def test_it_is_running_each_window_by_hand(kind, positions):
    model, windows = tiny.model(model=kind), Windows(tiny.tokens(61), 3, 4)
    assert len(windows) == 5
    states, plain = kept(model, windows)
    found = log_q_at(model, windows, states, torch.tensor(positions))
    expected = torch.stack([by_hand(model, windows, plain, position) for position in positions])
    torch.testing.assert_close(found, expected)
    assert len(found.unique(dim=0)) > len(set(positions)) // 2


def test_there_are_more_windows_than_are_run_together():
    assert BUCKETS < 15  # or the positions above do not fill them


def test_the_gradient_is_that_of_the_windows_by_hand():
    model, windows = tiny.model(), Windows(tiny.tokens(61), 3, 4)
    states, plain = kept(model, windows)
    positions = [50, 3, 3, 17, 42]
    factor = torch.linspace(-1, 1, 5)[:, None]
    found = torch.autograd.grad(
        (factor * log_q_at(model, windows, states, torch.tensor(positions))).sum(), list(model.parameters())
    )
    by_hand_sum = sum((f * by_hand(model, windows, plain, p)).sum() for f, p in zip(factor, positions, strict=True))
    expected = torch.autograd.grad(by_hand_sum, list(model.parameters()))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_what_states_take_is_known_before(kind):
    initial = tiny.model(model=kind).initial_state(3)
    states = States(500, initial, 1)
    assert states_mb(500, initial) == sum(part.nbytes for part in states.buffers()) / 1e6
    with pytest.raises(
        ValueError, match=r"the states of 50,000 windows take [0-9.]+ MB, more than table_mb 1: raise it"
    ):
        States(50_000, initial, 1)


def test_a_state_is_that_of_the_last_time():
    model, windows = tiny.model(), Windows(tiny.tokens(61), 3, 4)
    states, plain = kept(model, windows)
    states.keep(2, plain[4])
    columns = torch.tensor([1, 0])
    for part, before in zip(states.gather(torch.tensor([2, 2]), columns), plain[4], strict=True):
        torch.testing.assert_close(part, before[:, columns], rtol=1e-3, atol=1e-3)
        assert part.dtype == before.dtype
