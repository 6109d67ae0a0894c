"Each proof check of slots as a mixture goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

mixture = Chapter("psa/01_slots_as_a_mixture")


ORIGINAL_JOINT, ORIGINAL_UPDATE = mixture.log_joint, mixture.update
LocalMixture = mixture.LocalMixture


def no_variance_in_the_constant(features, slots):
    return ORIGINAL_JOINT(features, slots) + slots.variance.log().sum(2)[:, :, None] / 2


def twice_the_distance(features, slots):
    return 2 * ORIGINAL_JOINT(features, slots)


def over_positions(features, slots):
    return mixture.log_joint(features, slots).log_softmax(2)


def added_floor(features, log_a, floor=mixture.FLOOR):
    slots = ORIGINAL_UPDATE(features, log_a, 0.0)
    return slots._replace(variance=slots.variance + floor)


def first_slot_first(features, log_a, floor=mixture.FLOOR):
    return ORIGINAL_UPDATE(features, log_a + torch.arange(log_a.shape[1])[:, None] / 100, floor)


def by_division(features, log_a, floor=mixture.FLOOR):
    "The algorithm to the letter: zero divided by zero for a slot that has lost every position."
    a = log_a.exp()
    share = a / a.sum(2, keepdim=True)
    mean = share @ features.first
    variance = (share @ features.second - mean.square()).clamp_min(floor)
    return LocalMixture(features.centre + mean, variance, a.mean(2).log())


BROKEN = [
    ("equation 2", "", "log_joint", no_variance_in_the_constant),
    ("equation 5", "", "log_responsibilities", mixture.responsibilities_as_printed),
    ("section 4, slot attention", "", "log_joint", twice_the_distance),
    ("Algorithm 2, steps 2 to 5", "", "update", added_floor),
    ("Algorithm 2", "identity projections", "log_responsibilities", over_positions),
    ("Algorithm 2", "at the floor", "update", added_floor),
    ("Algorithm 2", "scikit-learn", "update", added_floor),
    ("Algorithm 2", "equivariant to the order", "update", first_slot_first),
    ("Algorithm 2, dead slots", "", "update", by_division),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(mixture, BROKEN)
