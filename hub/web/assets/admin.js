// The pages work without this: it only tells times in the viewer's zone, and how long ago they are now.
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

if (navigator.clipboard) document.querySelectorAll("button[data-copy]").forEach(offerCopy);
document.querySelectorAll("input[data-utc]").forEach(localize);
tell();
setInterval(tell, 10000);
