// One attempt, or two beside each other: head, answer against gold, turns. Events are asked for as the page is scrolled.

import { ask, chip, count, el, failure, link, money, number, put, seconds, tokens, verdict } from "./dom.js";
import { itemElement, replyLine, requestLine } from "./items.js";
import { hideNode, showNode } from "./node.js";

const FIELDS = ["run", "q", "agent", "attempt"];

export function attemptPage(main, parameters, about) {
  const first = placeOf(parameters, ""), second = parameters.has("run2") ? placeOf(parameters, "2") : null;
  const panes = [first, second].filter(Boolean).map((at, number_) => new Pane(at, about, {
    other: number_ ? first : second,
    go: (own, other) => { location.hash = link("attempt", join(number_ ? [other, own] : [own, other])); },
    scrolls: second !== null,
  }));
  let active = 0;
  main.replaceChildren(el("div", { class: `panes ${second ? "two" : "one"}` }, panes.map((pane) => pane.root)));
  panes.forEach((pane, number_) => pane.root.addEventListener("focusin", () => { active = number_; }));
  panes.forEach((pane, number_) => pane.root.addEventListener("pointerdown", () => { active = number_; }));
  panes.forEach((pane) => pane.start());
  const pane = () => panes[active];
  return {
    close() { panes.forEach((each) => each.close()); hideNode(); },
    keys: {
      j: () => pane().step(1), k: () => pane().step(-1), g: () => pane().mark(1), G: () => pane().mark(-1),
      o: () => pane().open(), n: () => pane().question("following"), p: () => pane().question("previous"),
      s: () => pane().beside(),
      x: () => { active = (active + 1) % panes.length; panes[active].root.focus(); },
      u: () => { location.hash = "#list?" + (sessionStorage.getItem("list") || ""); },
      Escape: () => hideNode() || (location.hash = "#list?" + (sessionStorage.getItem("list") || "")),
    },
  };
}

function placeOf(parameters, suffix) {
  const at = Object.fromEntries(FIELDS.map((name) => [name, parameters.get(name + suffix) || (name === "q" ? parameters.get("q") : "0")]));
  return at;
}

function join([left, right]) {
  const other = right ? Object.fromEntries(FIELDS.filter((name) => name !== "q").map((name) => [`${name}2`, right[name]])) : {};
  return { ...left, ...other };
}

class Pane {
  constructor(at, about, { other, go, scrolls }) {
    Object.assign(this, { at, about, other, go, scrolls, next: 0, busy: false, turn: null });
    this.stop = new AbortController();
    this.marks = { gold: new Set(), given: new Set() };
    this.head = el("div", { class: "attempt-head" }, el("p", { class: "dim" }, "…"));
    this.turns = el("div", { class: "turns" });
    this.end = el("div", { class: "end" });
    this.body = el("div", { class: "columns" }, this.turns);
    this.root = el("section", { class: "pane", tabindex: -1, onclick: (event) => this.clicked(event) }, this.head, this.body, this.end);
    this.watcher = new IntersectionObserver(() => this.near() && this.more(), { root: scrolls ? this.root : null, rootMargin: "900px" });
  }

  close() {
    this.stop.abort();
    this.watcher.disconnect();
  }

