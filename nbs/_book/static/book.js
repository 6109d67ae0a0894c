// Sphinx's search fetches the pages it found, for their excerpts. A page opened from a file cannot: there a script has their text.
if (location.protocol === "file:") {
  const root = document.documentElement.dataset.content_root;
  let texts;
  const load = () => new Promise((onload, onerror) => document.head.append(
    Object.assign(document.createElement("script"), { src: `${root}_static/excerpts.js`, onload, onerror })));
  window.fetch = async (page) => (await (texts ??= load()), new Response(EXCERPTS[page.slice(root.length)]));
}

// What is wider than the page scrolls, and so has to be reachable from the keyboard.
const wide = "pre, .table-wrapper, .cell_output .output, .math-wrapper, .sig";
const reach = () => document.querySelectorAll(wide).forEach((part) => part.toggleAttribute("tabindex", false) ||
  (part.scrollWidth > part.clientWidth && part.setAttribute("tabindex", 0)));
addEventListener("load", reach);
addEventListener("resize", reach);
addEventListener("toggle", reach, true); // folded code has no width

// Formulas change the height of what is above a place that was linked to.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
});
