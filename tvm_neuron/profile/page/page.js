"use strict";
// Tables: a click on a heading sorts by that column, the other way round by the next click; a field above filters rows.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const value = (row, at) => {
    const cell = row.cells[at];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  table.tHead.rows[0].querySelectorAll("th").forEach((heading, at) => {
    heading.tabIndex = 0;
    const sort = () => {
      const isNumber = heading.classList.contains("n");
      const first = isNumber ? "descending" : "ascending";
      const order = heading.getAttribute("aria-sort") === first ? (isNumber ? "ascending" : "descending") : first;
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [value(one, at), value(other, at)];
        return sign * (isNumber ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
      });
      body.append(...rows);
    };
    heading.addEventListener("click", sort);
    heading.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
  const field = document.querySelector(`input.filter[data-for="${table.id}"]`);
  field?.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    document.getElementById(`${table.id}-shown`).textContent = `${shown} of ${body.rows.length}`;
  });
}
