// Puts the page of a plan together.

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = new URLSearchParams(location.hash.slice(1)).get("theme");

// Clicks the theme button of the page in the frame if its theme differs.
function themeOfTimeline() {
  const inside = byId("timeline").contentDocument;
  if (inside?.documentElement.dataset.ready &&
      inside.documentElement.dataset.theme !== document.documentElement.dataset.theme) {
    inside.getElementById("theme").click();
  }
}

function showAll() {
  document.documentElement.dataset.theme =
      ["light", "dark"].includes(chosenTheme) ? chosenTheme : prefersDark.matches ? "dark" : "light";
  showGraph();
  showMemory();
  showFront();
  showList();
  themeOfTimeline();
}

function showTimeline() {
  if (data.timeline === null) {
    byId("timeline-section").hidden = true;
    return;
  }
  const frame = byId("timeline");
  frame.addEventListener("load", () => {
    frame.contentDocument.getElementById("theme").hidden = true;
    themeOfTimeline();
  });
  frame.style.height = `${Math.min(900, Math.max(480, 330 + 44 * data.ranks.length))}px`;
  frame.srcdoc = data.timeline;
}

byId("title").textContent = data.title;
byId("facts").append(...data.facts.map(([name, value]) => make("li", {}, `${name} `, make("b", {}, value))));
byId("why").append(...data.why.map((reason) => make("li", {}, reason)));
byId("theme").addEventListener("click", () => {
  chosenTheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  location.replace(`#theme=${chosenTheme}`);
  showAll();
});
prefersDark.addEventListener("change", showAll);
window.addEventListener("resize", showAll);
showAll();
showTimeline();
document.documentElement.dataset.ready = "yes";
