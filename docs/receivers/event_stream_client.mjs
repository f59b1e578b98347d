// Entries as they come, as server-sent events, from where it left off. Node 20 or newer,
// and nothing else. (In a page, `new EventSource(url)` resumes by itself.)
//
//     HUB=https://hub.example TOPIC=… node event_stream_client.mjs

import * as fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const { HUB, TOPIC, CURSOR = "cursor" } = process.env;

// What your program does with one entry. After a crash it may get one twice.
async function work(item) {
  console.log("entry", item.id, item.title ?? "");
}

async function take(event) {
  if (event.event === "reset") console.log("gap: records are no longer kept");
  if (event.event === "notification") {
    const { body } = JSON.parse(event.data);
    for (const item of (body.items ?? []).reverse()) await work(item);
  }
  if (event.id) { // done with everything up to there
    fs.writeFileSync(`${CURSOR}.new`, event.id);
    fs.renameSync(`${CURSOR}.new`, CURSOR);
  }
}

// Of each block of lines its fields: event, data, id.
async function* events(body) {
  let text = "";
  for await (const part of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + part).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      yield Object.fromEntries(block.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }));
    }
  }
}

// Over one connection, until it is lost.
async function follow() {
  const headers = { Accept: "text/event-stream" };
  if (fs.existsSync(CURSOR)) headers["Last-Event-ID"] = fs.readFileSync(CURSOR, "utf8");
  const url = `${HUB}/stream?${new URLSearchParams({ topic: TOPIC })}`;
  const stopping = new AbortController();
  const ring = () => stopping.abort(new Error("nothing came"));
  let quiet = setTimeout(ring, 60_000); // the hub says something every 25 s
  try {
    const answer = await fetch(url, { headers, signal: stopping.signal });
    if (!answer.ok && ![429, 503].includes(answer.status)) {
      console.error(await answer.text());
      process.exit(1);
    }
    for await (const event of events(answer.body)) {
      clearTimeout(quiet);
      quiet = setTimeout(ring, 60_000);
      await take(event);
    }
  } finally {
    clearTimeout(quiet);
  }
}

for (;;) {
  try {
    await follow();
  } catch (error) {
    console.log("connection lost:", error.message);
  }
  await sleep(2000);
}
