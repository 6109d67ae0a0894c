"The normalised Hessian penalty: what it estimates, what leaves it alone, what it refuses."

import pytest
import torch

from disentangle_repro.core.device import make_generator
from disentangle_repro.tripod.hessian_penalty import hessian_penalty
from disentangle_repro.tripod.normalized_hessian_penalty import normalized_hessian_penalty
from disentangle_repro.tripod.proofs import off_diagonal_sum, squares

MANY = 4096


def random_hessians(n_activations=6, n_latents=4, seed=0):
    H = torch.randn(n_activations, n_latents, n_latents, generator=make_generator(seed))
    return H + H.mT


def quadratic(H):
    return lambda z: torch.einsum("ri,kij,rj->rk", z, H, z) / 2 + z.sum(1, keepdim=True) - 3


def latents_and_scales(batch=32, n_latents=4):
    return torch.randn(batch, n_latents, generator=make_generator(1)), torch.tensor([0.3, 1.0, 2.0, 0.7])


def share(H, scales):
    numerators, denominators = squares(H, scales)
    return numerators.sum() / denominators.sum()


@pytest.mark.parametrize("seed", range(3))
def test_a_quadratic_decoder_costs_what_equation_16_says(seed):
    H, (latents, scales) = random_hessians(seed=seed), latents_and_scales()
    generator = make_generator(seed)
    made = normalized_hessian_penalty(quadratic(H), latents, scales, n_perturbations=MANY, generator=generator)
    assert abs(made / share(H, scales) - 1) < 0.02


@pytest.mark.parametrize("given", [True, False], ids=["scales given", "scales of the batch"])
def test_other_units_make_no_difference(given):
    decoder, (latents, scales) = quadratic(random_hessians()), latents_and_scales(batch=8)

    def penalty(output, c):
        own = scales * c if given else None
        options = {"n_perturbations": MANY, "generator": make_generator(0)}
        return normalized_hessian_penalty(lambda z: output * decoder(z / c), latents * c, own, **options)

    units = [(1e3, torch.ones(4)), (1e-3, torch.ones(4)), *((1.0, 1 + 9 * row) for row in torch.eye(4))]
    before = penalty(1.0, torch.ones(4))
    for output, c in units:
        assert abs(penalty(output, c) / before - 1) < 0.01, f"output times {output}, latents times {c.tolist()}"


def test_the_vanilla_penalty_is_equation_8():
    H, (latents, _) = random_hessians(), latents_and_scales()
    made = hessian_penalty(quadratic(H), latents, n_perturbations=MANY, generator=make_generator(0))
    assert abs(made / (2 * off_diagonal_sum(H).mean()) - 1) < 0.02
    tripled = hessian_penalty(quadratic(3 * H), latents, n_perturbations=MANY, generator=make_generator(0))
    assert abs(tripled / made - 9) < 0.01


def two_layers(rows):
    "A decoder of two layers, of six activations and of three; it notes the rows it is called with."
    one, other = random_hessians(), 3 * random_hessians(3, seed=1)

    def decoder(z):
        rows.append(len(z))
        return [quadratic(one)(z), quadratic(other)(z).unflatten(1, (1, 3))]

    return decoder, quadratic(one), quadratic(other)


@pytest.mark.parametrize("protocol", [None, "paper", "code"])
def test_layers_have_one_ratio_or_one_each_and_the_decoder_is_called_once(protocol):
    rows, (latents, scales) = [], latents_and_scales()
    decoder, one, other = two_layers(rows)

    def penalty(decoder, **how):
        generator = make_generator(0)
        return normalized_hessian_penalty(decoder, latents, scales, n_perturbations=3, generator=generator, **how)

    together = penalty(decoder, **({"protocol": protocol} if protocol else {}))
    assert rows == [4 * 3 * 32]
    as_one_layer = penalty(lambda z: torch.cat([one(z), other(z)], dim=1))  # line 24: all activations k in one fraction
    apart = penalty(one) + penalty(other)  # T4
    assert apart > 1.5 * as_one_layer
    torch.testing.assert_close(together, apart if protocol == "code" else as_one_layer)


@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_a_layer_without_curvature_takes_no_part(protocol):
    torch.manual_seed(0)
    linear, bent = torch.nn.Linear(4, 300), quadratic(random_hessians())
    latents, scales = latents_and_scales()
    how = {"generator": make_generator(0), "protocol": protocol}
    both = normalized_hessian_penalty(lambda z: [1e3 * linear(z), bent(z)], latents, scales, **how)
    torch.testing.assert_close(both, normalized_hessian_penalty(bent, latents, scales, generator=make_generator(0)))


