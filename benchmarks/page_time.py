"""What a browser takes to open the page of a report, beside a page of a tenth of the instructions.

`python -m benchmarks.page_time`, with the extra `browser` and a chromium. Seconds of the tab's processor time.
"""

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.browser.test_page import READY, TIMES, large_report, running_browser

_REPEATS = 5


def seconds(browser: Any, file: Path) -> float:
    """Of opening it a second time in a tab."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable")
    spent = []
    for _ in range(2):
        tab.goto(file.as_uri())
        tab.wait_for_function(READY, timeout=120_000)
        metrics = {row["name"]: row["value"] for row in session.send("Performance.getMetrics")["metrics"]}
        spent.append(metrics["ProcessTime"])
    tab.close()
    return spent[1] - spent[0]


def main() -> None:
    """Prints the medians, in turns."""
    found: dict[int, list[float]] = {TIMES // 10: [], TIMES: []}
    with TemporaryDirectory() as folder, running_browser() as browser:
        for times in found:
            Path(folder, f"{times}.html").write_text(large_report(times).to_html())
        for _ in range(_REPEATS):
            for times, samples in found.items():
                samples.append(seconds(browser, Path(folder, f"{times}.html")))
    for times, samples in found.items():
        print(f"{4 * times:,} instructions: {median(samples):.2f} s, of {min(samples):.2f} to {max(samples):.2f}")


if __name__ == "__main__":
    main()
