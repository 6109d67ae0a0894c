"Each proof check of the slot Jacobian's chapter goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests, takes_long

from disentangle_repro.nets.slots import SlotImages

sj = Chapter("asymmetry/07_slot_jacobian")

ORIGINAL = sj.names


def only_what_it_draws(mask, part, image, part_slope, alpha_slope):
    return mask * part_slope


def towards_nothing(mask, part, image, part_slope, alpha_slope):
    return mask * (part_slope + alpha_slope * part)


def as_if_alone(mask, part, image, part_slope, alpha_slope):
    return part_slope + alpha_slope * (part - image)


def first_few(size, directions, chunk):
    return ORIGINAL["sum_over_directions"](size, directions[:chunk], chunk)


def without_norm(decoder, slot):
    lifted = decoder.lift(slot)
    return [layer.across.key_and_value(lifted) for layer in decoder.transformer.layers]


def keys_for_values(decoder, waves, offered):
    return ORIGINAL["pixel_colours"](decoder, waves, [torch.cat(each.chunk(2, dim=2)[::-1], dim=2) for each in offered])


def through_the_last_layer_only(decoder, waves, offered, slopes):
    return ORIGINAL["pixel_jacobian"](decoder, waves, offered, [*(0 * slope for slope in slopes[:-1]), slopes[-1]])


def two_norm(decoder, slots, *, chunk=16):
    return sj.whole_jacobian(decoder, slots).square().sum((1, 5)).sqrt().movedim(3, 1)


def signed(decoder, slots, *, chunk=16):
    return sj.whole_jacobian(decoder, slots).sum((1, 5)).abs().movedim(3, 1)


def largest(decoder, slots, *, chunk=16):
    return sj.whole_jacobian(decoder, slots).abs().amax((1, 5)).movedim(3, 1)


def already_normalised(decoder, slots, *, chunk=16):
    return ORIGINAL["shares"](ORIGINAL["slot_jacobian"](decoder, slots))


def first_channel(decoder, slots, *, chunk=16):
    return ORIGINAL["slot_jacobian"](lambda s: sj.image_of(decoder, s)[:, :1], slots)


def softmax(jacobian):
    return jacobian.softmax(1)


def by_the_largest(jacobian):
    return jacobian / jacobian.amax(1, keepdim=True)


def over_the_image(jacobian):
    return jacobian / jacobian.sum((1, 2, 3), keepdim=True)


def squares(jacobian):
    return ORIGINAL["shares"](jacobian.square())


def in_absolute_units(jacobian):
    return jacobian / (jacobian.sum(1, keepdim=True) + 0.1)


def weighed_by_place(jacobian):
    return ORIGINAL["shares"](jacobian * torch.arange(1, 1 + jacobian.shape[1])[:, None, None])


def numbered(true_masks, predicted_masks, background):
    return (true_masks == predicted_masks).double().mean().item()


def channels_first(f, height, width):
    return ORIGINAL["colour_by_colour"](f, height, width)


def pixels_first(f, height, width):
    return ORIGINAL["pixel_by_pixel"](f, height, width)


def one_order_higher(n, slots, n_outputs, seed=0):
    return ORIGINAL["generator_of_order"](n + 1, slots, n_outputs, seed)


def sigmoids(parts, alpha):
    masks = alpha.sigmoid()
    return SlotImages((masks[:, :, None] * parts).sum(1), parts, masks)


def background_too(masks, owner, background):
    return ORIGINAL["fg_ari"](masks, owner, [])


def dead_ones_too(masks, owner, background):
    return ORIGINAL["fg_ari"](masks.clamp(min=1 - (masks == 0).int()), owner, background)


def without_chance(masks, owner, background):
    return 0.9 * ORIGINAL["fg_ari"](masks, owner, background)


ORIGINAL["fg_ari"] = sj.fg_ari
BROKEN = [
    ("section 6, J-ARI", "", "fg_ari", background_too),
    ("section 6, J-ARI", "", "fg_ari", dead_ones_too),
    ("section 6, J-ARI", "", "fg_ari", without_chance),
    ("section 6, J-ARI", "", "fg_ari", numbered),
    ("section 6, spatial broadcast", "", "sheet_slope", only_what_it_draws),
    ("section 6, spatial broadcast", "", "sheet_slope", towards_nothing),
    ("section 6, spatial broadcast", "", "sheet_slope", as_if_alone),
    ("section 6, slot Jacobian", "", "sheet_slope", towards_nothing),
    ("section 6, slot Jacobian", "", "sum_over_directions", first_few),
    takes_long("section 6, slot Jacobian", "", "keys_and_values", without_norm),
    takes_long("section 6, slot Jacobian", "", "pixel_colours", keys_for_values),
    takes_long("section 6, slot Jacobian", "", "pixel_jacobian", through_the_last_layer_only),
    ("section 6, slot Jacobian", "", "slot_jacobian", two_norm),
    ("section 6, slot Jacobian", "", "slot_jacobian", signed),
    ("section 6, JIS", "", "shares", softmax),
    ("section 6, JIS", "", "shares", over_the_image),
    ("section 6, JIS", "", "shares", by_the_largest),
    ("section 6, JIS", "", "pixel_by_pixel", channels_first),
    ("section 6, JIS", "", "generator_of_order", one_order_higher),
    ("section 6, JIS", "", "fg_ari", numbered),
    ("Definition 3.2 and JIS", "", "colour_by_colour", pixels_first),
    ("Definition 3.2 and JIS", "", "slot_jacobian", first_channel),
    ("Definition 3.2 and JIS", "", "generator_of_order", one_order_higher),
    ("section 6, JIS's scale", "", "shares", squares),
    ("section 6, JIS's scale", "", "shares", by_the_largest),
    ("section 6, JIS's scale", "", "slot_jacobian", largest),
    ("section 6, JIS's scale", "", "slot_jacobian", signed),
    ("section 6.1, spatial broadcast", "", "composed", sigmoids),
    ("section 6.1, spatial broadcast", "", "shares", squares),
    ("section 6, invariance", "", "shares", in_absolute_units),
    ("section 6, invariance", "", "shares", weighed_by_place),
    ("section 6, invariance", "", "fg_ari", numbered),
    ("section 6, units of slots", "", "slot_jacobian", already_normalised),
    ("section 6, units of slots", "", "shares", squares),
    ("section 6, turned slots", "", "slot_jacobian", two_norm),
    ("section 6, turned slots", "", "slot_jacobian", largest),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(sj, BROKEN)
