"""The page of a report in a real browser: no errors, tables sort and filter, plots zoom, large ones open soon."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.neff.samples import add_relu
from tests.onnx_models import mixed_model
from tvm_neuron import relay, report
from tvm_neuron.neff import Pipeline
from tvm_neuron.profile import Report, make_report
from tvm_neuron.program import parse_program

pytestmark = pytest.mark.browser
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
READY = "window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle"
DRAWN = """plots => {
  const inside = (node) => [...node.querySelectorAll("canvas"),
    ...[...node.querySelectorAll("*")].filter((each) => each.shadowRoot).flatMap((each) => inside(each.shadowRoot))];
  const colors = (canvas) => {
    const data = canvas.getContext("2d")?.getImageData(0, 0, canvas.width || 1, canvas.height || 1).data;
    return data ? new Set(new Uint32Array(data.buffer)).size : 0;
  };
  return plots.map((plot) => inside(plot).some((canvas) => colors(canvas) > 4));
}"""
TIMES = 12_500
NODES = "document.querySelectorAll('*').length"
MARKS = """[...Bokeh.documents[0]._all_models.values()].filter((model) => model.type == "ColumnDataSource")
  .map((source) => source.get_length() ?? 0).reduce((sum, each) => sum + each, 0)"""
# y = relu(x + x), again and again, through rings of memory
LARGE = """
tensor 0 input "x" 4x8 float32
tensor 1 weight "w" 4x8 float32
tensor 2 output "y" 4x8 float32
origin 0 Add "sum/add"
origin 1 Relu "sum/relu"
loop TIMES {
  dma_copy target=sbuf.float32{p=0;n=4;at=0+(+0+32*i0)%1024;dims=1*8} source=dram.float32{t=0;at=0;dims=8*4,1*8} ring=0 origin=0
  tensor_tensor result=sbuf.float32{p=0;n=4;at=2048+(+0+32*i0)%1024;dims=1*8} left=sbuf.float32{p=0;n=4;at=0+(+0+32*i0)%1024;dims=1*8} right=sbuf.float32{p=0;n=4;at=0+(+0+32*i0)%1024;dims=1*8} op=add wait=dma0>=1+1*i0^TIMES origin=0
  activation result=sbuf.float32{p=0;n=4;at=4096+(+0+32*i0)%1024;dims=1*8} source=sbuf.float32{p=0;n=4;at=2048+(+0+32*i0)%1024;dims=1*8} scale=1.0 bias=0.0 function=relu wait=pool>=1+1*i0^TIMES origin=1
  dma_copy target=dram.float32{t=2;at=0;dims=8*4,1*8} source=sbuf.float32{p=0;n=4;at=4096+(+0+32*i0)%1024;dims=1*8} ring=1 wait=act>=1+1*i0^TIMES origin=1
}
"""  # noqa: E501


def large_report(times: int) -> Report:
    """Of a program of four instructions, so many times."""
    program = parse_program(LARGE.replace("TIMES", str(times)))
    return make_report((), [Pipeline.of(replace(add_relu(), program=program))])


@contextmanager
def running_browser() -> Iterator[Any]:
    """Without a window, until the block ends."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert path, f"none of {', '.join(BROWSERS)} is installed"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as found:
        yield found


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """`opened(file)` gives the tab that shows it; what it complains of, or loads from elsewhere, fails the test."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []
    tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda sent: None if sent.url.startswith(("file:", "data:")) else wrong.append(sent.url))

    def show(file: Path) -> Any:
        tab.goto(file.as_uri())
        tab.wait_for_function(READY, timeout=120_000)
        return tab

    yield show
    tab.close()
    assert not wrong


@pytest.fixture(scope="module")
def mixed_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mod, params = relay.frontend.from_onnx(mixed_model())
    file = tmp_path_factory.mktemp("page") / "mixed.html"
    file.write_text(report(relay.build(mod, target="neuron", params=params)).to_html("mixed"))
    return file


def column(tab: Any, table: str, at: int) -> list[str]:
    return tab.eval_on_selector_all(
        f"#{table} tbody tr:not([hidden])", f"rows => rows.map(row => row.cells[{at}].textContent)"
    )


def test_it_fits_into_its_window_and_is_drawn(opened: Any, mixed_page: Path) -> None:
    tab = opened(mixed_page)
    assert tab.title() == "mixed"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
    assert tab.locator(".plot").count() == 3 + 2 * 4
    assert all(tab.eval_on_selector_all(".plot", DRAWN))
    assert tab.pdf().startswith(b"%PDF")  # it can be printed


def test_tables_sort_and_filter(opened: Any, mixed_page: Path) -> None:
    tab = opened(mixed_page)
    heading = tab.locator("#layers th").filter(has_text="DRAM MB")
    heading.click()
    sizes = [float(text) for text in column(tab, "layers", 7)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 1
    heading.click()
    assert [float(text) for text in column(tab, "layers", 7)] == sorted(sizes)
    tab.locator("#layers th").filter(has_text="operator").click()
    names = column(tab, "layers", 0)
    assert names == sorted(names, key=str.lower)
    tab.locator('input[data-for="placement"]').fill("cpu topk")
    assert column(tab, "placement", 1) == ["TopK"]
    assert tab.locator("#placement-shown").text_content().startswith("1 of ")
    tab.locator('input[data-for="placement"]').fill("")
    assert len(column(tab, "placement", 1)) == 13


def test_all_plots_of_a_core_zoom_together(opened: Any, mixed_page: Path) -> None:
    tab = opened(mixed_page)
    shared = "Bokeh.documents[0].get_model_by_name('time 0')"
    before = tab.evaluate(f"[{shared}.start, {shared}.end]")
    plot = tab.locator(".plot").nth(3)
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
    tab.mouse.wheel(0, -300)
    tab.wait_for_function(f"{shared}.end - {shared}.start < {0.9 * (before[1] - before[0])}")
    after = tab.evaluate(f"[{shared}.start, {shared}.end]")
    assert before[0] <= after[0] < after[1] <= before[1]


def test_fifty_thousand_instructions(opened: Any, tmp_path: Path) -> None:
    """The page does not grow with them, but for what its plots hold; what opening it takes: `benchmarks.page_time`."""
    nodes, marks = {}, {}
    for times in (TIMES // 10, TIMES):
        made = large_report(times)
        assert made.instructions == 4 * times
        file = tmp_path / f"{times}.html"
        file.write_text(made.to_html())
        tab = opened(file)
        nodes[times], marks[times] = tab.evaluate(NODES), tab.evaluate(MARKS)
    assert nodes[TIMES] == nodes[TIMES // 10]
    assert TIMES < marks[TIMES] <= 10 * marks[TIMES // 10]
    assert file.stat().st_size < 4e6
