"""A trial: a recorded session asked again of a real server, what was predicted beside what was measured.

Pure values and sums. `engines` plays the session, `reports` shows the result.
"""

from prefixguard.trial.evidence import Evidence, Shown, Slot, Witness
from prefixguard.trial.fit import Fit, Point, fit_points
from prefixguard.trial.judging import judge
from prefixguard.trial.outcome import EngineFacts, MeasuredTurn, Sample, Skipped, Trial, TrialVerdict

__all__ = [
    "EngineFacts",
    "Evidence",
    "Fit",
    "MeasuredTurn",
    "Point",
    "Sample",
    "Shown",
    "Skipped",
    "Slot",
    "Trial",
    "TrialVerdict",
    "Witness",
    "fit_points",
    "judge",
]
