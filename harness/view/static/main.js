// Which page is shown, and the keys. The address behind # says what is shown, so that Back works.

import { attemptPage } from "./attempt.js";
import { ask, el, failure } from "./dom.js";
import { listPage } from "./list.js";

const PAGES = { list: listPage, attempt: attemptPage };
const KEYS = [
  ["j k", "next, previous question or turn"], ["Enter", "open the question"], ["/", "search"],
  ["n p", "next, previous question of the run"], ["o", "unfold or fold the texts of this turn"],
  ["g G", "next, previous right id that was shown"], ["s", "side by side with another run, and back"],
  ["x", "the other side"], ["u Esc", "back to the list (Esc closes the node first)"], ["?", "these keys"],
];
const main = document.getElementById("main"), help = document.getElementById("help");
let page = null;
let about = null;

function show() {
  const [name, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  const searching = document.activeElement && document.activeElement.type === "search";
  if (page) page.close();
  if (!PAGES[name]) { location.replace("#list?"); return; }
  if (name === "list") sessionStorage.setItem("list", query);
  page = PAGES[name](main, new URLSearchParams(query), about);
  if (searching) {
    const box = main.querySelector("input[type=search]");
    if (box) { box.focus(); box.setSelectionRange(box.value.length, box.value.length); }
  } else {
    window.scrollTo(0, 0);
  }
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(input|select|textarea)$/i.test(event.target.tagName)) return;
  const key = event.key;
  if (help.open) { if (key === "?") help.close(); return; }
  if (key === "?") { help.showModal(); event.preventDefault(); return; }
  const action = page && page.keys[key];
  if (action) { event.preventDefault(); action(); }
}

async function start() {
  help.append(el("h2", null, "Keys"),
    el("dl", { class: "keys" }, KEYS.map(([keys, words]) => [el("dt", null, keys.split(" ").map((key) => el("kbd", null, key))), el("dd", null, words)])),
    el("form", { method: "dialog" }, el("button", null, "close")));
  document.getElementById("bar").append(
    el("a", { href: "#list?", class: "brand" }, "kgshell runs"),
    el("button", { onclick: () => help.showModal(), title: "keys (?)" }, "keys"));
  try {
    about = await ask("runs");
  } catch (error) {
    main.replaceChildren(failure(error));
    return;
  }
  document.title = `${about.runs.map((run) => run.mode).join(", ")} – kgshell runs`;
  window.addEventListener("hashchange", show);
  document.addEventListener("keydown", pressed);
  show();
}

start();
