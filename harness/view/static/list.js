// The list of questions, with its filters. Rows are asked for as the list is scrolled.

import { ask, chip, count, el, failure, link, money, number, put, seconds, verdict } from "./dom.js";

const FILTERS = ["run", "mode", "verdict", "class", "stop", "text", "in"];
let selected = null; // the row that was opened last, to come back to

export function listPage(main, parameters, about) {
  const chosen = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) || ""]));
  const several = about.runs.length > 1;
  const stop = new AbortController();
  const body = el("tbody");
  const state = el("p", { class: "dim", role: "status" }, "…");
  const end = el("div", { class: "end" });
  const change = (name, value) => location.replace(link("list", { ...chosen, [name]: value }));

  put(main,
    el("div", { class: "runs" }, about.runs.map((run) => runCard(run))),
    el("form", { class: "filters", onsubmit: (event) => event.preventDefault() },
      searchBox(chosen, change),
      several && choice("run", chosen.run, about.runs.map((run) => [run.number, run.folder]), change),
      choice("mode", chosen.mode, unique(about.runs.map((run) => run.mode)), change),
      choice("verdict", chosen.verdict, about.verdicts.filter((name) => total(about, "verdicts", name)), change,
        (name) => `${name} (${number(total(about, "verdicts", name))})`),
      choice("class", chosen.class, about.classes, change),
      choice("stop", chosen.stop, unique(about.runs.flatMap((run) => Object.keys(run.stops))), change,
        (name) => `${name} (${number(total(about, "stops", name))})`),
      FILTERS.some((name) => chosen[name]) && el("a", { class: "button", href: "#list?" }, "clear")),
    state,
    el("div", { class: "scroll" },
      el("table", { class: "questions" },
        el("thead", null, el("tr", null,
          ["id", several && "mode", "question", "verdict", "class", "answer", "ended"].filter(Boolean)
            .map((name) => el("th", { scope: "col" }, name)),
          ["turns", "time", "cost"].map((name) => el("th", { scope: "col", class: "figure" }, name)))),
        body)),
    end);

  const list = { next: 0, found: 0, busy: false };
  const more = async () => {
    if (list.busy || list.next === null) return;
    list.busy = true;
    try {
      const { run, mode, verdict: verdict_, class: class_, stop: stop_, text } = chosen;
      const filters = { run, mode, verdict: verdict_, class: class_, stop: stop_, text, in: chosen.in };
      const answer = await ask("questions", { ...filters, from: list.next }, stop.signal);
      body.append(...answer.rows.map((row) => questionRow(row, about, several, stop.signal)));
      list.found += answer.rows.length;
      list.next = answer.next;
      const done = answer.next === null;
      state.textContent = done
        ? `${count(list.found, "question")}${list.found < answer.total ? ` of ${number(answer.total)}` : ""}`
        : `${number(list.found)} found in the first ${number(answer.next)} of ${number(answer.total)}`;
      if (selected) {
        const back = body.querySelector(`[data-key="${CSS.escape(selected)}"]`);
        if (back) { back.focus(); selected = null; }
      }
    } catch (error) {
      if (error.name !== "AbortError") { list.next = null; end.replaceChildren(failure(error)); }
    } finally {
      list.busy = false;
    }
    if (list.next !== null && isNear(end)) more();
  };
  const watcher = new IntersectionObserver(() => isNear(end) && more(), { rootMargin: "600px" });
  watcher.observe(end);
  more();

  return {
    close() { stop.abort(); watcher.disconnect(); },
    keys: {
      j: () => step(body, 1), ArrowDown: () => step(body, 1), k: () => step(body, -1), ArrowUp: () => step(body, -1),
      "/": () => main.querySelector("input[type=search]").focus(),
    },
  };
}

function isNear(node) {
  return node.isConnected && node.getBoundingClientRect().top < window.innerHeight + 600;
}

function step(body, by) {
  const rows = [...body.rows];
  const at = rows.indexOf(document.activeElement);
  const row = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
  if (row) { row.focus(); row.scrollIntoView({ block: "nearest" }); }
}

