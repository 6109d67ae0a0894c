// The explorer: two runs side by side. A sheet holds every decoded image of a run; one piece of it is drawn at a time.
(() => {
const runs = new Map(JSON.parse(document.getElementById("sheets").textContent).map(run => [run.id, run]));
const form = document.querySelector(".explorer"), images = document.getElementById("images");
const sides = ["left", "right"].map(name => ({panel: document.getElementById(`${name}-run`), choice: document.getElementById(name)}));
const part = (side, name) => side.panel.querySelector(`.${name}`);
const make = (tag, values = {}, ...inside) => {
  const made = Object.assign(document.createElement(tag), values);
  made.append(...inside);
  return made;
};
const chosen = () => Number(images.querySelector(":checked")?.value ?? 0);
const number = value => value.toFixed(2).replace("-", "−");
const percent = share => `${Math.round(100 * share)}%`;

function draw(canvas, side, column, row, label) {
  const {size} = side.run;
  canvas.width = canvas.height = size;
  if (side.sheet.complete && side.sheet.naturalWidth)
    canvas.getContext("2d").drawImage(side.sheet, column * size, row * size, size, size, 0, 0, size, size);
  if (label) canvas.setAttribute("aria-label", label);
}
const kinds = {
  latents: {
    // in a sheet: a column per latent; of each image as many rows as a latent has values
    still(run, image) { const [k, step] = run.start[image]; return this.moved(run, image, [k, step]); },
    small(run, image) { return this.still(run, image); },
    moved: (run, image, [k, step]) => [run.latents[k].column, image * run.steps + step],
    words(run, image, [k, step]) {
      const latent = run.latents[k];
      return `${latent.name} is ${number(latent.values[step])} instead of ${number(latent.own[image])}`;
    },
    unmoved(run, image) {
      const [k, , off] = run.start[image];
      return `as encoded, to ${Math.max(1, Math.ceil(100 * off))}% of the range of ${run.latents[k].name}`;
    },
    control(side, k) {
      const {run} = side, latent = run.latents[k];
      const slider = make("input", {type: "range", min: 0, max: run.steps - 1, step: 1});
      slider.addEventListener("input", () => { side.moved = [k, slider.valueAsNumber]; show(side); });
      const cells = latent.nmi.map((value, s) => {
        const cell = make("span", {textContent: value.toFixed(2).slice(value < 0.995 ? 1 : 0), title: run.sources[s]});
        cell.style.setProperty("--nmi", percent(value));
        return cell;
      });
      const strip = make("span", {className: "strip", role: "img"}, ...cells);
      strip.setAttribute("aria-label", `NMI of ${latent.name}: ` + latent.nmi.map((v, s) => `${run.sources[s]} ${number(v)}`).join(", "));
      const best = `${run.sources[latent.best]} ${number(latent.nmi[latent.best])}`;
      const text = latent.active ? `${best}, ${percent(latent.share)} of the row` : "inactive";
      return make("li", {className: latent.active ? "" : "inactive"},
        make("label", {}, make("span", {textContent: latent.name}), slider), make("output"), strip,
        make("span", {className: "best", textContent: text}));
    },
    update(side, item, k, image) {
      const latent = side.run.latents[k], slider = item.querySelector("input"), moved = side.moved?.[0] === k;
      slider.value = moved ? side.moved[1] : latent.stop[image];
      item.querySelector("output").textContent = number(moved ? latent.values[side.moved[1]] : latent.own[image]);
      slider.setAttribute("aria-valuetext", moved ? number(latent.values[side.moved[1]]) : `as encoded, ${number(latent.own[image])}`);
    },
  },
  slots: {
    // in a sheet: of each image a row of the decoded image with all slots and without each, and one of the image and masks
    still: (run, image) => [0, 2 * image],
    small: (run, image) => [0, 2 * image + 1],
    moved: (run, image, [k]) => [k + 1, 2 * image],
    words: (run, image, [k]) => `without slot ${k + 1}`,
    unmoved: () => "all slots",
    control(side, k) {
      const box = make("input", {type: "checkbox", checked: true}), mask = make("canvas", {role: "img"});
      box.addEventListener("change", () => { side.moved = box.checked ? null : [k]; show(side); });
      return make("li", {className: "slot"}, make("label", {}, box, make("span", {textContent: `slot ${k + 1}`})), mask);
    },
    update(side, item, k, image) {
      item.querySelector("input").checked = side.moved?.[0] !== k;
      draw(item.querySelector("canvas"), side, k + 1, 2 * image + 1, `The pixels of slot ${k + 1}`);
    },
  },
};

function show(side) {
  const {run, moved} = side, kind = kinds[run.kind], image = Math.min(chosen(), run.images - 1);
  const named = `Image ${image + 1} decoded by ${run.name}`, still = kind.unmoved(run, image);
  const words = moved ? kind.words(run, image, moved) : still;
  draw(part(side, "still"), side, ...kind.still(run, image), `${named}: ${still}`);
  draw(part(side, "moved"), side, ...(moved ? kind.moved(run, image, moved) : kind.still(run, image)), `${named}: ${words}`);
  part(side, "still-words").textContent = still;
  part(side, "words").textContent = words;
  [...part(side, "moves").children].forEach((item, k) => kind.update(side, item, k, image));
}
function open(side) {
  const run = side.run = runs.get(side.choice.value), sheet = side.sheet = new Image();
  side.moved = null;
  part(side, "name").textContent = run.title;
  part(side, "name").href = run.page;
  part(side, "scores").textContent = `${run.group}. ${run.scores}`;
  part(side, "sources").replaceChildren(make("div", {}, ...run.sources.map(textContent => make("span", {textContent}))));
  const moves = Array.from({length: run.moves}, (_, k) => kinds[run.kind].control(side, k));
  part(side, "moves").replaceChildren(...moves);
  sheet.addEventListener("load", () => { if (side.sheet === sheet) { show(side); preview(); } });
  sheet.addEventListener("error", () => { part(side, "words").textContent = "The sheet of images cannot be read."; });
  sheet.src = run.sheet;
  show(side);
}
function preview() {
  const {run} = sides[0], before = chosen();
  if (images.children.length !== run.images)
    images.replaceChildren(...Array.from({length: run.images}, (_, i) => make("label", {},
      make("input", {type: "radio", name: "image", value: i, checked: i === Math.min(before, run.images - 1)}),
      make("canvas", {ariaHidden: "true"}), make("span", {className: "unseen", textContent: `image ${i + 1}`}))));
  [...images.querySelectorAll("canvas")].forEach((canvas, i) => draw(canvas, sides[0], ...kinds[run.kind].small(run, i)));
  const [one, other] = sides.map(side => side.run);
  document.getElementById("different").hidden = one.seen === other.seen;
}
function keep() {
  const [left, right] = sides.map(side => side.choice.value);
  history.replaceState(null, "", "#" + new URLSearchParams({left, right, image: chosen() + 1}));
}
function read() {
  const text = location.hash.slice(1), kept = new URLSearchParams(text.includes("=") ? text : {left: text});
  const left = runs.get(kept.get("left")) ?? runs.get(form.dataset.left);
  const [left_side, right_side] = sides, usual = runs.get(form.dataset.right);
  const beside = [usual, ...runs.values()].find(run => run !== left && run.group === left.group);
  left_side.choice.value = left.id;
  right_side.choice.value = (runs.get(kept.get("right")) ?? beside ?? usual).id;
  sides.forEach(open);
  preview();
  const radio = images.querySelectorAll("input")[Number(kept.get("image") ?? 1) - 1];
  if (radio) radio.checked = true;
  sides.forEach(show);
}
for (const side of sides) {
  side.choice.addEventListener("change", () => { open(side); preview(); keep(); });
  part(side, "back").addEventListener("click", () => { side.moved = null; show(side); });
}
images.addEventListener("change", () => { for (const side of sides) { side.moved = null; show(side); } keep(); });
form.addEventListener("submit", event => event.preventDefault());
addEventListener("hashchange", () => {
  const text = location.hash.slice(1);
  if (text.includes("=") || runs.has(text)) read();
});
form.hidden = false;
read();
})();
