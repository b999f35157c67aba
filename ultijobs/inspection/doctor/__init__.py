"""What is wrong with a queue and its database: facts are read once, then each check looks at them by itself."""

from ultijobs.inspection.doctor.examine import CHECKS, Checked, Diagnosis, diagnose, examine
from ultijobs.inspection.doctor.facts import Facts, Thresholds
from ultijobs.inspection.doctor.symptoms import Check, Symptom

__all__ = ["CHECKS", "Check", "Checked", "Diagnosis", "Facts", "Symptom", "Thresholds", "diagnose", "examine"]
