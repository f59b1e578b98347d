// Entries as they come, over a websocket, from where it left off. Node 22 or newer (20:
// node --experimental-websocket), and nothing else.
//
//     HUB=https://hub.example TOPIC=… node websocket_client.mjs

import * as fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const { HUB, TOPIC, CURSOR = "cursor" } = process.env;

// What your program does with one entry. After a crash it may get one twice.
async function work(item) {
  console.log("entry", item.id, item.title ?? "");
}

async function take(message) {
  if (message.type === "error") throw new Error(message.reason);
  if (message.type === "reset") console.log("gap: records are no longer kept");
  if (message.type === "notification") {
    for (const item of (message.body.items ?? []).reverse()) await work(item);
  }
  if (message.cursor) { // done with everything up to there
    fs.writeFileSync(`${CURSOR}.new`, message.cursor);
    fs.renameSync(`${CURSOR}.new`, CURSOR);
  }
}

// Over one connection, until it is lost.
function follow() {
  const query = new URLSearchParams({ topic: TOPIC });
  if (fs.existsSync(CURSOR)) query.set("cursor", fs.readFileSync(CURSOR, "utf8"));
  const socket = new WebSocket(`${HUB.replace(/^http/, "ws")}/stream?${query}`);
  return new Promise((resolve, reject) => {
    let quiet, before = Promise.resolve();
    const listen = () => { // the hub says something every 25 s
      clearTimeout(quiet);
      quiet = setTimeout(() => resolve("nothing came"), 60_000);
    };
    listen();
    socket.onmessage = ({ data }) => {
      listen();
      before = before.then(() => take(JSON.parse(data))); // one after the other
      before.catch(reject);
    };
    socket.onclose = ({ code, reason }) => {
      clearTimeout(quiet);
      before.then(() => resolve(`${code} ${reason}`), reject);
    };
    socket.onerror = () => {}; // the close follows
  }).finally(() => socket.close());
}

for (;;) {
  console.log("connection lost:", await follow());
  await sleep(2000);
}
