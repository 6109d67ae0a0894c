"Each proof check of latent quantisation goes red when the formula it stands for is broken."

from mutations import Chapter, proof_tests

lq = Chapter("qlae/01_latent_quantization")


def second_nearest(continuous, codebooks):
    return (continuous[:, :, None] - codebooks).abs().argsort(dim=2)[:, :, 1]


def shared_row(index, codebooks):
    return codebooks[0][index]


def straight_through_to_the_codebooks(continuous, quantized):
    return quantized + (continuous - continuous.detach())


def halfway(continuous, quantized):
    return (continuous + quantized) / 2


def smallest_signed_difference(continuous, codebooks):
    return (codebooks - continuous[:, :, None]).argmin(dim=2)


def no_losses(continuous, quantized, protocol="paper"):
    return {name: 0 * loss for name, loss in LOSSES(continuous, quantized, protocol).items()}


LOSSES = lq.codebook_losses

BROKEN = [
    ("equation 4", "", "nearest_index", second_nearest),
    ("figure 1", "", "look_up", shared_row),
    ("Algorithm 1, line 6", "", "straight_through", straight_through_to_the_codebooks),
    ("Algorithm 1", "", "straight_through", halfway),
    ("Algorithm 1", "", "nearest_index", smallest_signed_difference),
    ("Algorithm 1", "", "codebook_losses", no_losses),
    ("equation 5", "", "straight_through", straight_through_to_the_codebooks),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(lq, BROKEN)
