// The pages work without this: it tells times in the viewer's zone, copies texts, shows what arrives, and
// keeps open pages as they would be if they were reloaded.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long", hourCycle: "h23" });
const precise = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

// In two units at most, from whole seconds: as the hub writes durations.
function span(seconds) {
  const twoUnits = (count, size, unit, small) => {
    const rest = count % size;
    return `${(count - rest) / size} ${unit}${rest ? ` ${rest} ${small}` : ""}`;
  };
  const [minutes, hours] = [Math.round(seconds / 60), Math.round(seconds / 3600)];
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return twoUnits(seconds, 60, "min", "s");
  return minutes < 1440 ? twoUnits(minutes, 60, "h", "min") : twoUnits(hours, 24, "d", "h");
}

function relative(seconds) {
  const size = Math.round(Math.abs(seconds));
  if (size === 0) return "now";
  return seconds > 0 ? `in ${span(size)}` : `${span(size)} ago`;
}

function tell(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!("told" in time.dataset)) {
      time.dataset.told = "";
      time.title = exact.format(at);
      if ("exact" in time.dataset) time.textContent = precise.format(at);
    }
    if ("exact" in time.dataset) continue;
    const seconds = (at - Date.now()) / 1000;
    const isSpan = "span" in time.dataset;
    const text = isSpan ? `for ${span(Math.round(Math.abs(seconds)))}` : relative(seconds);
    if (time.textContent !== text) time.textContent = text;
  }
}

// Marks of an axis, which are drawn in UTC.
function tellTick(tick) {
  const at = new Date(tick.dataset.at);
  const options = "days" in tick.dataset ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  tick.textContent = new Intl.DateTimeFormat(undefined, options).format(at);
}

// Parts of a plot lead to what happened in them; a click says which minute, or bucket, of a part is meant.
function narrow(event) {
  const link = event.target.closest?.("svg[data-since] a");
  if (!link) return;
  const svg = link.ownerSVGElement;
  const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
  const [left, right] = svg.dataset.ends.split(" ").map(Number);
  const [since, until, step] = [svg.dataset.since, svg.dataset.until, svg.dataset.step].map(Number);
  const span = Math.max(step, 60);
  const share = Math.min(Math.max((place - left) / (right - left), 0), 1);
  const start = Math.floor((since + share * (until - since)) / span) * span;
  const text = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16) + "Z";
  link.setAttribute("href", `/admin/entries?since=${text(start)}&until=${text(start + span)}`);
}

// The hours of a week, which are drawn in UTC, to the nearest hour of the viewer's zone.
function turnWeek(picture) {
  const shift = Math.round(-new Date().getTimezoneOffset() / 60);
  picture.querySelectorAll("rect").forEach((cell, place) => {
    const hour = (place + shift + 168) % 168;
    cell.setAttribute("x", 40 + (hour % 24) * 24);
    cell.setAttribute("y", Math.floor(hour / 24) * 23);
  });
  document.getElementById("week-zone").textContent = "your zone";
}

function tellZone(place) {
  const now = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" }).formatToParts(new Date());
  const zone = now.find(({ type }) => type === "timeZoneName").value.replace("GMT", "UTC");
  place.textContent = `Times are in your zone, ${zone}`;
  place.title = exact.format(new Date());
}

// Fields that hold UTC are shown in the viewer's zone, and sent as UTC again.
function showLocal(input) {
  if (!input.value) return;
  const at = new Date(`${input.value}Z`);
  input.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

function localize(input) {
  showLocal(input);
  for (const zone of input.closest("label").querySelectorAll("[data-zone]")) zone.remove();
  input.form.addEventListener("formdata", ({ formData }) => {
    if (input.value) formData.set(input.name, `${new Date(input.value).toISOString().slice(0, 19)}Z`);
  });
}

async function copy(button) {
  const words = button.textContent;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = words), 2000);
}

// What a page of the hub is made into, and each part of one that comes later.
function prepare(root) {
  const token = document.querySelector("input[name=form_token]");
  for (const input of root.querySelectorAll("input[name=form_token]")) input.setAttribute("value", token.value);
  if (navigator.clipboard) for (const button of root.querySelectorAll("button[data-copy]")) button.hidden = false;
  root.querySelectorAll("text[data-at]").forEach(tellTick);
  for (const plot of root.querySelectorAll(".plot .scroll")) plot.scrollLeft = plot.scrollWidth; // now is at its end
  tell(root);
}

// A list whose rows come and go stands still while it is paused or read: while the pointer is over it, the
// keyboard is in it, or text of it is selected. A button says what waits, and shows it; it is read out to
// nobody unasked.
const hasPointer = matchMedia("(hover: hover)");
const HOLDING = ["pointerleave", "focusout"];