  async start() {
    try {
      this.data = await ask("attempt", this.at, this.stop.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.head.replaceChildren(failure(error));
      return;
    }
    this.marks = { gold: new Set(this.data.gold_ids), given: new Set(this.data.answer.map((each) => each.id)) };
    this.showHead();
    this.watcher.observe(this.end);
    await this.more();
    this.showOrigins();
  }

  async showOrigins() {
    try {
      const found = await ask("origins", this.at, this.stop.signal);
      this.classChip.replaceChildren(found.class);
      for (const cell of this.answer.querySelectorAll("[data-origin]")) {
        const origin = found.ids[cell.dataset.origin];
        if (!origin) continue;
        cell.replaceChildren(origin.line > 0
          ? el("a", { href: "", onclick: (event) => { event.preventDefault(); this.toLine(origin.line, Number(cell.dataset.origin)); } }, origin.text)
          : origin.text);
        if (origin.state !== "shown") cell.classList.add("warn");
      }
    } catch (error) {
      if (error.name !== "AbortError") this.answer.append(failure(error));
    }
  }

  showHead() {
    const data = this.data, run = this.about.runs[this.at.run];
    const tries = data.tries.length > 1 && el("select", {
      "aria-label": "attempt",
      onchange: (event) => { const [agent, attempt] = event.target.value.split("-"); this.go({ ...this.at, agent, attempt }, this.other); },
    }, data.tries.map((each) => el("option", {
      value: `${each.agent}-${each.attempt}`, selected: each.agent === data.agent && each.attempt === data.attempt,
    }, `agent ${each.agent + 1}, attempt ${each.attempt + 1}: ${each.stop}`)));
    this.classChip = chip(data.class || "…", "quiet", "error class");
    const list = "#list?" + (sessionStorage.getItem("list") || "");
    const close = this.other && el("a", { class: "button", href: link("attempt", this.other) }, "close this side");
    put(this.head,
      el("nav", null,
        !this.other && el("a", { href: list }, "questions"),
        el("span", { class: "dim short" }, run.mode, " · ", run.folder),
        !this.other && el("span", null,
          step(data.previous, "previous", this), el("span", { class: "dim" }, ` ${number(data.place)} of ${number(data.places)} `),
          step(data.following, "next", this)),
        tries, !this.other && this.besideChoice(), close),
      el("h1", null, el("span", { class: "dim" }, data.label), " ", data.text),
      el("p", { class: "chips" }, verdict(data.verdict_here, null),
        data.verdict_here !== data.class && this.classChip,
        chip(data.limit ? `${data.stop}, ${data.limit} reached` : data.stop, data.error ? "warn" : "quiet"),
        el("span", { class: "dim" }, [count(data.turns, "turn"), seconds(data.times.wall), tokens(data.usage), data.cost === null ? "" : money(data.cost), data.file].filter(Boolean).join(" · "))),
      data.error && el("pre", { class: "bad" }, data.error),
      data.lacking && el("p", { class: "note" }, `gold is not known: ${data.lacking}`),
      data.fault && el("p", { class: "note" }, `not all of the trajectory can be read: ${data.fault}`));
    this.answer = el("div", { class: "answer-box" }, answerTable("answer", data.answer),
      data.gold && answerTable("right, and not returned", data.gold.filter((each) => !this.marks.given.has(each.id))),
      data.gold && data.gold_count > data.gold.length && el("p", { class: "dim" }, `${count(data.gold_count - data.gold.length, "more right id")}`));
    this.body.prepend(this.answer);
  }

  besideChoice() {
    if (!this.data.beside.length) return null;
    return el("select", { "aria-label": "put another run beside it", onchange: (event) => {
      const chosen = this.data.beside[Number(event.target.value)];
      if (chosen) this.go(this.at, { ...this.at, run: chosen.run, agent: chosen.agent, attempt: chosen.attempt });
    } },
    el("option", { value: "" }, "side by side with …"),
    this.data.beside.map((each, place) => {
      const run = this.about.runs[each.run];
      return el("option", { value: place }, `${run.mode}: ${each.verdict} (${run.folder})`);
    }));
  }

  async more() {
    if (this.busy || this.next === null) return;
    this.busy = true;
    try {
      const page = await ask("items", { ...this.at, from: this.next }, this.stop.signal);
      page.items.forEach((item) => this.add(item));
      this.next = page.next;
    } catch (error) {
      this.next = null;
      if (error.name !== "AbortError") this.end.replaceChildren(failure(error));
    } finally {
      this.busy = false;
    }
    if (this.next !== null && this.near()) await this.more();
  }

  near() {
    const bottom = this.scrolls ? this.root.getBoundingClientRect().bottom : window.innerHeight;
    return this.end.isConnected && this.end.getBoundingClientRect().top < bottom + 900;
  }

  add(item) {
    const group = item.turn === null ? (item.type === "start" ? "prompt" : "end") : `turn ${item.turn}`;
    if (!this.group || this.group.dataset.name !== group) {
      this.about_ = el("span", { class: "dim" });
      this.group = el("section", { class: "turn", data: { name: group }, tabindex: -1 }, el("h2", null, group, " ", this.about_));
      this.turns.append(this.group);
    }
    if (item.type === "request") this.about_.append(requestLine(item));
    if (item.type === "reply") this.about_.append(this.about_.textContent ? " · " : "", replyLine(item));
    const made = itemElement(item, this.at, this.marks);
    if (made) {
      made.dataset.line = item.line;
      this.group.append(made);
    }
  }

  // Keys and links

  async toLine(line, node) {
    while (this.next !== null && this.next <= line) await this.more();
    const item = this.turns.querySelector(`[data-line="${Number(line)}"]`);
    if (!item) return;
    const find = () => item.querySelector(`a.node[data-node="${Number(node)}"]`);
    for (let more = nextMore(item); !find() && more; more = nextMore(item)) {
      more.click();
      await settled(more);
    }
    this.point(find() || item);
  }

  point(target) {
    this.turns.querySelectorAll(".found").forEach((each) => each.classList.remove("found"));
    target.classList.add("found");
    this.focusTurn(target.closest(".turn"));
    target.scrollIntoView({ block: "center" });
  }

  focusTurn(section) {
    this.turn = section;
    section.focus({ preventScroll: true });
  }

  async step(by) {
    const sections = [...this.turns.children];
    let at = sections.indexOf(this.turn) + by;
    if (this.turn === null) at = 0;
    if (at >= sections.length - 1 && this.next !== null) await this.more();
    const section = this.turns.children[Math.min(Math.max(at, 0), this.turns.children.length - 1)];
    if (section) { this.focusTurn(section); section.scrollIntoView({ block: "start" }); }
  }

  mark(by) {
    const marks = [...this.turns.querySelectorAll("a.node.gold")];
    if (!marks.length) return;
    const at = marks.indexOf(this.turns.querySelector("a.node.found"));
    this.point(marks[(at + by + marks.length + (at < 0 && by < 0 ? 1 : 0)) % marks.length]);
  }

  open() {
    const section = this.turn || this.turns.firstElementChild;
    const boxes = section ? [...section.querySelectorAll(".buttons")] : [];
    const more = boxes.flatMap((box) => [...box.querySelectorAll("button:first-child:not([hidden])")]);
    for (const button of more.length ? more : boxes.flatMap((box) => [...box.querySelectorAll("button:not([hidden])")])) button.click();
  }

  question(which) {
    const id = this.data && this.data[which];
    if (id) this.go({ ...this.at, q: id, agent: 0, attempt: 0 }, null);
  }

  beside() {
    if (this.other) { location.hash = link("attempt", this.at); return; }
    const [chosen] = this.data ? this.data.beside : [];
    if (chosen) this.go(this.at, { ...this.at, run: chosen.run, agent: chosen.agent, attempt: chosen.attempt });
  }

  clicked(event) {
    const node = event.target.closest("a.node");
    if (!node) return;
    event.preventDefault();
    showNode(this.at.run, Number(node.dataset.node), this.marks);
  }
}

function nextMore(item) {
  return item.querySelector(".output + .buttons button.more:not([hidden]):first-child");
}

// When a button has been clicked and has done its work.
function settled(button) {
  return new Promise((resolve) => {
    const watcher = new MutationObserver(() => {
      if (!button.disabled) { watcher.disconnect(); resolve(); }
    });
    watcher.observe(button, { attributes: true, attributeFilter: ["disabled"] });
  });
}

function step(id, words, pane) {
  return el("a", { class: "button", href: id ? link("attempt", { ...pane.at, q: id, agent: 0, attempt: 0 }) : null, "aria-disabled": id ? null : "true" }, words);
}

function answerTable(title, nodes) {
  if (!nodes.length && title !== "answer") return null;
  return el("div", { class: "scroll" }, el("table", null, el("caption", null, nodes.length ? title : "no answer"),
    el("tbody", null, nodes.map((each, rank) => el("tr", null,
      el("td", { class: "figure dim" }, title === "answer" ? String(rank + 1) : ""),
      el("td", { class: "figure" }, el("a", { class: `node ${each.right ? "gold" : "given"}`, data: { node: each.id } }, String(each.id))),
      el("td", { class: "text", title: each.name }, el("span", { class: "short" }, each.name), each.right && title === "answer" && chip("right", "good")),
      el("td", { class: "dim", data: { origin: each.id } }, "…"))))));
}
