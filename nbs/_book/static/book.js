// Pages opened from a file cannot fetch others: then the search lists titles without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What is wider than the page scrolls, and so has to be reachable from the keyboard.
const wide = "pre, .table-wrapper, .cell_output .output, .math-wrapper, .sig";
const reach = () => document.querySelectorAll(wide).forEach((part) => part.toggleAttribute("tabindex", false) ||
  (part.scrollWidth > part.clientWidth && part.setAttribute("tabindex", 0)));
addEventListener("load", reach);
addEventListener("resize", reach);

// Formulas change the height of what is above a place that was linked to.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
});
