// The panel with a node's record.

import { ask, chip, el, failure, put } from "./dom.js";

const panel = document.getElementById("node");

export async function showNode(run, id, marks) {
  panel.hidden = false;
  panel.replaceChildren(el("p", { class: "dim" }, `node ${id} …`));
  try {
    const node = await ask("node", { run, id });
    put(panel,
      head(`${node.id} ${node.name}`),
      el("p", null, chip(node.type, "quiet"), !node.candidate && chip("no candidate", "warn"),
        marks.gold.has(id) && chip("right", "good"), marks.given.has(id) && chip("returned", "mark")),
      el("dl", null, node.attributes.map(([name, value]) => [el("dt", null, name), el("dd", null, value)])));
  } catch (error) {
    panel.replaceChildren(head(`node ${id}`), failure(error));
  }
}

export function hideNode() {
  const was = !panel.hidden;
  panel.hidden = true;
  return was;
}

function head(title) {
  return el("div", { class: "head" }, el("h2", null, title), el("button", { onclick: hideNode, "aria-label": "close" }, "close"));
}
