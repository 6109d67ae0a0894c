"Each proof check of Tripod's objective goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

from disentangle_repro.baselines.autoencoder import LatentOutput
from disentangle_repro.tripod.tripod import FiniteScalarQuantizer, LatentQuantizer, NaiveTripod, Tripod

tripod = Chapter("tripod/06_tripod")


def together(latents, scales):
    return ORIGINAL_KLM(latents, scales) + 0.01


def other_scale(decoder, latents, scales, **how):
    return ORIGINAL_NHP(decoder, latents, 2 * scales, **how)


def without_last(decoder, latents, scales, last, **how):
    return ORIGINAL_NHP(lambda rows: decoder(rows)[:-1], latents, scales, **how)


def stopped(decoder, latents, scales, **how):
    return ORIGINAL_NHP(decoder, latents.detach(), scales.detach(), **how)


def no_gradient(latents, scales):
    return ORIGINAL_KLM(latents.detach(), scales.detach()).requires_grad_()


def population(continuous, protocol="paper"):
    return continuous.std(0, correction=0)


def one_sided(decoder, latents, scales, **how):
    "The decoder's own weights take no part."
    with torch.no_grad():
        value = ORIGINAL_NHP(decoder, latents, scales, **how)
    return value + 0 * latents.sum()


def always(protocol):
    def penalty(decoder, latents, scales, **how):
        return ORIGINAL_NHP(decoder, latents, scales, **how | {"protocol": protocol})

    return penalty


class RawOutput(FiniteScalarQuantizer):
    "Decoder and penalties get what the encoder outputs."

    def forward(self, continuous, generator=None):
        return LatentOutput(continuous, {})


class NotRounded(FiniteScalarQuantizer):
    def forward(self, continuous, generator=None):
        return LatentOutput(self.bounded(continuous), {})


class NoGradient(FiniteScalarQuantizer):
    "The rounding's own derivative, zero, and not the straight-through one."

    def forward(self, continuous, generator=None):
        return LatentOutput(self.code(continuous).detach() + 0 * continuous, {})


class PenaltiesOfContinuous(Tripod):
    def penalties(self, continuous, latents, generator):
        return super().penalties(continuous, continuous, generator)


class SpreadOfQuantised(Tripod):
    def penalties(self, continuous, latents, generator):
        return super().penalties(latents, latents, generator)


class SpreadWithoutGradient(Tripod):
    def scales(self, continuous):
        return super().scales(continuous).detach()


class Faint(Tripod):
    def weighted(self, loss, penalties):
        return super().weighted(0.001 * loss, penalties)


class NothingWeighted(Tripod):
    def weighted(self, loss, penalties):
        return loss + sum(penalties.values())


class NotQuantised(LatentQuantizer):
    def forward(self, continuous, generator=None):
        return LatentOutput(continuous, super().forward(continuous).penalties)


class CodebooksGetGradients(LatentQuantizer):
    def forward(self, continuous, generator=None):
        penalties = super().forward(continuous).penalties
        return LatentOutput(self.code(continuous) + continuous - continuous.detach(), penalties)


class Exchanged(LatentQuantizer):
    "The encoder follows the loss of the codebooks, and they follow the encoder's."

    def forward(self, continuous, generator=None):
        latents, penalties = super().forward(continuous)
        return LatentOutput(latents, {"quantize": penalties["commit"], "commit": penalties["quantize"]})


class NotSoNaive(NaiveTripod):
    curvature = Tripod.curvature


class NaiveWithSpread(NaiveTripod):
    scales = Tripod.scales


def not_normalised(activations):
    return activations


def longer_steps(decoder, latents, epsilon, **how):
    return ORIGINAL_VANILLA(decoder, latents, epsilon=2 * epsilon, **how)


def rectified(latent, n_latents, family, **nets):
    return ORIGINAL_NETWORKS(latent, n_latents, family="style", **nets)


def first_derivative(decoder, latents, directions):
    return torch.func.jvp(decoder, (latents,), (directions,))[1]


ORIGINAL_VANILLA, ORIGINAL_NETWORKS = tripod.hessian_penalty, tripod.make_networks
ORIGINAL_KLM, ORIGINAL_NHP = tripod.kernel_multiinformation, tripod.normalized_hessian_penalty

BROKEN = [
    ("Algorithm 1", "", "kernel_multiinformation", together),
    ("Algorithm 1", "", "normalized_hessian_penalty", other_scale),
    ("Algorithm 1", "", "normalized_hessian_penalty", without_last),
    ("Algorithm 1", "", "normalized_hessian_penalty", always("paper")),
    ("Algorithm 1", "", "normalized_hessian_penalty", always("code")),
    ("Algorithm 1", "", "latent_scales", population),
    ("Algorithm 1", "", "FiniteScalarQuantizer", RawOutput),
    ("Algorithm 1", "", "FiniteScalarQuantizer", NotRounded),
    ("Algorithm 1", "", "FiniteScalarQuantizer", NoGradient),
    ("Algorithm 1", "", "Tripod", PenaltiesOfContinuous),
    ("Algorithm 1", "", "Tripod", SpreadOfQuantised),
    ("Algorithm 1", "", "Tripod", SpreadWithoutGradient),
    ("Algorithm 1", "", "Tripod", Faint),
    ("Algorithm 1", "", "Tripod", NothingWeighted),
    ("equation 9, networks", "", "make_networks", rectified),
    ("equation 9, networks", "", "second_derivative", first_derivative),
    ("section 4.1", "", "LatentQuantizer", NotQuantised),
    ("section 4.1", "", "LatentQuantizer", CodebooksGetGradients),
    ("section 4.1", "", "LatentQuantizer", Exchanged),
    ("section 4.1", "", "NaiveTripod", NotSoNaive),
    ("section 4.1", "", "NaiveTripod", NaiveWithSpread),
    ("section 4.1", "", "FIXED_SCALE", 0.5),
    ("section 4.1", "", "normalised", not_normalised),
    ("section 4.1", "", "hessian_penalty", longer_steps),
    ("section 4.1", "", "kernel_multiinformation", together),
    ("table 6", "", "LatentQuantizer", NotQuantised),
    ("table 6", "", "kernel_multiinformation", together),
    ("table 6", "", "Tripod", SpreadOfQuantised),
    ("section 1", "", "kernel_multiinformation", no_gradient),
    ("section 1", "", "normalized_hessian_penalty", stopped),
    ("section 1", "", "normalized_hessian_penalty", one_sided),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(tripod, BROKEN)
