// The list of results: a row for each. The server searches and filters; this script asks it for rows, now and then again, so that a tree
// that runs is followed, and shows them. All text from results becomes text nodes.
"use strict";
(() => {
  const { el, count } = weir;
  const list = document.getElementById("list");
  const [rows, told, more, pair] = ["rows", "told", "more", "pair"].map((id) => document.getElementById(id));
  const wanted = document.getElementById("wanted");
  const reports = list.dataset.reports;
  const writes = list.dataset.writes === "true";
  // How long a pause in typing begins a search, and how often the list is read again: while files are looked at, while something runs, and
  // otherwise.
  const [TYPED, CHECKING, RUNNING, RESTING] = [60, 300, 2000, 10000];
  const LABELS = 6;
  const chosen = new Set();
  const open = new Set();
  let all = false;
  let shown = "";
  let asked = 0;
  let timer = 0;

  const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;
  function size(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    const unit = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
    const value = bytes / 1000 ** unit;
    return `${unit && value < 9.95 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
  }
  const date = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString("sv-SE", { dateStyle: "short", timeStyle: "short" }) : "no runs yet");
  const levelName = (name) => name.split(".").pop().replaceAll("_", " ");
  const address = (path) => reports + "files/" + (path === "." ? "" : path.split("/").map(encodeURIComponent).join("/") + "/") + "index.html";

  // Asks for rows; `fresh` has the server look at its folder first.
  async function ask(fresh) {
    const mine = ++asked;
    clearTimeout(timer);
    const query = new URLSearchParams([...new FormData(wanted)].filter(([, value]) => value));
    if (all) query.set("all", "true");
    if (fresh) query.set("fresh", "true");
    let pause = RESTING;
    try {
      const response = await fetch("results?" + query);
      if (!response.ok) throw new Error(await response.text());
      const text = await response.text();
      // A later question may be answered already.
      if (mine !== asked) return;
      const answer = JSON.parse(text);
      pause = answer.unchecked ? CHECKING : answer.running ? RUNNING : RESTING;
      if (text !== shown && !writing()) {
        shown = text;
        show(answer);
      }
    } catch (error) {
      if (mine !== asked) return;
      told.textContent = `The server does not answer (${error.message.trim()}). The list is as it was.`;
      shown = "";
    }
    if (mine === asked) timer = setTimeout(() => (document.hidden ? later() : ask(true)), pause);
  }
  const later = () => document.addEventListener("visibilitychange", () => ask(true), { once: true });
  // Whether somebody is writing a note, which a new list would take away.
  const writing = () => document.activeElement && rows.contains(document.activeElement) && document.activeElement.matches("textarea") && document.activeElement.value !== "";

  async function send(where, body) {
    const response = await fetch(where, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!response.ok) throw new Error((await response.text()).trim());
    shown = "";
    await ask(true);
  }

  function show(answer) {
    const parts = [answer.found === answer.all ? plural(answer.all, "result") : `${count(answer.found)} of ${plural(answer.all, "result")}`];
    if (answer.rows.length < answer.found) parts.push(`the first ${answer.rows.length} are shown`);
    if (answer.running) parts.push(`${answer.running} ${answer.running === 1 ? "is" : "are"} being written`);
    if (answer.unchecked) parts.push(`the files of ${count(answer.unchecked)} are still being looked at`);
    told.textContent = answer.all ? parts.join("; ") + "." : "There are no results here yet. `weir run LAB` writes them.";
    more.hidden = answer.rows.length === answer.found;
    const within = document.activeElement && rows.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    rows.replaceChildren(...answer.rows.map(row));
    if (within) [...rows.querySelectorAll("[data-key]")].filter((one) => one.dataset.key === within).forEach((one) => one.focus({ preventScroll: true }));
    for (const path of chosen) if (!answer.rows.some((one) => one.path === path)) chosen.delete(path);
    choose();
  }

  function row(one) {
    const choice = el("input", { type: "checkbox", "aria-label": `Compare ${one.path}`, "data-key": "c " + one.path, onchange: (event) => choose(one.path, event.target.checked) });
    choice.checked = chosen.has(one.path);
    choice.disabled = one.state === "damaged";
    const name = one.report ? el("a", { href: address(one.path), target: "_blank", rel: "noopener" }, one.lab) : el("span", { title: "It has no report; `weir report` writes one." }, one.lab);
    const engines = one.engines.map((engine) => el("span", { class: "engine " + engine }, weir.engineName[engine]));
    const state = one.state === "complete" ? [] : [el("p", { class: "state " + one.state }, el("b", null, { running: "Running", unfinished: "Not complete", damaged: "Cannot be read" }[one.state]), " " + one.why)];
    if (one.state === "running" && one.planned) state.push(el("progress", { max: one.planned, value: one.runs, "aria-label": "Runs that are complete" }));
    const pieces = [
      el("div", { class: "name" }, name, el("span", { class: "path" }, one.path), ...engines, ...pin(one)),
      one.title ? el("p", { class: "title" }, one.title) : null,
      ...state,
      one.levels.length ? el("p", { class: "levels" }, ...one.levels.map(level)) : null,
      one.verdict ? el("p", { class: "verdict " + (one.verdict.holds === null ? "" : one.verdict.holds ? "agree" : "differ") }, one.verdict.text) : null,
      notes(one),
    ];
    const runs = one.runs === one.planned ? plural(one.runs, "run") : `${count(one.runs)} of ${plural(one.planned, "run")}`;
    const facts = [one.planned ? runs : null, one.invalid ? el("b", { class: "bad" }, `${count(one.invalid)} invalid`) : null, one.bytes === null ? null : size(one.bytes), el("time", { datetime: new Date(one.ended * 1000).toISOString() }, date(one.ended))];
    return el("article", { class: "result" + (one.pinned ? " pinned" : ""), "data-path": one.path }, choice, el("div", { class: "what" }, ...pieces.filter(Boolean)), el("div", { class: "facts-of" }, ...facts.filter(Boolean).map((fact) => el("span", null, fact))));
  }

  // A level that varied: its name and its first labels.
  function level({ level, labels }) {
    const rest = labels.length - LABELS;
    return el("span", { class: "chip", title: labels.join(", ") }, el("span", { class: "quiet" }, levelName(level) + " "), labels.slice(0, LABELS).join(" · ") + (rest > 0 ? ` and ${rest} more` : ""));
  }

  function pin(one) {
    if (!writes) return one.pinned ? [el("span", { class: "pin" }, "pinned")] : [];
    const set = (event) => send("pins", { result: one.path, pinned: !one.pinned }).catch((error) => (event.target.textContent = error.message));
    return [el("button", { type: "button", class: "pin", "aria-pressed": String(one.pinned), "data-key": "p " + one.path, onclick: set }, one.pinned ? "pinned" : "pin")];
  }

  function notes(one) {
    const items = one.notes.map((note) => {
      const remove = el("button", { type: "button", class: "remove", "aria-label": `Remove note ${note.number}`, onclick: (event) => send("notes", { result: one.path, remove: note.number }).catch((error) => (event.target.textContent = error.message)) }, "remove");
      return el("li", null, el("time", { class: "quiet", datetime: note.at }, note.at.slice(0, 10)), " ", el("span", { class: "said" }, note.text), writes ? remove : null);
    });
    const parts = items.length ? [el("ul", { class: "notes" }, ...items)] : [];
    if (writes && one.state !== "damaged") parts.push(open.has(one.path) ? form(one) : el("button", { type: "button", class: "add", "data-key": "n " + one.path, onclick: (event) => (open.add(one.path), event.target.replaceWith(form(one, true))) }, "Add a note"));
    return parts.length ? el("div", null, ...parts) : null;
  }

  // The field of a new note.
  function form(one, begins) {
    const text = el("textarea", { rows: 2, "aria-label": `A note on ${one.path}`, "data-key": "t " + one.path });
    const fault = el("span", { class: "bad", role: "alert" });
    const keep = (event) => {
      event.preventDefault();
      const said = text.value;
      text.value = "";
      open.delete(one.path);
      send("notes", { result: one.path, add: said }).catch((error) => {
        open.add(one.path);
        text.value = said;
        fault.textContent = error.message;
      });
    };
    if (begins) setTimeout(() => text.focus());
    return el("form", { class: "note", onsubmit: keep }, text, el("button", { type: "submit" }, "Keep"), fault);
  }

  // Two results are compared, or the engines of one; a third choice takes the place of the first.
  function choose(path, is) {
    if (path && is) chosen.add(path);
    if (path && !is) chosen.delete(path);
    if (chosen.size > 2) chosen.delete([...chosen][0]);
    for (const article of rows.children) article.querySelector("input").checked = chosen.has(article.dataset.path);
    const [first, second] = chosen;
    pair.hidden = !first;
    if (!first) return;
    const [says, link] = pair.children;
    says.textContent = second ? `${first} and ${second}` : `${first}: choose a second result, or compare its engines`;
    link.textContent = second ? "Compare these two" : "Compare its engines";
    link.href = "compare?" + new URLSearchParams(second ? { first, second } : { first });
  }

  wanted.addEventListener("submit", (event) => event.preventDefault());
  wanted.addEventListener("input", () => {
    clearTimeout(timer);
    all = false;
    timer = setTimeout(() => ask(false), TYPED);
  });
  more.querySelector("button").addEventListener("click", () => ((all = true), ask(false)));
  pair.querySelector("button").addEventListener("click", () => (chosen.clear(), choose()));
  ask(true);
})();
