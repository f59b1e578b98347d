// The pages work without this: it tells times in the viewer's zone, copies texts, and shows what arrives.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const precise = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function span(size) {
  const [unit, length] = units.find(([, each]) => size >= each) ?? units.at(-1);
  return `${Number((size / length).toPrecision(3))} ${unit}`;
}

function relative(seconds) {
  const size = Math.round(Math.abs(seconds));
  if (size === 0) return "now";
  return seconds > 0 ? `in ${span(size)}` : `${span(size)} ago`;
}

function tell() {
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    time.title = exact.format(at);
    if ("exact" in time.dataset) {
      time.textContent = precise.format(at);
      continue;
    }
    const seconds = (at - Date.now()) / 1000;
    const isSpan = "span" in time.dataset;
    const text = isSpan ? `for ${span(Math.round(Math.abs(seconds)))}` : relative(seconds);
    if (time.textContent !== text) time.textContent = text;
  }
}

// Marks of an axis, which are drawn in UTC.
function tellTick(tick) {
  const at = new Date(tick.dataset.at);
  const options = "days" in tick.dataset ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit" };
  tick.textContent = new Intl.DateTimeFormat(undefined, options).format(at);
}

// Fields that hold UTC are shown in the viewer's zone, and sent as UTC again.
function localize(input) {
  if (input.value) {
    const at = new Date(`${input.value}Z`);
    input.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  }
  for (const zone of input.closest("label").querySelectorAll("[data-zone]")) zone.remove();
  input.form.addEventListener("formdata", ({ formData }) => {
    if (input.value) formData.set(input.name, `${new Date(input.value).toISOString().slice(0, 16)}Z`);
  });
}

function offerCopy(button) {
  const words = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = words), 2000);
  });
}

// New entries of a topic, as the hub sends them, are put before those that are there. What they say is only
// ever set as text, and only http and https links are made.
const MOST_FOLLOWED = 200;

function entryLine(item) {
  const line = document.createElement("li");
  const isLink = /^https?:\/\//i.test(item.permalinkUrl ?? "");
  const title = document.createElement(isLink ? "a" : "span");
  title.textContent = item.title || "(untitled)";
  if (isLink) Object.assign(title, { href: item.permalinkUrl, rel: "noopener nofollow" });
  const time = document.createElement("time");
  time.dateTime = (item.published ? new Date(item.published * 1000) : new Date()).toISOString();
  const when = document.createElement("p");
  when.className = "quiet";
  when.append(time);
  line.dataset.entry = item.id;
  line.append(title, when);
  return line;
}

function follow(list) {
  const status = document.getElementById(list.dataset.status);
  const source = new EventSource(list.dataset.follow);
  source.addEventListener("open", () => {
    status.textContent = "New entries appear here as they arrive.";
  });
  source.addEventListener("notification", ({ data }) => {
    const { body, kind } = JSON.parse(data);
    if (kind !== "entries") return;
    for (const item of [...(body.items ?? [])].reverse()) {
      if ([...list.children].some(({ dataset }) => dataset.entry === item.id)) continue;
      list.prepend(entryLine(item));
      if (list.childElementCount > MOST_FOLLOWED) list.lastElementChild.remove();
    }
    tell();
  });
  source.addEventListener("reset", () => {
    status.textContent = "Some entries were missed: reload to see them. New ones appear here as they arrive.";
  });
  source.addEventListener("error", () => {
    status.textContent = source.readyState === EventSource.CLOSED
      ? "Nothing arrives by itself now: reload for new entries."
      : "The connection was lost; trying again.";
  });
}

if (navigator.clipboard) document.querySelectorAll("button[data-copy]").forEach(offerCopy);
document.querySelectorAll("input[data-utc]").forEach(localize);
document.querySelectorAll("[data-follow]").forEach(follow);
document.querySelectorAll("text[data-at]").forEach(tellTick);
tell();
setInterval(tell, 10000);
