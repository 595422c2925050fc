// Numbers with units, and times in the zone of the reader with UTC in the title.
import { h } from "./dom.js";

const GROUPED = new Intl.NumberFormat("en-US");
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";

/** Bytes in B, kB, MB, GB or TB; 1 kB is 1,000 bytes. */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let size = Math.abs(value);
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let place = 0;
  for (; size >= 999.5 && place < units.length - 1; place += 1) size /= 1000;
  const text = place === 0 || size >= 100 ? size.toFixed(0) : size.toFixed(1);
  return `${value < 0 ? "−" : ""}${text} ${units[place]}`;
}

/** An integer with separators. */
export const count = (value) => value === null || value === undefined ? "–" : GROUPED.format(value).replace("-", "−");

/** A large number in few characters: 1.2 M. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const found = [["G", 1e9, 1e9], ["M", 1e6, 1e6], ["k", 1e4, 1e3]].find(([, least]) => size >= least);
  return found ? `${(value / found[2]).toFixed(1)} ${found[0]}`.replace("-", "−") : count(value);
}

/** A count with its noun: 1 file, 2 files. */
export const counted = (value, noun) => `${count(value)} ${value === 1 ? noun : noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;

/** Seconds as 12 ms, 1.5 s, 4 min 10 s, 3 h 5 min, 2 d 4 h. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  for (const [size, unit, below, small] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
    if (whole >= size) {
      const rest = Math.floor((whole % size) / below);
      return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${small}` : ""}`;
    }
  }
  return `${whole} s`;
}

const pad = (number) => String(number).padStart(2, "0");

/** A date of the reader's zone as 2026-11-30; with `time` also the time of day. */
export function local(date, time = true) {
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return time ? `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}` : day;
}

/** How long ago a time was, in one unit: 4 min ago. */
export function ago(date) {
  const seconds = (Date.now() - date.getTime()) / 1000;
  if (seconds < 5 && seconds > -60) return "just now";
  const size = Math.abs(seconds);
  const [unit, name] = [[86400 * 365, "y"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([least]) => size >= least);
  const text = `${Math.floor(size / unit)} ${name}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** A `time` element: the reader's zone, or how long ago; UTC and the zone are in the title. */
export function when(iso, { relative = false } = {}) {
  if (!iso) return h("span", { class: "quiet" }, "–");
  const date = new Date(iso);
  const here = local(date);
  const utc = `${date.toISOString().replace("T", " ").replace("Z", "")} UTC`;
  return h("time", { datetime: iso, title: `${here} ${ZONE}\n${utc}`, "data-relative": relative }, relative ? ago(date) : here);
}

/** A value of a row as text; the class of null differs from an empty text. */
export function valueNode(value) {
  if (value === null || value === undefined) return h("span", { class: "null" }, "null");
  if (typeof value === "object") return h("code", null, JSON.stringify(value));
  return String(value);
}