def test_scales_left_out_and_protocols_unknown():
    decoder, (latents, _) = quadratic(random_hessians()), latents_and_scales()
    for protocol, scales in {"paper": latents.std(0), "code": latents.std(0, correction=0) + 1e-6}.items():
        own, given = (
            normalized_hessian_penalty(decoder, latents, of, generator=make_generator(0), protocol=protocol)
            for of in (None, scales)
        )
        torch.testing.assert_close(own, given)
    with pytest.raises(ValueError, match="protocol is 'letter' but must be one of 'paper', 'text', 'code'"):
        normalized_hessian_penalty(decoder, latents, latents.std(0), protocol="letter")


@pytest.mark.parametrize("penalty", [hessian_penalty, normalized_hessian_penalty])
def test_the_last_convolution_may_wait(penalty):
    torch.manual_seed(0)
    stem = torch.nn.Sequential(torch.nn.Linear(6, 48), torch.nn.Tanh(), torch.nn.Unflatten(1, (3, 4, 4))).double()
    end = torch.nn.ConvTranspose2d(3, 5, 4, 2, 1).double()
    latents = torch.randn(4, 6, generator=make_generator(0), dtype=torch.float64)

    def doubled(differences):
        return torch.nn.functional.conv_transpose2d(differences, end.weight, stride=2, padding=1)

    ways = [
        penalty(lambda z: [z.sin(), end(stem(z))], latents, generator=make_generator(0)),
        penalty(lambda z: [z.sin(), stem(z)], latents, generator=make_generator(0), last=doubled),
    ]
    torch.testing.assert_close(*ways)
    weights = [*stem.parameters(), end.weight]
    for gradients in zip(*(torch.autograd.grad(way, weights) for way in ways), strict=True):
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("nothing", ["linear", "deep linear", "constant", "zero"])
def test_where_nothing_bends_the_penalty_and_its_gradients_are_zero(nothing, dtype):
    torch.manual_seed(0)
    depth = 6 if nothing == "deep linear" else 1
    decoder = torch.nn.Sequential(*[torch.nn.Linear(12 if i == 0 else 300, 300) for i in range(depth)]).to(dtype)
    if nothing in ("constant", "zero"):
        torch.nn.init.zeros_(decoder[0].weight)
    if nothing == "zero":
        torch.nn.init.zeros_(decoder[0].bias)
    latents = torch.randn(64, 12, dtype=dtype).requires_grad_()
    penalty = normalized_hessian_penalty(decoder, latents, generator=make_generator(0))
    gradients = torch.autograd.grad(penalty, [latents, *decoder.parameters()])
    assert penalty == 0 and all((g == 0).all() for g in gradients)


def test_a_latent_that_stands_still_gets_a_finite_gradient():
    latents = torch.randn(16, 4, generator=make_generator(0))
    latents[:, 2] = 0.5
    latents.requires_grad_()
    penalty = normalized_hessian_penalty(lambda z: z.cumsum(1).sin(), latents, generator=make_generator(0))
    (gradient,) = torch.autograd.grad(penalty, latents)
    assert penalty > 0 and gradient.isfinite().all()


def test_gradients_reach_weights_latents_and_scales():
    torch.manual_seed(0)
    decoder = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 9))
    latents, scales = (part.requires_grad_() for part in latents_and_scales())
    penalty = normalized_hessian_penalty(decoder, latents, scales, generator=make_generator(0))
    for gradient in torch.autograd.grad(penalty, [latents, scales, decoder[0].weight, decoder[2].weight]):
        assert gradient.isfinite().all() and gradient.abs().max() > 0


def test_the_same_stream_gives_the_same_number():
    decoder, (latents, scales) = quadratic(random_hessians()), latents_and_scales()
    once, again, other = (
        normalized_hessian_penalty(decoder, latents, scales, generator=make_generator(seed)) for seed in (0, 0, 1)
    )
    assert once == again != other


@pytest.mark.parametrize("penalty", [hessian_penalty, normalized_hessian_penalty])
def test_what_is_refused(penalty):
    decoder, (latents, _) = quadratic(random_hessians()), latents_and_scales()
    with pytest.raises(ValueError, match="n_perturbations is 1 but"):
        penalty(decoder, latents, n_perturbations=1)
    with pytest.raises(ValueError, match="decoder returned 32 rows but needed is a multiple of 128"):
        penalty(lambda z: decoder(z)[:32], latents)


def test_scales_that_do_not_fit_are_refused():
    decoder, (latents, scales) = quadratic(random_hessians()), latents_and_scales()
    with pytest.raises(ValueError, match=r"scales has shape \(3,\) but needed is one per latent, \(4,\)"):
        normalized_hessian_penalty(decoder, latents, scales[:3])
    with pytest.raises(ValueError, match="latents has 1 samples but at least 2"):
        normalized_hessian_penalty(decoder, latents[:1])
    assert normalized_hessian_penalty(decoder, latents[:1], scales, generator=make_generator(0)) > 0
