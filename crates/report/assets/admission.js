// Which flows an overlay admitted and when: a band a flow, with the decisions behind it; and for each flow that was stopped by whom and why.
"use strict";
weir.admission = (host, group, run) => {
  const { el, num } = weir;
  const { flows, more } = run.overlay.admission;
  const KINDS = [["on", "admitted"], ["triaged", "stopped itself for the price"], ["loss-triaged", "stopped itself for loss"], ["off", "stopped by the planner"], ["unreachable", "no path is fast enough"]];
  const end = run.n * run.p;
  const clock = (seconds) => `${weir.plain(+seconds.toFixed(2))} s`;
  // The times for which a flow stood so: from, to, and the decision at its begin.
  const bands = (flow) => flow.d.map(([at, standing, by, why], i) => ({ from: at, to: i + 1 < flow.d.length ? flow.d[i + 1][0] : end, standing, by, why })).filter((band) => KINDS.some(([kind]) => kind === band.standing));
  const all = flows.map(bands);
  const said = (band) => `${KINDS.find(([kind]) => kind === band.standing)[1]} from ${clock(band.from)} to ${clock(band.to)}. Decided by ${band.by}: ${band.why}.`;
  const isThere = (kind) => all.some((list) => list.some((band) => band.standing === kind));
  // The share of the time after the warm-up in which a flow was on, of that in which it was there.
  function share(list) {
    const length = (of) => of.reduce((sum, band) => sum + Math.max(0, band.to - Math.max(band.from, run.w)), 0);
    const there = length(list);
    return there > 0 ? (100 * length(list.filter((band) => band.standing === "on"))) / there : NaN;
  }

  const box = el("div", { class: "admission" });
  const keys = el("div", { class: "stands" }, KINDS.filter(([kind]) => isThere(kind)).map(([kind, words]) => el("span", { class: `stand ${kind}` }, words)));
  const title = "Flows admitted";
  const drawing = () => weir.save.drawCopies(title, [box.querySelector("svg")], []);
  const csv = () => [["flow", "from_s", "to_s", "standing", "decided by", "why"], ...flows.flatMap((flow, i) => all[i].map((band) => [flow.n, band.from, band.to, band.standing, band.by, band.why]))];
  const left = more ? ` ${weir.count(more)} flows with fewer stops are left out.` : "";

  // For each flow that was stopped: how often, and the last time in words.
  const isStop = (band) => band.standing !== "on";
  const stopped = flows.map((flow, i) => [flow, all[i].filter(isStop), share(all[i])]).filter(([, stops]) => stops.length);
  const caption = "Why flows were stopped";
  const head = [["flow", ""], ["stops", "n"], ["admitted, % of its time", "n"], ["last stop", "n"], ["by", ""], ["why", ""]];
  const row = ([flow, stops, on]) => {
    const last = stops[stops.length - 1];
    return el("tr", null, el("th", { scope: "row" }, el("span", { class: `swatch ${flow.i}` }, flow.n)), el("td", { class: "n" }, weir.count(stops.length)), el("td", { class: "n" }, Number.isFinite(on) ? num(on) : "–"),
      el("td", { class: "n" }, clock(last.from)), el("td", null, last.by), el("td", null, last.why));
  };
  const table = stopped.length
    ? el("div", { class: "scroll tall", role: "region", tabindex: 0, "aria-label": caption }, el("table", null, el("caption", null, caption), el("thead", null, el("tr", null, head.map(([text, kind]) => el("th", { scope: "col", class: kind || null }, text)))), el("tbody", null, stopped.map(row))))
    : el("p", { class: "quiet" }, "No flow was stopped.");
  host.append(el("figure", { class: "card", "data-key": "admission" },
    el("figcaption", null, el("h3", null, title), weir.save.buttons("admission", drawing, csv), el("p", { class: "quiet" }, `A band for each flow that may be refused, high while it is admitted. Point at a band to read who decided so, and why.${left}`)),
    keys, box, table));

  const tall = flows.length <= 24 ? 16 : flows.length <= 60 ? 9 : 5;
  function draw() {
    const [low, high] = group.shown();
    const width = Math.max(240, box.clientWidth);
    const longest = Math.max(...flows.map((flow) => flow.n.length));
    // Names stand beside bands that are high enough for them.
    const side = tall >= 9 ? Math.min(0.3 * width, 14 + 6.6 * longest) : 14;
    const [right, foot] = [18, 26];
    const height = flows.length * tall + foot;
    const x = (time) => side + ((time - low) / (high - low)) * (width - side - right);
    const shares = all.map(share).filter(Number.isFinite);
    const label = `${title} from ${weir.plain(low)} to ${weir.plain(high)} seconds: ${flows.length} flows, of which ${stopped.length} were stopped. ${shares.length ? `After the warm-up a flow was admitted for ${num(weir.average(shares))} % of its time on average.` : ""}`;
    const svg = el("svg", { class: "admission", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((one) => one / 10).find((one) => (high - low) / one <= width / 70) || (high - low) / 4;
    for (let time = Math.ceil(low / step) * step; time <= high + 1e-9; time += step) {
      svg.append(el("line", { class: "tick", x1: x(time).toFixed(1), x2: x(time).toFixed(1), y1: 0, y2: height - foot }), el("text", { class: "tick", x: x(time).toFixed(1), y: height - 10 }, `${+time.toPrecision(6)} s`));
    }
    flows.forEach((flow, i) => {
      const top = i * tall;
      if (tall >= 9) svg.append(el("text", { class: "name", x: side - 6, y: (top + tall / 2 + 4).toFixed(1) }, flow.n));
      for (const band of all[i]) {
        const [from, to] = [Math.max(band.from, low), Math.min(band.to, high)];
        if (!(to > from)) continue;
        const part = band.standing === "on" ? 0.8 : 0.3;
        svg.append(el("rect", { class: `${band.standing} ${flow.i}`, x: x(from).toFixed(2), width: Math.max(0.6, x(to) - x(from)).toFixed(2), y: (top + (tall * (1 - part)) / 2).toFixed(2), height: (tall * part).toFixed(2) }, el("title", null, `${flow.n}: ${said(band)}`)));
      }
    });
    box.replaceChildren(svg);
  }
  draw();
  let later = 0;
  const again = () => {
    clearTimeout(later);
    later = setTimeout(draw, 60);
  };
  group.follow(again);
  let wide = box.clientWidth;
  new ResizeObserver(() => {
    if (box.clientWidth === wide) return;
    wide = box.clientWidth;
    again();
  }).observe(box);
};