function isSelectedIn(element) {
  const selection = getSelection();
  return selection.rangeCount > 0 && !selection.isCollapsed && selection.containsNode(element, true);
}

class SteadyList {
  isPaused = false;

  // `count`: what waits, in words; "" if nothing does. `show`: shows it.
  constructor(element, count, show) {
    Object.assign(this, { element, count, show });
    this.button = Object.assign(document.createElement("button"), { type: "button", className: "waiting", hidden: true });
    this.button.addEventListener("click", () => this.let());
    element.prepend(this.button);
    for (const each of HOLDING) element.addEventListener(each, () => setTimeout(() => this.settle()));
    document.addEventListener("selectionchange", () => this.settle());
  }

  get isHeld() {
    const { element } = this;
    const isPointedAt = hasPointer.matches && element.matches(":hover");
    return this.isPaused || isPointedAt || Boolean(element.querySelector(":focus-visible")) || isSelectedIn(element);
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    this.settle();
  }

  settle() {
    if (!this.isHeld) return this.let();
    const words = this.count();
    this.button.hidden = !words && this.button !== document.activeElement;
    const text = words ? `${words}: show` : "All is shown";
    if (this.button.textContent !== text) this.button.textContent = text;
  }

  let() {
    this.show();
    if (this.isHeld) this.settle();
    else this.button.hidden = true;
  }
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
  const at = item.published ?? item.updated;
  time.dateTime = (at ? new Date(at * 1000) : new Date()).toISOString();
  const when = document.createElement("p");
  when.className = "quiet";
  when.append(time);
  line.dataset.entry = item.id;
  line.append(title, when);
  return line;
}

// A notification as it is sent, with what it tells of.
function notificationLine({ kind, cursor, body }) {
  const line = document.createElement("li");
  const [head, time, list] = ["p", "time", "ul"].map((name) => document.createElement(name));
  time.dateTime = new Date().toISOString();
  head.append(`${kind} · ${cursor} · `, time);
  for (const item of body.items ?? []) list.append(entryLine(item));
  const [details, summary, json] = ["details", "summary", "pre"].map((name) => document.createElement(name));
  summary.textContent = "The notification";
  json.textContent = JSON.stringify(body, null, 2);
  json.tabIndex = 0;
  details.append(summary, json);
  line.dataset.entry = cursor;
  line.append(head, list, details);
  return line;
}

function linesOf(data, isWhole) {
  const notification = JSON.parse(data);
  if (isWhole) return [notificationLine(notification)];
  return notification.kind === "entries" ? [...(notification.body.items ?? [])].reverse().map(entryLine) : [];
}

function follow(list) {
  const waiting = [];
  const show = () => {
    for (const line of waiting.splice(0)) {
      list.prepend(line);
      if (list.childElementCount > MOST_FOLLOWED) list.lastElementChild.remove();
    }
    tell(list);
  };
  const steady = new SteadyList(list.parentElement, () => waiting.length && `${waiting.length} new`, show);
  const status = document.getElementById(list.dataset.status);
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Pause" });
  const pause = (isPaused) => {
    button.setAttribute("aria-pressed", isPaused);
    steady.pause(isPaused);
  };
  button.addEventListener("click", () => pause(!steady.isPaused));
  pause(false);
  status.after(button);
  const source = new EventSource(list.dataset.follow);
  const isWhole = list.dataset.show === "notifications";
  source.addEventListener("open", () => {
    status.textContent = isWhole ? "Notifications appear here as they come." : "New entries appear here as they arrive.";
  });
  source.addEventListener("notification", ({ data }) => {
    for (const line of linesOf(data, isWhole)) {
      if ([...list.children, ...waiting].some(({ dataset }) => dataset.entry === line.dataset.entry)) continue;
      waiting.push(line);
      if (waiting.length > MOST_FOLLOWED) waiting.shift();
    }
    steady.settle();
  });
  source.addEventListener("reset", () => {
    status.textContent = "Some entries were missed: reload to see them. New ones appear here as they arrive.";
  });
  source.addEventListener("error", () => {
    status.textContent = source.readyState === EventSource.CLOSED
      ? (isWhole ? "Nothing comes: there is no such topic, or your session has ended." : "Nothing arrives by itself now: reload for new entries.")
      : "The connection was lost; trying again.";
  });
}

