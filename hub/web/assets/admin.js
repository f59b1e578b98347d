// The pages work without this: it only tells times in the viewer's zone, and how long ago they are now.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
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
    const seconds = (at - Date.now()) / 1000;
    const isSpan = "span" in time.dataset;
    const text = isSpan ? `for ${span(Math.round(Math.abs(seconds)))}` : relative(seconds);
    if (time.textContent !== text) time.textContent = text;
  }
}

tell();
setInterval(tell, 10000);
