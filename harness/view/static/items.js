// Events of a trajectory as elements. `at` says which attempt: {run, q, agent, attempt}.

import { ask, attempt, chip, count, el, number, seconds, size, tokens } from "./dom.js";

// A turn's own line: what was sent, what came back.
export function requestLine(item) {
  const cleared = item.cleared ? `, ${count(item.cleared, "result")} cleared` : "";
  return `${count(item.entries, "message")}, ${size(item.bytes)}, about ${count(item.tokens_estimate, "token")}${cleared}`;
}

export function replyLine(item) {
  return [`reply ${seconds(item.latency)}`, item.waited && `waited ${seconds(item.waited)}`, tokens(item.usage),
    item.tries > 1 && `${number(item.tries)} tries`].filter(Boolean).join(", ");
}

const MAKERS = {
  start: (item, at) => el("div", { class: "item" },
    el("p", { class: "dim" }, `tools: ${item.tools.join(", ") || "none"}`),
    item.system.text && [el("p", { class: "dim" }, "system prompt:"), folded(item.system, at, item.line, "system", "prompt"),
      el("p", { class: "dim" }, "prompt:")],
    folded(item.text, at, item.line, "text", "prompt")),
  reply,
  result,
  client_call: (item) => el("div", { class: "item client" }, el("strong", null, item.name), " ", el("code", null, item.arguments), " ",
    item.error && chip("error", "bad"),
    el("span", { class: "dim" }, `${count(item.characters, "character")}, ${seconds(item.seconds)}, called by ${item.program}`)),
  program_run: (item) => el("div", { class: "item client" }, el("strong", null, "python3"), " ", el("code", null, item.arguments), " ",
    item.refused ? chip("refused: one had been run", "bad") : el("span", { class: "dim" }, programLine(item))),
  clear: (item) => note(`cleared ${count(item.count, "result")}: about ${count(item.before, "token")} before, ${number(item.after)} after`),
  notice: (item, at) => el("div", { class: "item note" }, "the harness said: ", folded(item.text, at, item.line, "text", "said")),
  answer: (item) => el("div", { class: "item" },
    item.repairs.map((text) => note(`repaired: ${text}`)), item.rejected.map((text) => note(`rejected: ${text}`))),
  end: (item) => el("div", { class: "item" },
    el("p", null, "ended: ", el("strong", null, item.stop), item.limit ? `, ${item.limit} reached` : ""),
    item.error && el("pre", { class: "bad" }, item.error)),
  damaged: (item, at) => el("div", { class: "item" }, note(`line ${item.line + 1} is no event that this page knows`),
    folded(item.text, at, item.line, "text", "output")),
};

export function itemElement(item, at, marks) {
  const maker = MAKERS[item.type];
  return maker ? maker(item, at, marks) : null;
}

function programLine(item) {
  return [item.termination ?? "ended with its command", item.exit_code !== null && `exit code ${item.exit_code}`,
    `${seconds(item.wall)} wall`, `${seconds(item.cpu)} cpu`, size(item.memory), item.blob && `saved as blobs/${item.blob}`,
  ].filter(Boolean).join(", ");
}

function note(text) {
  return el("p", { class: "item note" }, text);
}

function reply(item, at) {
  return el("div", { class: "item" },
    item.reasoning.left > 0 && el("details", null, el("summary", null, `reasoning (${count(item.reasoning.left, "character")})`),
      folded(item.reasoning, at, item.line, "reasoning", "said dim")),
    item.text.text.trim() && folded(item.text, at, item.line, "text", "said"),
    item.notes.map(note),
    item.finish !== "stop" && item.finish !== "tool_calls" && note(`the reply ended with ${item.finish}`),
    item.lost.map(([name, text]) => [note(`a call of ${name} without a result:`), el("pre", { class: "code" }, text)]));
}

