// Runs page.js on a document of plain objects, says events to it, and prints what the
// page would show. Arguments: the program's path, and the events as JSON.
"use strict";
const fs = require("fs");
const [program, events] = [process.argv[2], JSON.parse(process.argv[3])];

class Node {
  constructor(tag) { this.tag = tag; this.children = []; this.textContent = ""; this.dataset = {}; }
  append(...nodes) { this.children.push(...nodes); }
  prepend(node) { this.children.unshift(node); node.parent = this; }
  get childElementCount() { return this.children.length; }
  get lastElementChild() { return this.children.at(-1); }
  remove() { this.parent.children = this.parent.children.filter((each) => each !== this); }
}

const nodes = { state: new Node("p"), entries: new Node("ol") };
globalThis.document = {
  getElementById: (id) => nodes[id],
  querySelectorAll: () => [{ dataset: { live: "https://a.example/?x=1&y=2" } }],
  createElement: (tag) => new Node(tag),
};
globalThis.EventSource = class {
  static CLOSED = 2;
  constructor(url) { this.listeners = {}; this.url = url; globalThis.source = this; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
};

(0, eval)(fs.readFileSync(program, "utf8"));
for (const { name, data, readyState } of events) {
  source.readyState = readyState;
  source.listeners[name]({ data: JSON.stringify(data) });
}
console.log(JSON.stringify({
  url: source.url,
  state: nodes.state.textContent,
  entries: nodes.entries.children.map((line) => {
    const [, title, where] = line.children;
    return [title.tag, title.textContent, title.href || null, where.textContent];
  }),
}));