// Parts of the page that changed. They become what they are to be, instead of being replaced: so the focus,
// a selection, what is open, typed or ticked stays.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let hasBegun = false; // what comes first is no change
const VIEWERS_OWN = { DETAILS: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"], TEXTAREA: ["value"] };

function become(old, fresh) {
  if (old.isEqualNode(fresh) || fresh.dataset?.keep === "") return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = fresh.data;
    if (old.data.trim()) flash(old.parentElement);
    return;
  }
  const own = VIEWERS_OWN[old.nodeName] ?? [];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !own.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !own.includes(name)) old.setAttribute(name, value);
  }
  if (old.nodeName !== "TEXTAREA") becomeInside(old, fresh);
}

function flash(element) {
  if (hasBegun && !calm.matches && !element.closest("time, svg")) element.animate([{ backgroundColor: "var(--flash)" }, {}], 900);
}

function becomeInside(old, fresh) {
  const wanted = new Set([...fresh.children].map(({ id }) => id));
  const known = new Map();
  for (const child of [...old.children]) {
    if (!child.id) continue;
    if (wanted.has(child.id)) known.set(child.id, child);
    else child.remove();
  }
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const isAlike = at && !at.id && !child.id && at.nodeName === child.nodeName;
    const there = known.get(child.id) ?? (isAlike ? at : null);
    while (there && at && at !== there && !at.id) at = removed(at);
    if (there === null) {
      old.insertBefore(child, at);
      continue;
    }
    if (there !== at) (old.moveBefore ?? old.insertBefore).call(old, there, at);
    become(there, child);
    at = there.nextSibling;
  }
  while (at) at = removed(at);
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

// A part of the page that stands still while it is held; meanwhile a copy of it changes.
class SteadyTable extends SteadyList {
  part = this.element.querySelector("[data-live]");

  constructor(element) {
    super(element, () => this.changes(), () => this.showCopy());
  }

  // Whether the fresh part belongs to a copy, which it has then become part of.
  take(fresh) {
    if (!this.copy && this.isHeld) this.copy = this.part.cloneNode(true);
    const old = fresh.id === this.copy?.id ? this.copy : this.copy?.querySelector(`#${fresh.id}`);
    if (!old) return false;
    become(old, fresh);
    this.settle();
    return true;
  }

  changes() {
    if (!this.copy) return "";
    tell(this.copy); // or times would differ
    if (this.copy.isEqualNode(this.part)) return "";
    const [shown, now] = [this.part, this.copy].map((each) => [...each.querySelectorAll("tr[id]")].map(({ id }) => id));
    const beyond = (some, others) => some.filter((id) => !others.includes(id)).length;
    const [come, gone] = [beyond(now, shown), beyond(shown, now)];
    return [come && `${come} new`, gone && `${gone} gone`].filter(Boolean).join(", ") || "newer figures";
  }

  showCopy() {
    const { copy } = this;
    this.copy = null;
    if (!copy) return;
    become(this.part, copy);
    tell(this.part);
  }
}

const tables = [...document.querySelectorAll("[data-steady]:has([data-live])")].map((each) => new SteadyTable(each));

function swap(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const fresh = template.content.firstElementChild;
  prepare(template.content);
  if (tables.some((each) => each.take(fresh))) return;
  const old = document.getElementById(fresh.id);
  if (!old) return;
  const focused = document.activeElement;
  const place = old.contains(focused) ? old.closest("[tabindex]") : null;
  become(old, fresh);
  if (place && !focused.isConnected) place.focus();
}

// The stream of a page: its own address, asked for as events. Who comes back to it is sent all parts, so it
// rests while nobody looks, and while text of a part is selected.
const SILENT = 30000;
const LONGEST_WAIT = 15000;
const INTERNAL_ERROR = 1011;
const NOT_AUTHORIZED = 3500;
const PAGE_GONE = 3503;
const FULL = "Nothing moves here while many other pages of the hub are open.";
const FAILED = "The hub fails to make this page again; its log says why.";
const LOST = "The connection to the hub is lost; trying again.";

// Over HTTP/1.1 a browser has six connections to a hub, for all its windows: some are left for opening pages.
const MOST_MOVING = 4;
const isMultiplexed = /^h[23]/.test(performance.getEntriesByType("navigation")[0]?.nextHopProtocol ?? "");

async function withPlace(take) {
  if (isMultiplexed || !navigator.locks) return take();
  for (let place = 0; place < MOST_MOVING; place++) {
    const wait = await navigator.locks.request(`fanfare-${place}`, { ifAvailable: true }, (lock) => lock && take());
    if (wait !== null) return wait;
  }
  return null;
}

async function* eventsOf(answer) {
  let text = "";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const field = (name) => event.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      yield { name: field("event"), data: field("data") };
    }
  }
}

