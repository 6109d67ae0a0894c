"Small stand-ins for packages that released code imports and that no number depends on."

import sys
from types import ModuleType

import torch


class LightningModule(torch.nn.Module):
    "What the released training steps need of it: an optimiser is stepped by whoever made the stand-in."

    global_step, device = 1, torch.device("cpu")

    def log(self, name, value, **options):
        self.logged = {**getattr(self, "logged", {}), name: torch.as_tensor(value).detach().clone()}


def module(name: str, **attributes) -> ModuleType:
    made = sys.modules.setdefault(name, ModuleType(name))
    for key, value in attributes.items():
        setattr(made, key, value)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(module(parent), child, made)
    return made


class Anything:
    "A class that can be called, subclassed and asked for anything."

    def __init__(self, *_, **__): ...

    def __getattr__(self, name):
        return Anything()

    def __call__(self, *_, **__):
        return Anything()


def install() -> None:
    module("pytorch_lightning", LightningModule=LightningModule, LightningDataModule=object)
    module("torchvision.transforms", InterpolationMode=Anything())
    module("torchvision.utils", save_image=lambda *_, **__: None)
    module("omegaconf", OmegaConf=Anything, DictConfig=dict, ListConfig=list)
    module("wandb")
    module("hydra")
    module("ignite.engine", Engine=Anything, Events=Anything)
    module("ignite.contrib.handlers", ProgressBar=Anything)
