import pytest
import torch

from imm.language.windows import Windows

SHAPES = [
    *((100, 3, 4), (101, 20, 5), (50, 7, 7), (9, 4, 35), (9, 4, 2), (8, 8, 1), (2, 20, 35), (3, 2, 1)),
    # of these the columns asked for would leave out up to a half
    *((1399, 20, 35), (1000, 20, 35), (70, 20, 35), (37, 20, 35), (25, 2, 5), (54, 20, 10), (12, 2, 5)),
]


@pytest.mark.parametrize(("n", "batch_size", "unroll"), SHAPES)
class TestWindows:
    def test_a_label_is_the_next_word_and_columns_go_on(self, n, batch_size, unroll):
        windows = Windows(torch.arange(n), batch_size, unroll)
        assert len(windows) > 0
        before = None
        for number in range(len(windows)):
            batch = windows[number]
            assert batch.number == number
            assert batch.inputs.shape == (windows.unroll, windows.batch_size)
            assert torch.equal(batch.labels, batch.inputs.flatten() + 1)
            assert torch.equal(batch.short, batch.inputs.flatten())
            assert bool((batch.inputs.diff(dim=0) == 1).all())
            if before is not None:
                assert torch.equal(batch.inputs[0], before[-1] + 1)
            before = batch.inputs

    def test_no_word_is_read_twice_and_hardly_any_left_out(self, n, batch_size, unroll):
        windows = Windows(torch.arange(n), batch_size, unroll)
        assert len(windows.short.unique()) == len(windows.short)
        assert windows.unroll <= unroll
        assert windows.batch_size <= batch_size
        assert len(windows.short) >= 0.9 * (n - 1)

    def test_locate_inverts_short(self, n, batch_size, unroll):
        windows = Windows(torch.arange(n), batch_size, unroll)
        column, window, place = windows.locate(torch.arange(len(windows.short)))
        for position, word in enumerate(windows.short):
            assert windows[int(window[position])].inputs[place[position], column[position]] == word


def test_whole_columns_are_cut_from_the_text():
    windows = Windows(torch.arange(87), batch_size=2, unroll=2)
    assert windows.inputs.T.tolist() == [list(range(42)), list(range(43, 85))]


@pytest.mark.parametrize(
    ("n", "shape"), [(929_589, (20, 35)), (46_479, (20, 35)), (1399, (20, 34)), (70, (1, 34)), (30, (1, 29))]
)
def test_columns_are_as_many_as_asked_for_unless_much_is_left_out(n, shape):
    windows = Windows(torch.zeros(n, dtype=torch.long), 20, 35)
    assert (windows.batch_size, windows.unroll) == shape


@pytest.mark.parametrize("n", [0, 1])
def test_a_text_without_a_pair_is_refused(n):
    with pytest.raises(ValueError, match=f"a text needs two words to learn from, got {n}"):
        Windows(torch.arange(n), 2, 3)


@pytest.mark.parametrize("number", [-1, 2])
def test_a_window_that_is_not_there(number):
    with pytest.raises(IndexError, match=f"window {number} of 2"):
        Windows(torch.arange(9), 1, 4)[number]


def test_a_text_a_little_longer_is_not_cut_otherwise():
    """From 700 words on there are nearly as many columns as asked for, and nearly everything is read."""
    for n in range(701, 6000):
        windows = Windows(torch.zeros(n, dtype=torch.long), 20, 35)
        assert windows.batch_size >= 19
        assert windows.unroll >= 18
        assert len(windows.short) >= 0.95 * (n - 1)