function questionRow(row, about, several, signal) {
  const [agent, attempt] = row.last[0] || [];
  const target = row.last.length ? link("attempt", { run: row.run, q: row.id, agent, attempt }) : null;
  const key = `${row.run} ${row.id}`;
  const open = () => { if (target) { selected = key; location.hash = target; } };
  const classes = el("td", null, ...classTexts(row));
  const line = el("tr", {
    tabindex: 0, data: { key }, class: target ? "open" : "",
    onclick: (event) => { if (!event.target.closest("a")) open(); },
    onkeydown: (event) => { if (event.key === "Enter" && event.target === line) open(); },
  },
    el("td", { class: "id" }, target ? el("a", { href: target, tabindex: -1, class: "short", onclick: () => { selected = key; } }, row.label) : row.label),
    several && el("td", { class: "dim run-name" }, runName(about, row.run)),
    el("td", { class: "text", title: row.text }, el("span", { class: "short" }, row.text)),
    el("td", null, verdict(row.verdict, row.rank)),
    classes,
    el("td", { class: "answer" }, el("span", { class: "short" }, answerText(row))),
    el("td", null, row.stops.join(", "), row.limits.length ? ` (${row.limits.join(", ")})` : "",
      row.attempts > row.last.length && el("span", { class: "dim" }, ` ${count(row.attempts, "attempt")}`)),
    el("td", { class: "figure turns" }, row.last.length ? number(row.turns) : ""),
    el("td", { class: "figure" }, row.last.length ? seconds(row.seconds) : ""),
    el("td", { class: "figure" }, row.last.length ? money(row.cost) : ""));
  if (row.classes.includes(null)) whenSeen(line, () => fillClasses(classes, row, signal));
  return line;
}

// A run's mode, and its folder where another run has the same mode.
function runName(about, place) {
  const run = about.runs[place];
  const alone = about.runs.every((other, number_) => number_ === place || other.mode !== run.mode);
  return alone ? run.mode : `${run.mode} (${run.folder})`;
}

function classTexts(row) {
  return row.classes.includes(null) ? [el("span", { class: "dim" }, "…")] : [counted(row.classes)];
}

// The classes of a question's agents, each once.
function counted(names) {
  return unique(names).map((name) => {
    const n = names.filter((other) => other === name).length;
    return n > 1 ? `${name} ×${n}` : name;
  }).join(", ");
}

// An error class that takes reading a trajectory is asked for when its row is on the screen.
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting && entry.target.whenSeen) {
      seen.unobserve(entry.target);
      entry.target.whenSeen();
    }
  }
});

function whenSeen(node, action) {
  node.whenSeen = action;
  seen.observe(node);
}

async function fillClasses(cell, row, signal) {
  try {
    cell.replaceChildren(counted(await ask("classes", { run: row.run, q: row.id }, signal)));
  } catch (error) {
    if (error.name !== "AbortError") cell.replaceChildren(chip("unknown", "warn", error.message));
  }
}

function answerText(row) {
  const shown = row.answer.map(([node, name]) => name || String(node)).join(", ");
  return row.ids > row.answer.length ? `${shown}, +${row.ids - row.answer.length}` : shown;
}

function searchBox(chosen, change) {
  let timer = null;
  const input = el("input", {
    type: "search", placeholder: "search", "aria-label": "search", value: chosen.text, spellcheck: "false",
    oninput: () => { clearTimeout(timer); timer = setTimeout(() => change("text", input.value), 300); },
    onkeydown: (event) => { if (event.key === "Escape") input.blur(); },
  });
  const place = el("select", { "aria-label": "search in", onchange: () => change("in", place.value) },
    el("option", { value: "" }, "in questions"), el("option", { value: "trajectories" }, "in trajectories"));
  place.value = chosen.in;
  return el("span", { class: "search" }, input, place);
}

function choice(name, value, values, change, label) {
  const pairs = values.map((each) => (Array.isArray(each) ? each : [each, label ? label(each) : each]));
  const select = el("select", { onchange: () => change(name, select.value) },
    el("option", { value: "" }, "all"), pairs.map(([key, text]) => el("option", { value: key }, text)));
  select.value = value;
  return el("label", { class: value !== "" ? "active" : "" }, name, " ", select);
}

function runCard(run) {
  const verdicts = Object.entries(run.verdicts).map(([name, n]) => `${number(n)} ${name}`).join(", ");
  return el("p", { class: "run" },
    el("strong", null, run.mode), ` on ${run.graph} · ${run.model} · ${count(run.questions, "question")}: ${verdicts}`,
    run.cost !== null && run.cost > 0 && ` · ${money(run.cost)}`, " ", el("span", { class: "dim" }, run.path),
    run.lacking && el("span", { class: "warn" }, ` gold is not known: ${run.lacking}`));
}

function total(about, field, name) {
  return about.runs.reduce((sum, run) => sum + (run[field][name] || 0), 0);
}

function unique(values) {
  return [...new Set(values)];
}
