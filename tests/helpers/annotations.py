"""Annotations checked at run time: of each call that returned, arguments and result, shapes of jaxtyping among them.

A call that breaks its annotations and is refused has its own error, which tests of refusals read.
"""

from typing import Any

import numpy as np
from beartype import BeartypeConf, BeartypeHintOverrides, beartype

WIDER = BeartypeHintOverrides({int: int | np.integer, float: float | int | np.floating | np.integer})
CONFIGURATION = BeartypeConf(hint_overrides=WIDER)


def after_return(function):
    """What jaxtyping's import hook puts around the two empty functions that it makes of each function.

    One has the arguments and is called before the function, its result is `Any`; the other has arguments and result,
    and is called when the function has returned. Only this one is checked.
    """
    if function.__annotations__.get("return") is Any:
        return function
    return beartype(conf=CONFIGURATION)(function)
