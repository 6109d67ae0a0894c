// The choice of models and of a setting on a page that compares models.
(() => {
const form = document.querySelector(".choice"), setting = document.querySelector("#setting");
const boxes = [...form.querySelectorAll("input")], sections = [...document.querySelectorAll("main section")];
const items = [...document.querySelectorAll("[data-model]")];
const has = box => items.some(i => i.dataset.model === box.value && i.dataset.setting === setting.value);
function show() {
  const chosen = boxes.filter(b => b.checked).map(b => b.value);
  for (const i of items) i.hidden = !(chosen.includes(i.dataset.model) && i.dataset.setting === setting.value);
  for (const b of boxes) b.parentElement.hidden = !has(b);
  for (const f of form.querySelectorAll("fieldset")) f.hidden = !f.querySelector("label:not([hidden])");
  for (const s of sections) s.hidden = !s.querySelector("[data-model]:not([hidden])");
  const seen = sections.filter(s => !s.hidden).length;
  document.querySelector("#nothing").hidden = seen > 0;
  document.querySelector("#bare").hidden = seen !== 1;
  const [head, ...rows] = document.querySelectorAll("#scores tr");
  const numbers = column => rows.some(r => !r.hidden && !r.cells[column].classList.contains("quiet"));
  [...head.cells].forEach((_, c) => { for (const r of [head, ...rows]) r.cells[c].hidden = !numbers(c); });
}
function keep() {
  show();
  const chosen = boxes.filter(b => b.checked && has(b)).map(b => b.value);
  history.replaceState(null, "", "#" + new URLSearchParams({on: setting.value, models: chosen.join()}));
}
function check(fits) { for (const b of boxes) b.checked = fits(b); }
function read() {
  const kept = new URLSearchParams(location.hash.slice(1)), models = kept.get("models");
  if ([...setting.options].some(o => o.value === kept.get("on"))) setting.value = kept.get("on");
  if (models !== null) return check(b => models.split(",").includes(b.value));
  const first = boxes.filter(has).slice(0, 3);
  check(b => first.includes(b));
}
form.addEventListener("change", keep);
form.addEventListener("submit", event => event.preventDefault());
for (const [id, value] of [["all", true], ["none", false]])
  document.getElementById(id).addEventListener("click", () => { check(() => value); keep(); });
addEventListener("hashchange", () => { read(); show(); });
form.hidden = false;
read();
show();
})();
