"""Host side of the lab: builds what guests need, boots them, and evaluates their results."""

from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
REPOSITORY = LAB.parent.parent


class LabError(Exception):
    """An error outside of the scenarios, with a message for the user of the lab."""
