"""All experiments by name. The module of an experiment is imported on demand.

Source: spec/experiments.md, section 1 (EXP-29).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from secagg_spec.arithmetic import validate
from secagg_spec.experiments.experiment import Data, Experiment

_HERE = "secagg_spec.experiments"
MODULES: Mapping[str, str] = MappingProxyType(
    {
        "basecagg-fig1": f"{_HERE}.basecagg_fig1",
        "basecagg-fig2": f"{_HERE}.basecagg_fig2",
        "basecagg-theorem1": f"{_HERE}.basecagg_theorem1",
        "basa-table1": f"{_HERE}.basa_training",
        "basa-fig2": f"{_HERE}.basa_training",
        "basa-fig3": f"{_HERE}.basa_scalability",
        "basa-fig4": f"{_HERE}.basa_training",
        "heterosag-fig5": f"{_HERE}.heterosag_quantisation",
        "heterosag-fig6": f"{_HERE}.heterosag_attacks",
        "heterosag-fig9": f"{_HERE}.heterosag_quantisation",
        "heterosag-fig10": f"{_HERE}.heterosag_labels",
        "heterosag-fig11": f"{_HERE}.heterosag_quantisation",
        "heterosag-fig13": f"{_HERE}.heterosag_attacks",
        "heterosag-theorem2": f"{_HERE}.heterosag_theorem2",
        "multi-round-fig1": f"{_HERE}.multi_round_inversion",
        "multi-round-fig3": f"{_HERE}.multi_round_metrics",
        "multi-round-fig4": f"{_HERE}.multi_round_metrics",
        "multi-round-fig5": f"{_HERE}.multi_round_metrics",
        "multi-round-fig6": f"{_HERE}.multi_round_accuracy",
        "multi-round-table1": f"{_HERE}.multi_round_metrics",
        "multi-round-theorem2": f"{_HERE}.multi_round_theorem2",
    }
)
"""The module of each experiment; its ``EXPERIMENTS`` holds the experiment."""
_TIMES = "the costs of the protocols, the time of training, and how many steps there are"
_STEPS = "how many epochs and rounds there are"
_ENDS = "the ends of the quantiser's range, r1 and r2"
_WIDTH = "the quantiser, and how many rounds there are"
CHOSEN: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("basecagg-fig1", "basecagg-fig2"), _STEPS),
        **dict.fromkeys(("basa-table1", "basa-fig2", "basa-fig4"), _TIMES),
        **dict.fromkeys(("heterosag-fig5", "heterosag-fig9", "heterosag-fig11"), _ENDS),
        **dict.fromkeys(("heterosag-fig6", "heterosag-fig13"), _WIDTH),
        "multi-round-fig1": "the images, the network, and the numbers of users and rounds",
        "multi-round-fig6": "the data, the network, and how it is trained",
    }
)
"""What the presets `paper` of experiments have that is not the paper's; it may be why a statement fails (EXP-31)."""


def load(name: str) -> Experiment:
    """Return an experiment.

    Raises
    ------
    ParameterError
        No experiment has this name; the message names similar ones (EXP-29).
    """
    return found_in(MODULES[validate.one_of("experiment", name, tuple(MODULES))], name)


def found_in(module: str, name: str) -> Experiment:
    """Return the experiment of this name in a module."""
    experiments: tuple[Experiment, ...] = import_module(module).EXPERIMENTS
    return next(one for one in experiments if one.name == name)


def settings(experiment: Experiment, preset: str) -> Data:
    """Return the settings of a preset.

    Raises
    ------
    ParameterError
        No preset has this name; the message names similar ones (EXP-29).
    """
    return experiment.presets[validate.one_of(f"preset of {experiment.name}", preset, tuple(experiment.presets))]
