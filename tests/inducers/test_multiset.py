import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from imm.inducers import Multiset
from tests import reference

KINDS = {
    "integers": (st.integers(0, 6), lambda values: torch.tensor(values)),
    "negative integers": (st.integers(-5, 5), lambda values: torch.tensor(values)),
    "large integers": (st.sampled_from([0, 3, 2**40, -(2**40)]), lambda values: torch.tensor(values)),
    "unsigned bytes": (st.integers(0, 255), lambda values: np.array(values, dtype=np.uint8)),
    "rows of integers": (st.tuples(st.integers(-2, 300), st.integers(-1, 1)), lambda values: torch.tensor(values)),
    "strings": (st.text(max_size=2), list),
    "tuples": (st.tuples(st.integers(0, 2), st.sampled_from("ab")), list),
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_equals_a_dictionary_of_lists(kind, data):
    values, pack = KINDS[kind]
    short = data.draw(st.lists(values, min_size=1, max_size=30))
    multiset, expected = Multiset(pack(short)), reference.multiset(short)
    contexts = multiset.every(pack(short))
    for t, value in enumerate(short):
        real = contexts.weights[t] > 0
        assert contexts.index[t][real].tolist() == expected[value]
        assert (contexts.index[t][~real] == 0).all()
        torch.testing.assert_close(contexts.weights[t][real], torch.full((int(real.sum()),), 1 / len(expected[value])))
    # A partition: each row stands in exactly one group, and codes tell the groups apart.
    assert sorted(multiset.rows.tolist()) == list(range(len(short)))
    assert multiset.offsets[0] == 0
    assert multiset.offsets[-1] == len(short)
    codes = multiset.encode(pack(short))
    assert codes.dtype == torch.int64
    assert ((codes >= 0) & (codes < len(multiset))).all()
    assert reference.multiset(codes.tolist()).values() == expected.values() or sorted(
        map(tuple, reference.multiset(codes.tolist()).values())
    ) == sorted(map(tuple, expected.values()))


def test_draws_stay_in_the_group(generator):
    short = torch.randint(5, (100,), generator=generator)
    drawn = Multiset(short).draw(short, 20, generator).index
    assert (short[drawn] == short[:, None]).all()


def test_a_list_of_integers_is_found_by_a_tensor_too():
    multiset = Multiset([7, 3, 7])
    assert multiset.every(torch.tensor([7])).index.tolist() == [[0, 2]]
    assert multiset.every(np.array([3])).index.tolist() == [[1]]


@pytest.mark.parametrize(
    ("short", "message"),
    [
        (torch.empty(0, dtype=torch.int64), "short is empty"),
        ([], "short is empty"),
        (torch.tensor([0.5]), "must be integers .* got float32; see Kernel"),
        (torch.zeros(1, 1, 1, dtype=torch.int64), r"must be \[n\] or \[n, m\], got shape \(1, 1, 1\)"),
    ],
)
def test_what_is_not_discrete_is_refused(short, message):
    with pytest.raises(ValueError, match=message):
        Multiset(short)


def test_a_batch_of_another_width_is_refused():
    with pytest.raises(ValueError, match=r"short must be \[n, 2\], got shape \(1, 3\)"):
        Multiset(torch.tensor([[0, 1]])).every(torch.tensor([[0, 1, 2]]))


@pytest.mark.parametrize("largest", [5, 2**40])
def test_rows_of_integers_are_refused_where_the_data_is_integers(largest):
    with pytest.raises(ValueError, match=r"short must be \[n\], got shape \(1, 2\)"):
        Multiset(torch.tensor([0, largest])).every(torch.tensor([[0, 0]]))


def test_a_data_frame_is_refused():
    class Frame(list):
        columns = ("age",)

    for call in (Multiset, Multiset(["age"]).every):
        with pytest.raises(TypeError, match=r"short must not be a Frame: pass its \.to_numpy\(\)"):
            call(Frame(["age"]))
