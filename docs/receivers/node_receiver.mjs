// A receiver for a hub's notifications, with Node 20 or newer and nothing else.
//
//     SECRET=… TOPIC=… PORT=9000 node node_receiver.mjs
//
// Put your own code into `work`. docs/how-to/receivers.md says what the rest does, and why.

import { createHmac, timingSafeEqual } from "node:crypto";
import * as fs from "node:fs";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const { SECRET, TOPIC, HUB = "", TOKEN = "" } = process.env;
const FOLDER = process.env.FOLDER ?? "received";
const INBOX = `${FOLDER}/inbox`, DONE = `${FOLDER}/done`, LAST = `${FOLDER}/last`;
if (!SECRET || !TOPIC) throw new Error("SECRET and TOPIC are to be given");
for (const folder of [INBOX, DONE]) fs.mkdirSync(folder, { recursive: true });

// What your program does with one entry. It may get one twice: keep it by its id, so
// that the second time changes nothing.
async function work(item) {
  console.log("entry", item.id, item.title ?? "");
}

// The hub asks whether this subscription is meant, or says that it has ended.
function confirm(query) {
  if (query.get("hub.topic") !== TOPIC) return [404, "not subscribed to this topic"];
  if (query.get("hub.mode") === "denied") console.log("ended:", query.get("hub.reason"));
  return [200, query.get("hub.challenge") ?? ""];
}

// Keep a notification, once, and answer; the worker does the rest.
function take(headers, body) {
  const id = headers["webhook-id"] ?? "";
  if (!isGenuine(headers, body, SECRET) || !/^[\w-]+$/.test(id)) {
    return [403, "the signature is wrong"];
  }
  if (!fs.existsSync(`${DONE}/${id}`)) {
    const missed = Buffer.from(`${headers["fanfare-missed"] ?? ""}\n`);
    write(`${INBOX}/${id}`, Buffer.concat([missed, body]));
  }
  return [204, ""];
}

// headers: by names in lower case; body: a Buffer of the bytes as they came
export function isGenuine(headers, body, secret) {
  const id = headers["webhook-id"], at = headers["webhook-timestamp"];
  if (!(Math.abs(Date.now() / 1000 - Number(at)) <= 300)) return false;
  const isBase64 = secret.startsWith("whsec_");
  const key = isBase64 ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret);
  const hmac = createHmac("sha256", key).update(`${id}.${at}.`).update(body);
  const expected = Buffer.from("v1," + hmac.digest("base64"));
  return (headers["webhook-signature"] ?? "").split(" ").some((each) => {
    const given = Buffer.from(each);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

// All of it or nothing, and on the disk before the hub is answered.
function write(path, content) {
  const file = fs.openSync(`${FOLDER}/writing`, "w");
  fs.writeSync(file, content);
  fs.fsyncSync(file);
  fs.closeSync(file);
  fs.renameSync(`${FOLDER}/writing`, path);
}

function readLast() {
  return fs.existsSync(LAST) ? fs.readFileSync(LAST, "utf8") : "";
}

async function workForever() {
  let before = HUB ? readLast() : "";
  for (;;) {
    before = await resume(before);
    try {
      const ids = fs.readdirSync(INBOX).sort((a, b) => positionOf(a) - positionOf(b));
      for (const id of ids) await workOn(id);
    } catch (error) { // it stays in the inbox, and so its order
      console.log("tried again in 5 s:", error);
      await sleep(5000);
    }
    await sleep(before ? 5000 : 200);
  }
}

// Ask for what came after the last notification that was here at the start; "" once that
// is done. The hub remembers what was not taken; this is for what was taken and lost
// with a disk.
async function resume(before) {
  if (!before) return "";
  const [, position, subscription] = before.split("-");
  const body = JSON.stringify({ record: Number(position) + 1 });
  try {
    await ask(`/api/subscriptions/${subscription}/replay`, { method: "POST", body });
    return "";
  } catch (error) {
    console.log("could not resume, tried again in 5 s:", error.message);
    return before;
  }
}

async function workOn(id) {
  const content = fs.readFileSync(`${INBOX}/${id}`), end = content.indexOf("\n");
  const missed = content.subarray(0, end).toString(), last = readLast() || id;
  const isOfLog = positionOf(id) > 0; // and not a test, for example
  const isOtherEpoch = isOfLog && id.split("-")[0] !== last.split("-")[0];
  if (missed || isOtherEpoch) {
    // The hub no longer had these records, or was restored from a backup.
    console.log("gap", missed || "a new epoch");
    await readBack();
  }
  const document = JSON.parse(content.subarray(end + 1));
  if (!document.items) console.log("the feed's status:", document.status.http);
  for (const item of (document.items ?? []).reverse()) await work(item);
  if (isOtherEpoch || (isOfLog && positionOf(id) >= positionOf(last))) {
    write(LAST, Buffer.from(id));
  }
  fs.renameSync(`${INBOX}/${id}`, `${DONE}/${id}`);
}

// Ids are EPOCH-POSITION-SUBSCRIPTION.
function positionOf(id) {
  return Number(/^\w+-(\d+)-\d+$/.exec(id)?.[1] ?? 0);
}

// The topic's newest entries, which are more than were missed, or all there are.
async function readBack() {
  if (!HUB) return;
  const query = { "hub.mode": "retrieve", "hub.topic": TOPIC, count: 50, format: "json" };
  const found = await ask(`/?${new URLSearchParams(query)}`);
  for (const item of found.items.reverse()) await work(item);
}

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
  const signal = AbortSignal.timeout(30_000);
  const answer = await fetch(HUB + path, { ...options, headers, signal });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return answer.json();
}

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const query = new URL(request.url, "http://callback").searchParams;
  const [status, text] = request.method === "POST"
    ? take(request.headers, Buffer.concat(parts))
    : confirm(query);
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" }).end(text);
}).listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
workForever();
