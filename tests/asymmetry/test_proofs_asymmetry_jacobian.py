"Each proof check of the slot Jacobian's chapter goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

from disentangle_repro.nets.slots import SlotImages

sj = Chapter("asymmetry/07_slot_jacobian")

ORIGINAL = sj.names


def two_norm(decoder, slots, *, chunk=16):
    return sj.whole_jacobian(decoder, slots).square().sum((1, 5)).sqrt().movedim(3, 1)


def signed(decoder, slots, *, chunk=16):
    return sj.whole_jacobian(decoder, slots).sum((1, 5)).abs().movedim(3, 1)


def first_channel(decoder, slots, *, chunk=16):
    return ORIGINAL["slot_jacobian"](lambda s: sj.image_of(decoder, s)[:, :1], slots)


def one_order_higher(n, slots, n_outputs, seed=0):
    return ORIGINAL["generator_of_order"](n + 1, slots, n_outputs, seed)


def sigmoids(parts, alpha):
    return SlotImages((alpha.sigmoid()[:, :, None] * parts).sum(1), parts, alpha.sigmoid())


def squares(jacobian):
    return ORIGINAL["shares"](jacobian.square())


def in_absolute_units(jacobian):
    return jacobian / (jacobian.sum(1, keepdim=True) + 0.1)


def pixels_first(f, height, width):
    return ORIGINAL["pixel_by_pixel"](f, height, width)


def background_too(masks, owner, background):
    return ORIGINAL["fg_ari"](masks, owner, [])


ORIGINAL["fg_ari"] = sj.fg_ari
BROKEN = [
    ("section 6, J-ARI", "", "fg_ari", background_too),
    ("section 6, J-ARI", "", "fg_ari", lambda *masks: 0.9 * ORIGINAL["fg_ari"](*masks)),
    ("section 6, slot Jacobian", "", "slot_jacobian", two_norm),
    ("section 6, slot Jacobian", "", "slot_jacobian", signed),
    ("section 6, JIS", "", "shares", lambda jacobian: jacobian / jacobian.sum((1, 2, 3), keepdim=True)),
    ("section 6, JIS", "", "generator_of_order", one_order_higher),
    ("Definition 3.2 and JIS", "", "colour_by_colour", pixels_first),
    ("Definition 3.2 and JIS", "", "slot_jacobian", first_channel),
    ("section 6, JIS's scale", "", "shares", squares),
    ("section 6, JIS's scale", "", "slot_jacobian", signed),
    ("section 6.1, spatial broadcast", "", "shares", squares),
    ("section 6.1, spatial broadcast", "", "composed", sigmoids),
    ("section 6, invariance", "", "shares", in_absolute_units),
    ("section 6, invariance", "", "shares", lambda j: ORIGINAL["shares"](j * torch.tensor([[[1]], [[2]], [[3]]]))),
    ("section 6, units of slots", "", "shares", squares),
    ("section 6, turned slots", "", "slot_jacobian", two_norm),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sj, BROKEN)
