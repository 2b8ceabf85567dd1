// Adds what the theme lacks for keyboards and screen readers.

// A table or a drawing that is wider than its page scrolls, so a keyboard must reach it.
const WIDE = ".md-typeset__scrollwrap, .md-typeset p:has(> img:only-child)";
function reachWide() {
  for (const part of document.querySelectorAll(WIDE)) {
    if (part.scrollWidth > part.clientWidth) {
      part.tabIndex = 0;
      part.setAttribute("role", "group");
      part.setAttribute("aria-label", `${part.querySelector("img") ? "Picture" : "Table"}, scrolls sideways`);
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) part.removeAttribute(name);
    }
  }
}
// Widths change with the window, with a drawing that loads, and with a part that is unfolded.
addEventListener("resize", reachWide);
for (const event of ["load", "toggle"]) document.addEventListener(event, reachWide, true);

addEventListener("load", () => {
  reachWide();
  // Code scrolls too. The theme handles it, but only once a block has been visible.
  for (const code of document.querySelectorAll(".md-typeset pre > code")) code.tabIndex = 0;
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  // A section with its own page has a list of pages whose label refers to an element that does not exist.
  for (const list of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
    if (document.getElementById(list.getAttribute("aria-labelledby"))?.textContent.trim()) continue;
    list.removeAttribute("aria-labelledby");
    list.setAttribute("aria-label", list.closest("li")?.querySelector(".md-ellipsis")?.textContent.trim() ?? "Pages");
  }
});

// The button that copies a block is in a landmark without a name, created when the block is first visible.
let copied = 0;
new MutationObserver(() => {
  for (const button of document.querySelectorAll("nav.md-code__nav:not([aria-label])")) {
    copied += 1;
    button.setAttribute("aria-label", `Block of code ${copied}`);
  }
}).observe(document.body, { childList: true, subtree: true });
