"""Steps of a method as a run takes them, without an optimizer: the model stays what it is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from imm.language.dataset import Texts
from imm.language.methods import Loss, Method, Step, method_for
from imm.language.model import State
from imm.language.windows import Batch, Windows
from tests.language import tiny


@dataclass
class Taken:
    """One step and all it was made of; ``given`` is the batch before the method prepared it."""

    method: Method
    windows: Windows
    texts: Texts
    generator: Generator
    step: Step
    given: Batch
    log_q: Tensor
    after: State
    loss: Loss

    @property
    def model(self):
        return self.step.model

    @property
    def batch(self) -> Batch:
        return self.step.batch

    @property
    def state(self) -> State:
        return self.step.state

    def apart(self, scale: float = 1.0) -> Tensor:
        """The second pass."""
        return self.method.backward_apart(self.step, scale)

    def then(self) -> "Taken":
        """The step after."""
        number = (self.given.number + 1) % len(self.windows)
        after = self.after if number else self.model.initial_state(self.windows.batch_size)
        step = replace(self.step, batch=self.windows[number], state=after)
        return _take(self.method, self.windows, self.texts, self.generator, step)


def take(n: int, after: Taken | None = None, texts: Texts | None = None, **changes: Any) -> Iterator[Taken]:
    """The first ``n`` steps, or those after another step, by a method that was loaded from that one's state."""
    changes = {"dropout": 0.0, "refresh_every": 2, "every": 2, **changes}
    settings = tiny.settings(**changes)
    texts = texts or tiny.texts()
    windows = Windows(texts.train, settings.batch_size, settings.unroll)
    model = tiny.model(**{name: value for name, value in changes.items() if name != "init"})
    generator = torch.Generator().manual_seed(settings.seed)
    method = method_for(settings, texts, windows, model, generator)
    if after is None:
        state = model.initial_state(windows.batch_size)
        taken = _take(method, windows, texts, generator, Step(model, windows[0], state, settings.lam, 1.0))
    else:
        method.load_state_dict(after.method.state_dict())
        generator.set_state(after.generator.get_state())
        taken = replace(after, method=method, generator=generator).then()
    for left in range(n - 1, -1, -1):
        yield taken
        if left:
            taken = taken.then()


def _take(method, windows, texts, generator, step) -> Taken:
    given = step.batch
    step = replace(step, batch=method.prepare(step))
    log_q, after = method.read(step)
    return Taken(method, windows, texts, generator, step, given, log_q, after, method(log_q, step))
