"""The host's side of the lab: builds what a guest needs, boots guests, judges what they report."""

from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
REPOSITORY = LAB.parent.parent


class LabError(Exception):
    """Something outside the scenarios is wrong; the message is for the person who started the lab."""
