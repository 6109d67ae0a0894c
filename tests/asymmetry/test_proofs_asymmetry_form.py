"Each proof check on interaction and on the form of generators goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

from disentangle_repro.asymmetry.interaction import cross_terms, generator_of_order, interaction_indices, slot_networks

form = Chapter("asymmetry/02_form")
interaction = Chapter("asymmetry/01_interaction")


def one_order_up(n, slots, n_outputs, seed=0):
    return generator_of_order(n + 1, slots, n_outputs, seed)


def first_powers_only(groups, n_latents, order):
    index = interaction_indices(groups, n_latents, order)
    return index[(index.diff(dim=1) > 0).all(1)]


def sum_of_latents(z, indices):
    return z[..., indices].sum(-1)


def without_products(f, z, order):
    return interaction.derivatives(f, z, max(order, 2))


def never_bent(slots, sizes, seed):
    straight = sizes == [len(slot) for slot in slots]
    return (lambda z: [z[list(slot)] for slot in slots]) if straight else slot_networks(slots, sizes, seed)


def no_cut(slot):
    return []


def repeated(tensor, slot, order):
    return tensor[(..., *[list(slot) * 2] * order)]


def as_many_as_columns(matrices, tolerance=1e-8):
    return torch.full((len(matrices),), matrices.shape[-1])


def one_degree_up(slots, n, n_outputs, seed):
    return cross_terms(slots, n + 1, n_outputs, seed)


def nothing_peeled(f, z, slots, n):
    return f


def lines_alone(f, anchor, slots):
    return lambda z: f(z)


def no_powers(points, slots, n):
    return form_columns(points, slots, 1)


def angle_with_a_jump(z):
    return (torch.atan2(z[1], z[0]) - torch.atan2(z[3], z[2]))[None]


def both_arms(z):
    return z[1:].clamp(min=0) ** 3


def always(inside):
    return True


form_columns, DERIVATIVES = form.form_columns, form.derivatives

BROKEN_INTERACTION = [
    ("equation B.4", "", "monomials", sum_of_latents),
    ("equation B.6", "", "interaction_indices", first_powers_only),
    ("Definition 3.2", "", "generator_of_order", one_order_up),
    ("Definition 3.3", "", "generator_of_order", one_order_up),
    ("Definition 3.4", "", "generator_of_order", one_order_up),
    ("Definition 4.1", "", "slot_networks", never_bent),
    ("Assumption 3.5", "", "interaction_tensor", without_products),
    ("section 4.1", "destroy", "splits", no_cut),
    ("section 4.1", "every basis", "derivative_columns", repeated),
    ("Definition A.8", "", "rank", as_many_as_columns),
    ("Definition A.9", "", "rank", as_many_as_columns),
    ("Definition 4.2", "", "cross_terms", one_degree_up),
    ("appendix H.1", "random generator", "rank", as_many_as_columns),
    ("appendix H.1", "log p", "interaction_tensor", without_products),
]

BROKEN_FORM = [
    ("equation C.12", "", "cross_terms", one_degree_up),
    ("Lemma C.4", "", "peel", nothing_peeled),
    ("Lemma C.5", "", "sum_over_slots", lines_alone),
    ("Lemma C.5", "", "derivatives", lambda f, z, order: DERIVATIVES(f, 0 * z, order)),
    ("Theorem C.2", "recovered", "sum_over_slots", lines_alone),
    ("Theorem C.2", "values", "form_columns", no_powers),
    ("Example C.6", "", "angle_between", angle_with_a_jump),
    ("Remark A.17", "", "is_connected", always),
    ("Example C.7", "", "right_arm", both_arms),
]

test_a_broken_order_is_seen, test_no_check_of_orders_is_left_unbroken = proof_tests(interaction, BROKEN_INTERACTION)
test_a_broken_form_is_seen, test_no_form_check_is_left_unbroken = proof_tests(form, BROKEN_FORM)

both = Chapter("asymmetry/02_form", "asymmetry.interaction")  # generators and form take the same indices
ON_BOTH_SIDES = [("Theorem C.2", "values", "interaction_indices", first_powers_only)]
test_a_formula_broken_on_both_sides_is_seen, _ = proof_tests(both, ON_BOTH_SIDES)
