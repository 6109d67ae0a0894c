"Annotations are checked as tests run, of calls that return; a call that is refused has its own error."

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from disentangle_repro.scores.importance import disentanglement

MATRIX = [[1.0, 0.0], [0.0, 1.0]]


def test_a_call_that_breaks_its_annotations_and_returns_is_named():
    assert disentanglement(np.array(MATRIX)) == 1
    with pytest.raises(TypeCheckError, match="scores.importance"):
        disentanglement(MATRIX)


def test_a_call_that_is_refused_has_its_own_error():
    with pytest.raises(ValueError, match="importance"):
        disentanglement(np.array([MATRIX]))


def test_other_arguments_can_be_tried(beyond_annotations):
    assert disentanglement(MATRIX) == 1
