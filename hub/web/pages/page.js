// Shows new entries of the listed feeds as they arrive, and the examples for the feed
// that is chosen. All text comes from feeds, so it is only ever set as text, and only
// http and https links are made.
"use strict";

const MOST_SHOWN = 100;
const state = document.getElementById("state");
const entries = document.getElementById("entries");
const live = [...document.querySelectorAll("[data-live]")];
const topics = live.map((item) => item.dataset.live);

function element(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function isWebLink(link) {
  return typeof link === "string" && /^https?:\/\//i.test(link);
}

function titleOf(item, source) {
  return item.title || item.summary || item.id || source || "(untitled)";
}

function titleElement(item, source) {
  const isLink = isWebLink(item.permalinkUrl);
  const title = element(isLink ? "a" : "span", titleOf(item, source));
  if (isLink) {
    title.href = item.permalinkUrl;
    title.rel = "noopener noreferrer nofollow";
  }
  return title;
}

function show(item, source) {
  const now = new Date();
  const line = document.createElement("li");
  const time = element("time", now.toLocaleTimeString());
  time.dateTime = now.toISOString();
  const where = element("span", source || "");
  where.className = "source";
  line.append(time, titleElement(item, source), where);
  entries.prepend(line);
  while (entries.childElementCount > MOST_SHOWN) entries.lastElementChild.remove();
}

function receive(event) {
  const message = JSON.parse(event.data);
  const body = message.body;
  for (const item of (body && body.items) || []) {
    if (item.verb !== "delete") show(item, body.title || message.topic);
  }
}

function say(is, text) {
  state.dataset.is = is;
  state.textContent = text;
}

function listen() {
  const query = topics.map((topic) => "topic=" + encodeURIComponent(topic)).join("&");
  const source = new EventSource("/stream?" + query);
  source.addEventListener("open", () =>
    say("open", "Listening. New entries appear here by themselves.")
  );
  source.addEventListener("notification", receive);
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) {
      say("lost", "Live entries are not available here without a token.");
    } else {
      say("lost", "The connection was lost; trying again.");
    }
  });
}

// As Python's shlex.quote has it.
function quotedForShell(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\"'\"'") + "'";
}

const SPELLINGS = { plain: String, shell: quotedForShell, json: JSON.stringify };

function choose(topic, chosen) {
  for (const each of document.querySelectorAll("[data-topic]")) {
    each.textContent = SPELLINGS[each.dataset.topic](topic);
  }
  for (const button of document.querySelectorAll("[aria-pressed]")) {
    button.setAttribute("aria-pressed", String(button === chosen));
  }
}

function offerChoice(item, index) {
  const button = element("button", "Show how");
  button.type = "button";
  button.setAttribute("aria-pressed", String(index === 0));
  button.setAttribute("aria-label", "Show how to subscribe to " + item.dataset.live);
  button.addEventListener("click", () => choose(item.dataset.live, button));
  item.prepend(button);
}

if (topics.length > 1) live.forEach(offerChoice);
if (topics.length) listen();
