"Each proof check of slots as a mixture goes red when the formula it stands for is broken."

import math

import torch
from mutations import Chapter, proof_tests

mixture = Chapter("psa/01_slots_as_a_mixture")


ORIGINAL_JOINT, ORIGINAL_UPDATE = mixture.log_joint, mixture.update
LocalMixture = mixture.LocalMixture


def no_variance_in_the_constant(features, slots):
    return ORIGINAL_JOINT(features, slots) + slots.variance.log().sum(2)[:, :, None] / 2


def no_weights(features, slots):
    return ORIGINAL_JOINT(features, slots) - slots.log_weight[:, :, None]


def far_from_the_centre(features, slots):
    return ORIGINAL_JOINT(features, slots._replace(mean=slots.mean + features.centre))


def twice_the_distance(features, slots):
    return 2 * ORIGINAL_JOINT(features, slots)


def over_positions(features, slots):
    return mixture.log_joint(features, slots).log_softmax(2)


def as_it_should_be(features, slots):
    return mixture.log_responsibilities(features, slots).exp()


def added_floor(features, log_a, floor=mixture.FLOOR):
    slots = ORIGINAL_UPDATE(features, log_a, 0.0)
    return slots._replace(variance=slots.variance + floor)


def doubled_variance(features, log_a, floor=mixture.FLOOR):
    slots = ORIGINAL_UPDATE(features, log_a, floor)
    return slots._replace(variance=2 * slots.variance)


def equal_weights(features, log_a, floor=mixture.FLOOR):
    slots = ORIGINAL_UPDATE(features, log_a, floor)
    return slots._replace(log_weight=torch.full_like(slots.log_weight, -math.log(log_a.shape[1])))


def a_neighbours_weight(features, log_a, floor=mixture.FLOOR):
    slots = ORIGINAL_UPDATE(features, log_a, floor)
    return slots._replace(log_weight=slots.log_weight.roll(1, dims=1))


def shares_over_slots(features, log_a, floor=mixture.FLOOR):
    "Means as sums over positions that are divided by their number, not by the slot's part of them."
    slots = ORIGINAL_UPDATE(features, log_a, floor)
    return slots._replace(mean=features.centre + slots.weight[:, :, None] * (slots.mean - features.centre))


def first_slot_first(features, log_a, floor=mixture.FLOOR):
    return ORIGINAL_UPDATE(features, log_a + torch.arange(log_a.shape[1])[:, None] / 100, floor)


def first_position_first(features, log_a, floor=mixture.FLOOR):
    return ORIGINAL_UPDATE(features, log_a + torch.arange(log_a.shape[2]) / 100, floor)


def by_division(features, log_a, floor=mixture.FLOOR):
    "The algorithm to the letter: zero divided by zero for a slot that has lost every position."
    a = log_a.exp()
    share = a / a.sum(2, keepdim=True)
    mean = share @ features.first
    variance = (share @ features.second - mean.square()).clamp_min(floor)
    return LocalMixture(features.centre + mean, variance, a.mean(2).log())


BROKEN = [
    ("equation 2", "", "log_joint", no_variance_in_the_constant),
    ("equation 2", "", "log_joint", far_from_the_centre),
    ("equation 2", "", "log_joint", no_weights),
    ("equation 5", "", "log_responsibilities", over_positions),
    ("equation 5", "", "log_responsibilities", mixture.responsibilities_as_printed),
    ("equation 5", "", "responsibilities_as_printed", as_it_should_be),
    ("section 4, slot attention", "", "log_joint", twice_the_distance),
    ("section 4, slot attention", "", "log_responsibilities", over_positions),
    ("Algorithm 2, steps 2 to 5", "", "update", added_floor),
    ("Algorithm 2, steps 2 to 5", "", "update", doubled_variance),
    ("Algorithm 2, steps 2 to 5", "", "update", equal_weights),
    ("Algorithm 2, steps 2 to 5", "", "update", shares_over_slots),
    ("Algorithm 2", "identity projections", "update", doubled_variance),
    ("Algorithm 2", "identity projections", "update", a_neighbours_weight),
    ("Algorithm 2", "identity projections", "update", shares_over_slots),
    ("Algorithm 2", "identity projections", "log_responsibilities", over_positions),
    ("Algorithm 2", "at the floor", "update", added_floor),
    ("Algorithm 2", "at the floor", "update", a_neighbours_weight),
    ("Algorithm 2", "scikit-learn", "update", added_floor),
    ("Algorithm 2", "scikit-learn", "update", equal_weights),
    ("Algorithm 2", "scikit-learn", "log_joint", no_variance_in_the_constant),
    ("Algorithm 2", "equivariant to the order", "update", first_slot_first),
    ("Algorithm 2", "equivariant to the order", "update", first_position_first),
    ("Algorithm 2", "equivariant to the order", "log_responsibilities", over_positions),
    ("Algorithm 2, dead slots", "", "update", by_division),
    ("Algorithm 2, dead slots", "", "update", equal_weights),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(mixture, BROKEN)