function watch(panel) {
  const [status, button] = panel.children;
  const resting = new Set();
  let isRunning = false;
  let isOver = false;
  let trouble = LOST; // why nothing moves, unless it does again
  let stop = () => {};

  function say(text, link = "") {
    if (status.textContent === text + link) return;
    status.replaceChildren(text);
    if (link) status.append(Object.assign(document.createElement("a"), { href: location.href, textContent: link }));
  }

  function end(text, link) {
    isOver = button.hidden = true;
    say(text, link);
  }

  function endOf(code, reason) {
    if (code === NOT_AUTHORIZED) end("Your session has ended: ", "log in again");
    else if (code === PAGE_GONE) end(`Nothing moves here any more: ${reason}`);
  }

  function isSelected() {
    return [...document.querySelectorAll("[data-live]:not([data-steady] *)")].some(isSelectedIn);
  }

  function take({ name, data }) {
    if (name === "closed") {
      const { code, reason } = JSON.parse(data);
      endOf(code, reason);
      if (code === INTERNAL_ERROR) trouble = FAILED;
    } else if (name === "parts" && isSelected()) {
      rest("selection");
      say("Nothing moves while text is selected.");
    } else if (name === "parts") {
      JSON.parse(data).forEach(swap);
      panel.dataset.watch = "moving";
      hasBegun = true;
    }
  }

  // Until it ends; returns the milliseconds after which to try again.
  async function listen(wait) {
    const control = new AbortController();
    stop = () => control.abort();
    let timer = setTimeout(stop, SILENT);
    hasBegun = false;
    trouble = LOST;
    try {
      const answer = await fetch(location.pathname + location.search, {
        headers: { Accept: "text/event-stream" },
        signal: control.signal,
      });
      if (!answer.ok) {
        if ([401, 403].includes(answer.status)) endOf(NOT_AUTHORIZED);
        if (answer.status === 404) endOf(PAGE_GONE, "it was removed");
        if ([429, 503].includes(answer.status)) trouble = FULL;
        return Math.max(2 * wait, 1000 * Number(answer.headers.get("Retry-After") ?? 0));
      }
      say("");
      for await (const event of eventsOf(answer)) {
        clearTimeout(timer);
        timer = setTimeout(stop, SILENT);
        take(event);
      }
      return trouble === LOST ? 1000 : LONGEST_WAIT;
    } catch {
      return 2 * wait;
    } finally {
      clearTimeout(timer);
    }
  }

  async function run() {
    if (isRunning) return;
    isRunning = true;
    for (let wait = 500; !isOver && !resting.size;) {
      const next = await withPlace(() => listen(wait));
      wait = Math.min(LONGEST_WAIT, next ?? 2000);
      if (isOver || resting.size) break;
      say(next === null ? FULL : trouble);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
    isRunning = false;
    if (!isOver && !resting.size) run();
  }

  function rest(reason) {
    resting.add(reason);
    stop();
  }

  function goOn(reason) {
    if (resting.delete(reason)) say("");
    if (!resting.size && !isOver) run();
  }

  button.addEventListener("click", () => {
    const isPaused = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", isPaused);
    if (tables.length) {
      for (const each of tables) each.pause(isPaused);
      say(isPaused ? "The list stands still until you go on." : "");
    } else (isPaused ? rest : goOn)("button");
    if (resting.has("button")) say("Nothing moves until you go on.");
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? rest : goOn)("hidden"));
  document.addEventListener("selectionchange", () => {
    if (resting.has("selection") && !isSelected()) goOn("selection");
  });
  panel.hidden = false;
  if (document.hidden) resting.add("hidden");
  run();
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button[data-copy]");
  if (button) copy(button);
});
document.querySelectorAll("input[data-utc]").forEach(localize);
// Who goes back finds the filter of the list that is shown, not what was chosen there before leaving.
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted && performance.getEntriesByType("navigation")[0]?.type !== "back_forward") return;
  for (const form of document.querySelectorAll("form[role=search]")) {
    form.reset();
    form.querySelectorAll("input[data-utc]").forEach(showLocal);
  }
});
document.querySelectorAll("svg.week").forEach(turnWeek);
document.querySelectorAll("#zone").forEach(tellZone);
document.querySelectorAll("[data-follow]").forEach(follow);
document.addEventListener("click", narrow, true);
if (document.querySelector("[data-once]")) history.replaceState(null, "", location.href); // a reload does not send the form again
prepare(document);
setInterval(() => tell(document), 1000);
if (document.querySelector("[data-live]")) document.querySelectorAll("[data-watch]").forEach(watch);
