// A run of a large lab: the address names its piece, its engine (or `both`) and its id. The piece's two scripts hold the run's page
// and series; a page that is opened from disk may fetch nothing but scripts.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const said = document.getElementById("run");
  const [piece, ...rest] = location.hash.slice(1).split("/");
  const name = rest.map(decodeURIComponent).join("/");
  window.addEventListener("hashchange", () => location.reload());
  if (!/^[0-9]+$/.test(piece) || !name) return;
  const load = (kind) => new Promise((done) => {
    const script = document.createElement("script");
    script.src = `${kind}/${piece}.js`;
    script.onload = script.onerror = done;
    document.head.append(script);
  });
  Promise.all([load("pages"), load("series")]).then(() => {
    const page = weir.pages.get(name);
    if (!page) {
      said.textContent = `There is no run ${name} in this report.`;
      return;
    }
    document.title = page.t;
    document.querySelector(".eyebrow").innerHTML = page.e;
    document.querySelector("h1").textContent = page.s;
    // All text from a lab was escaped when the script was written, as in pages with a file of their own.
    said.insertAdjacentHTML("afterend", page.b);
    said.remove();
    weir.sortAll(document);
    weir.plots(document.getElementById("plots"));
  });
});
