"""What a role answers on its metrics port."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.scenes import WorkerProcess

Samples = dict[tuple[str, tuple[str, ...]], float]


async def port_of(role: WorkerProcess) -> int:
    return int((await role.said("jobs.metrics.serving"))["port"])


async def scraped(port: int) -> Samples:
    """Every sample by its name and its label values, in the order of the label names."""
    status, text = await asyncio.to_thread(_get, f"http://127.0.0.1:{port}/metrics")
    assert status == 200
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def health(port: int) -> tuple[int, dict[str, Any]]:
    status, text = await asyncio.to_thread(_get, f"http://127.0.0.1:{port}/health")
    return status, json.loads(text)


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
