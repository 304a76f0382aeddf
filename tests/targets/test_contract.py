"""What every target must do. A new one joins ``CASES``; the last test tells when it is missing there."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import imm.targets
from imm.control.pomdp import PomdpPolicy
from imm.ngram import Ngram
from imm.targets import Classifier, Scores, Table, Target, Weakened


@dataclass(frozen=True)
class Case:
    """A target for given classes (the full model's, in its order), and a batch of short contexts for it."""

    name: str
    build: Callable[[Sequence[Hashable]], Target]
    short: Any


OLD = LogisticRegression().fit([[0.0], [1.0], [2.0]], ["bad", "good", "ugly"])
CLASSES = ["ugly", "bad", "good"]
PROBABILITIES = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]
BIGRAM = Ngram.fit([0, 1, 0, 2, 0, 1], 3, order=2)
ROWS = {"x": PROBABILITIES[0], "y": PROBABILITIES[1]}

CASES = [
    Case(
        "Classifier", lambda classes: Classifier(OLD, columns=[1], classes=classes), np.array([[9.0, 0.1], [9.0, 2.0]])
    ),
    Case("Ngram", lambda classes: Ngram(BIGRAM.trie, classes, BIGRAM.about), torch.tensor([0, 2, 1])),
    Case(
        "PomdpPolicy",
        lambda classes: PomdpPolicy(np.eye(3), belief=PROBABILITIES, classes=classes, temperature=1.0),
        torch.tensor([1, 0, 1]),
    ),
    Case("Scores", lambda classes: Scores(PROBABILITIES, classes, CLASSES), torch.tensor([1, 0, 1])),
    Case("Table", lambda classes: Table(ROWS, classes), ["y", "x"]),
    Case("Weakened", lambda classes: Weakened(Table(ROWS, classes), 0.3), ["y", "x", "x"]),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@each_case
class TestTarget:
    def test_rows_are_probabilities_of_the_classes(self, case):
        target = case.build(CLASSES)
        p = target(case.short)
        assert p.shape == (len(case.short), 3)
        assert p.is_floating_point()
        assert (p >= 0).all()
        torch.testing.assert_close(p.sum(1), torch.ones(len(p)))
        assert target.classes == tuple(CLASSES)

    def test_each_short_context_is_answered_by_itself(self, case):
        target = case.build(CLASSES)
        alone = torch.cat([target(case.short[t : t + 1]) for t in range(len(case.short))])
        torch.testing.assert_close(target(case.short), alone)
        assert not torch.equal(alone[0], alone[1])

    def test_weakened_by_nothing_is_the_same(self, case):
        target = case.build(CLASSES)
        assert torch.equal(target.weakened(0)(case.short), target(case.short))

    def test_weakened_wholly_is_uniform(self, case):
        weak = case.build(CLASSES).weakened(1)
        torch.testing.assert_close(weak(case.short), torch.full((len(case.short), 3), 1 / 3))
        assert weak.classes == tuple(CLASSES)

    def test_weakened_in_part_is_the_mixture(self, case):
        """Appendix quality: with probability p the label is a fair coin's."""
        target = case.build(CLASSES)
        torch.testing.assert_close(target.weakened(0.2)(case.short), 0.8 * target(case.short) + 0.2 / 3)

    @pytest.mark.parametrize("p", [-0.1, 1.5])
    def test_weakened_by_what_is_no_fraction_is_refused(self, case, p):
        with pytest.raises(ValueError, match=f"p must be between 0 and 1, got {p}"):
            case.build(CLASSES).weakened(p)

    @pytest.mark.parametrize("classes", [["bad", "good"], ["ugly", "bad", "good", "other"]])
    def test_other_classes_are_refused_at_construction(self, case, classes):
        with pytest.raises(ValueError, match=r"classes|probabilities|scores") as refused:
            case.build(classes)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize(("classes", "told"), [(["a", "a", "b"], "'a' 2 times"), (["a"], r"\['a'\]")])
    def test_repeated_or_single_classes_are_refused(self, case, classes, told):
        with pytest.raises(ValueError, match=f"different labels, got {told}"):
            case.build(classes)

    def test_an_empty_batch_is_refused(self, case):
        with pytest.raises(ValueError, match="short is an empty batch"):
            case.build(CLASSES)(case.short[:0])


def test_everything_exported_stands_in_the_list():
    elsewhere = {"Ngram", "PomdpPolicy"}  # targets too, in rooms of their own
    assert {case.name for case in CASES} == set(imm.targets.__all__) - {"Target"} | elsewhere


class Wrong(Target):
    """A target whose author made a mistake."""

    def __init__(self, p):
        super().__init__([0, 1])
        self.p = p

    def probabilities(self, short):
        return self.p


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (torch.tensor([[0.5, 0.6]]), "target must be probabilities; row 0 sums to 1.1"),
        (torch.tensor([[0.5, float("nan")]]), "row 0 has NaN"),
        (torch.tensor([[1.0, 0.0, 0.0]]), r"target must be \[1, 2\], got shape \(1, 3\)"),
        (torch.tensor([[1.0, 0.0]] * 2), r"target must be \[1, 2\], got shape \(2, 2\)"),
    ],
)
def test_the_base_class_checks_what_a_target_answers(p, message):
    with pytest.raises(ValueError, match=message):
        Wrong(p)([0])
