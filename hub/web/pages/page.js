// Shows new entries of the listed feeds as they arrive. All text comes from feeds, so
// it is only ever set as text, and only http and https links are made.
"use strict";

const MOST_SHOWN = 100;
const state = document.getElementById("state");
const entries = document.getElementById("entries");
const topics = [...document.querySelectorAll("[data-live]")].map((item) => item.dataset.live);

function isWebLink(link) {
  return typeof link === "string" && /^https?:\/\//i.test(link);
}

function titleOf(item, source) {
  return item.title || item.summary || item.id || source || "(untitled)";
}

function show(item, source) {
  const line = document.createElement("li");
  const time = document.createElement("time");
  time.textContent = new Date().toLocaleTimeString();
  line.append(time, " ");
  const isLink = isWebLink(item.permalinkUrl);
  const title = document.createElement(isLink ? "a" : "span");
  title.textContent = titleOf(item, source);
  if (isLink) {
    title.href = item.permalinkUrl;
    title.rel = "noopener noreferrer nofollow";
  }
  line.append(title, source ? ` · ${source}` : "");
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

function listen() {
  const query = topics.map((topic) => "topic=" + encodeURIComponent(topic)).join("&");
  const source = new EventSource("/stream?" + query);
  source.addEventListener("open", () => {
    state.textContent = "Listening. New entries appear here by themselves.";
  });
  source.addEventListener("notification", receive);
  source.addEventListener("error", () => {
    state.textContent =
      source.readyState === EventSource.CLOSED
        ? "Live entries are not available here without a token."
        : "The connection was lost; trying again.";
  });
}

if (topics.length) listen();
