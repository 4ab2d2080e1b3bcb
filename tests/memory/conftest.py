"""The profile of the property tests: no deadline, repeatable, quick enough for every run.

HYPOTHESIS_PROFILE=thorough searches twenty times as long, with new examples every time.
"""

import os

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "quick", max_examples=60, deadline=None, derandomize=True, database=None,
    suppress_health_check=QUIET,
)  # fmt: skip
settings.register_profile(
    "thorough", max_examples=2_000, deadline=None, database=None, suppress_health_check=QUIET
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
