// Elements, requests and figures. Texts become text nodes; nothing here or elsewhere makes markup from a string.

export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Replaces what is in a node; children that are null or false are left out.
export function put(node, ...children) {
  node.replaceChildren(...el("div", null, ...children).childNodes);
}

export async function ask(route, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters || {})) {
    if (value !== "" && value !== null && value !== undefined) query.set(name, value);
  }
  const answer = await fetch(`api/${route}?${query}`, { signal });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

export function link(name, parameters) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== "" && value !== null && value !== undefined) query.set(key, value);
  }
  return `#${name}?${query}`;
}

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function number(value) {
  return value === null || value === undefined ? "-" : whole.format(value);
}

export function count(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "-";
  if (value < 60) return `${value.toFixed(1)} s`;
  const minutes = Math.floor(value / 60) % 60, rest = String(Math.floor(value % 60)).padStart(2, "0");
  const hours = Math.floor(value / 3600);
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

export function money(value) {
  return value === null || value === undefined ? "-" : `$${value.toFixed(value < 1 ? 4 : 2)}`;
}

export function size(bytes) {
  let value = bytes;
  if (value < 1024) return `${value} B`;
  for (const unit of ["KiB", "MiB"]) {
    value /= 1024;
    if (value < 999.95) return `${value.toFixed(1)} ${unit}`;
  }
  return `${(value / 1024).toFixed(1)} GiB`;
}

// Tokens as a phrase, empty where none are known.
export function tokens(usage) {
  if ([usage.input, usage.output].every((value) => value === null || value === undefined)) return "";
  return `${count(usage.input, "token")} in (${number(usage.cached)} cached), ${number(usage.output)} out`;
}

export function failure(error) {
  return el("p", { class: "bad", role: "alert" }, error.message || String(error));
}

export function chip(text, kind, title) {
  return el("span", { class: `chip ${kind || ""}`, title }, text);
}

const KINDS = { hit: "good", miss: "bad", failed: "warn", open: "quiet" };

export function verdict(name, rank) {
  return chip(name === "miss" && rank ? `right at ${rank}` : name, KINDS[name] || (name.startsWith("right") ? "bad" : "quiet"));
}

// Wraps a handler of a click so that what goes wrong is shown beside the thing that was clicked.
export function attempt(handler) {
  return async (event) => {
    const target = event.currentTarget;
    target.disabled = true;
    try {
      await handler(event);
    } catch (error) {
      target.after(failure(error));
    } finally {
      target.disabled = false;
    }
  };
}
