"""Calls that a type checker must accept, and calls that it must refuse; mypy reads them, nobody runs them.

A choice that lost its type makes an `ignore` superfluous, which is an error by `warn_unused_ignores`.
"""

import numpy as np

from disentangle_repro import torchmetrics
from disentangle_repro.data import load_dataset
from disentangle_repro.metrics import dci, infomec, sis, smcc, udr
from disentangle_repro.models import create_model, from_pretrained


def accepted(sources: np.ndarray, latents: np.ndarray, slots: np.ndarray) -> tuple[float, float]:
    data = load_dataset("shapes3d", source="official", n=1_000)
    model = create_model("qlae", data.name, protocol="code")
    model.save_pretrained("qlae")
    from_pretrained("qlae").config["name"]
    torchmetrics.InfoMEC(discrete=True, protocol="code", code_of="tripod").update(sources, latents)
    agreement = smcc(slots, slots, pooled=True)
    return dci(sources, latents, predictor="boosting").d, agreement


def refused(sources: np.ndarray, latents: np.ndarray, slots: np.ndarray) -> None:
    load_dataset("shapes3d", source="published")  # type: ignore[arg-type]
    create_model("qlae", dataset="shapes3d", protocol="bare")  # type: ignore[arg-type]
    infomec(sources, latents, discrete=True, protocol="tripod")  # type: ignore[arg-type]
    infomec(sources, latents, protocol="paper")  # type: ignore[call-arg]
    dci(sources, latents, predictor="tree")  # type: ignore[arg-type]
    dci(sources, latents, protocol="pooled")  # type: ignore[arg-type]
    udr([latents, latents], protocol="field")  # type: ignore[arg-type]
    smcc(slots, slots, protocol="pooled")  # type: ignore[arg-type]
    sis(slots, slots, predictor="tree")  # type: ignore[arg-type]
