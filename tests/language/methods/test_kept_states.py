import pytest
import torch

from imm.language.methods.kept_states import SEGMENT, KeptStates, states_mb
from imm.language.windows import Windows
from tests.language import tiny


def long_windows():
    """Three columns of two windows of twelve words: segments of five, five and two words."""
    return Windows(tiny.tokens(73), 3, 12)


def kept(model, windows):
    """The states of a pass over the text, and the same as a list: one for each segment of each window."""
    states, plain = KeptStates(windows, model.initial_state(windows.batch_size), 1), []
    state = model.initial_state(windows.batch_size)
    for number in range(len(windows)):
        with torch.no_grad():
            states.read(model, number, windows[number].inputs, state)
            for part in windows[number].inputs.split(SEGMENT):
                plain.append(state)
                _, state = model(part, state)
    return states, plain


def by_hand(model, windows, plain, position):
    """One position alone: its column, from the beginning of its segment."""
    column, place = divmod(position, len(windows) * windows.unroll)
    number, within = divmod(place, windows.unroll)
    segment = number * -(-windows.unroll // SEGMENT) + within // SEGMENT
    state = tuple(part[:, column : column + 1].half().float() for part in plain[segment])
    words = windows.inputs[place - within % SEGMENT : place + 1, column : column + 1]
    return model(words, state)[0][-1]


@pytest.mark.parametrize(
    "positions",
    [
        [0],
        [71, 0, 23],
        [7, 7, 7],
        [4, 5, 9, 10, 11, 12],  # where segments and a window end
        [23, 24, 47, 48],  # where columns end and begin
        list(range(71, -1, -1)),
    ],
)
def test_it_is_running_each_segment_by_hand(positions):
    model, windows = tiny.model(), long_windows()
    states, plain = kept(model, windows)
    found = states.log_q_at(model, torch.tensor(positions))
    expected = torch.stack([by_hand(model, windows, plain, position) for position in positions])
    torch.testing.assert_close(found, expected)
    assert len(found.unique(dim=0)) == len(set(positions))


def test_the_gradient_is_that_of_the_segments_by_hand():
    model, windows = tiny.model(), long_windows()
    states, plain = kept(model, windows)
    positions = [50, 3, 3, 17, 42]
    factor = torch.linspace(-1, 1, 5)[:, None]
    found = torch.autograd.grad(
        (factor * states.log_q_at(model, torch.tensor(positions))).sum(), list(model.parameters())
    )
    by_hand_sum = sum((f * by_hand(model, windows, plain, p)).sum() for f, p in zip(factor, positions, strict=True))
    expected = torch.autograd.grad(by_hand_sum, list(model.parameters()))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_reading_in_segments_is_reading():
    model, windows = tiny.model(), long_windows()
    states = KeptStates(windows, model.initial_state(3), 1)
    read, after = states.read(model, 1, windows[1].inputs, model.initial_state(3))
    expected, end = model(windows[1].inputs, model.initial_state(3))
    torch.testing.assert_close(read, expected)
    torch.testing.assert_close(after, end)


def test_filling_keeps_the_states_of_one_pass_in_evaluation_mode():
    model, windows = tiny.model(), long_windows()
    expected, _ = kept(model, windows)
    states = KeptStates(windows, model.initial_state(3), 1)
    states.fill(model.train())
    assert model.training
    for name, part in expected.state_dict().items():
        torch.testing.assert_close(states.state_dict()[name], part, msg=name)


def test_what_states_take_is_known_before():
    windows, initial = long_windows(), tiny.model().initial_state(3)
    states = KeptStates(windows, initial, 1)
    assert states_mb(windows, initial) == sum(part.nbytes for part in states.buffers()) / 1e6
    with pytest.raises(ValueError, match=r"the states of 72 words take [0-9.]+ MB, more than table_mb 0: raise it"):
        KeptStates(windows, initial, 0)
