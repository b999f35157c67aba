"""The cockpit: what is stuck, since when, why, who holds it, what to press. Stands on `ultijobs.inspection` alone."""
