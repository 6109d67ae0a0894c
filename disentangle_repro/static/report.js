// Sorting, filters and search of the report's tables.
(() => {
const filters = [...document.querySelectorAll("select[data-filter]")];
const search = document.querySelector("input[type=search]");
const fits = row => filters.every(f => !f.value || row.dataset[f.dataset.filter] === f.value)
  && (!search || row.textContent.toLowerCase().includes(search.value.toLowerCase()));
function show() {
  if (search) for (const row of document.querySelectorAll("table.sortable tbody tr")) row.hidden = !fits(row);
}
function readAddress() {
  const chosen = new URLSearchParams(location.hash.slice(1));
  for (const f of filters)
    if ([...f.options].some(o => o.value === chosen.get(f.dataset.filter))) f.value = chosen.get(f.dataset.filter);
  show();
}
function writeAddress() {
  const chosen = new URLSearchParams(filters.filter(f => f.value).map(f => [f.dataset.filter, f.value]));
  history.replaceState(null, "", chosen.size ? "#" + chosen : location.pathname + location.search);
}
for (const f of filters) f.addEventListener("change", () => { show(); writeAddress(); });
search?.addEventListener("input", show);
addEventListener("hashchange", readAddress);

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
function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells], names = headings.map(heading => heading.textContent);
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.heading = names[i]; });
  headings.forEach((heading, column) => {
    const button = Object.assign(document.createElement("button"), {type: "button", className: "sort"});
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(heading, column));
    heading.append(button);
  });
}

document.querySelectorAll("table.sortable").forEach(makeSortable);
readAddress();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
})();
