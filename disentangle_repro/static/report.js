// Sorting, filters and search of the report's tables.
(() => {
const filters = [...document.querySelectorAll("select[data-filter]")];
const fits = row => filters.every(f => !f.value || row.dataset[f.dataset.filter] === f.value);
function readAddress() {
  const chosen = new URLSearchParams(location.hash.slice(1));
  for (const f of filters)
    if ([...f.options].some(o => o.value === chosen.get(f.dataset.filter))) f.value = chosen.get(f.dataset.filter);
}
function writeAddress() {
  const chosen = new URLSearchParams(filters.filter(f => f.value).map(f => [f.dataset.filter, f.value]));
  history.replaceState(null, "", chosen.size ? "#" + chosen : location.pathname + location.search);
}
function makeSortable(table) {
  const grid = new DataTable(table, {
    paging: false, order: [], autoWidth: false,
    layout: {topStart: "search", topEnd: "info", bottomStart: null, bottomEnd: null},
    language: {search: "Search", info: "_TOTAL_ rows", infoEmpty: "no rows", infoFiltered: "of _MAX_",
               emptyTable: "no rows", zeroRecords: "no row fits"},
  });
  grid.search.fixed("filters", (text, data, index) => fits(grid.row(index).node())).draw();
  for (const f of filters) f.addEventListener("change", () => { grid.draw(); writeAddress(); });
  addEventListener("hashchange", () => { readAddress(); grid.draw(); });
}

const value = (row, column) => row.cells[column].dataset.order ?? row.cells[column].textContent.trim();
const collator = new Intl.Collator("en", {numeric: true});
const number = text => text === "" ? -Infinity : Number(text);
const inOrder = (a, b) => number(a) - number(b) || collator.compare(a, b);
function sortBy(heading, column) {
  const body = heading.closest("table").tBodies[0];
  const down = heading.ariaSort === "ascending";
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...body.rows].sort((a, b) => inOrder(value(a, column), value(b, column)));
  body.append(...(down ? rows.reverse() : rows));
}
function nameCells(table) {
  const names = [...table.tHead.rows[0].cells].map(heading => heading.textContent);
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.heading ??= names[i]; });
}
function makeLean(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = Object.assign(document.createElement("button"), {type: "button", className: "sort"});
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(heading, column));
    heading.append(button);
  });
}

readAddress();
document.querySelectorAll("table.prose").forEach(nameCells);
if (window.DataTable) document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll("table.lean").forEach(makeLean);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
})();