function result(item, at, marks) {
  const run = item.exec;
  const ended = run && (run.termination === "exit" ? `exit ${run.exit_code}` : run.termination);
  const failed = run && (run.termination !== "exit" || run.exit_code !== 0);
  return el("div", { class: "item call" },
    el("p", { class: "head" }, el("strong", null, item.name),
      run && chip(ended, failed ? "bad" : "quiet"),
      item.error && chip(item.error, "warn", "the model's own mistake"),
      item.cleared !== null && chip(`cleared before turn ${item.cleared}`, "warn", "the model saw a placeholder from then on"),
      run && el("span", { class: "dim" }, `${size(run.total_bytes)}, ${count(run.lines, "line")}, ${seconds(run.wall)} wall, ${seconds(run.cpu)} cpu, ${size(run.memory)}`)),
    item.arguments.map(([label, name, text]) => ("code" in text
      ? folded(text, at, item.line, `argument:${name}`, "code")
      : el("div", { class: "argument" }, el("span", { class: "dim" }, `${label}: `), folded(text, at, item.line, `argument:${name}`, "value")))),
    output(item, at, marks),
    item.cut && el("p", { class: "note" }, `cut: ${item.cut} `, item.blob && wholeButton(item, at, marks)));
}

// What the model saw of a call's output: its first lines, the rest when it is opened.
function output(item, at, marks) {
  const text = el("pre", { class: `output ${item.cleared !== null ? "cleared" : ""}` }, pieces(item.output.pieces, marks));
  if (item.output.next === null) return text;
  return el("div", { class: "foldable" }, text, moreButton(
    `show all: ${count(item.lines, "line")}, ${count(item.characters, "character")}`, item.output.next,
    async (start) => {
      const page = await ask("text", { ...at, line: item.line, part: "output", start });
      text.append(...pieces(page.pieces, marks));
      return [page.next, page.next === null ? "" : `show more: ${count(item.characters - page.next, "character")} left`];
    }, text));
}

function wholeButton(item, at, marks) {
  return el("button", { class: "whole", onclick: attempt(async (event) => {
    const text = el("pre", { class: "output whole" });
    const box = el("div", { class: "foldable" }, el("p", { class: "dim" }, "the whole output, as the run kept it:"), text);
    const load = async (start) => {
      const page = await ask("blob", { ...at, line: item.line, start });
      text.append(...pieces(page.pieces, marks));
      return [page.next, page.next === null ? "" : `show more: ${size(page.size - page.next)} left`];
    };
    const [next, label] = await load(0);
    if (next !== null) box.append(moreButton(label, next, load, text));
    event.target.closest(".call").append(box);
    event.target.remove();
  }) }, "show the whole output");
}

// A text with a button for what is folded away.
function folded(page, at, line, part, kind) {
  const text = el("pre", { class: kind }, shown(page));
  if (page.next === null) return text;
  return el("div", { class: "foldable" }, text, moreButton(`show ${count(page.left, "more character")}`, page.next, async (start) => {
    const more = await ask("text", { ...at, line, part, start });
    text.append(...shown(more));
    return [more.next, `show ${count(more.left, "more character")}`];
  }, text));
}

function shown(page) {
  return "code" in page ? page.code.map(([kind, text]) => (kind ? el("span", { class: `t-${kind}` }, text) : text)) : [page.text];
}

// A button that loads the next page; once a text was opened, another one folds it again.
function moreButton(label, start, load, text) {
  let next = start;
  const kept = text.childNodes.length;
  const hidden = el("button", { class: "more", hidden: true, onclick: () => {
    const open = text.classList.toggle("folded");
    hidden.textContent = open ? "unfold" : "fold";
  } }, "fold");
  const button = el("button", { class: "more", onclick: attempt(async () => {
    const [following, words] = await load(next);
    next = following;
    button.textContent = words;
    button.hidden = next === null;
    hidden.hidden = text.childNodes.length <= kept;
  }) }, label);
  return el("div", { class: "buttons" }, button, hidden);
}

export function pieces(list, marks) {
  return list.map((piece) => {
    if (typeof piece === "string") return piece;
    if ("own" in piece) return el("span", { class: "own", title: "said by the harness, not printed by the command" }, piece.own);
    const [text, node] = piece;
    const kind = marks.gold.has(node) ? "gold" : marks.given.has(node) ? "given" : "";
    const title = kind === "gold" ? "a right answer" : kind === "given" ? "returned" : null;
    return el("a", { class: `node ${kind}`, data: { node }, tabindex: -1, title }, text);
  });
}
