// Findings: those of the timeline, and a check of files and indexes that runs in the background.
import { h, put } from "./dom.js";
import { count, counted, duration } from "./format.js";
import { badge, command, empty, fact, facts, failure, later, notes, panel, showPanels } from "./parts.js";
import { findingItem } from "./overview.js";
import { shellWord } from "./files.js";

const POLL_MS = 500;

function byKind(found) {
  const kinds = new Map();
  for (const each of found) {
    const key = `${each.kind}\n${each.remedy}`;
    if (kinds.has(key)) kinds.get(key).count += 1;
    else kinds.set(key, { ...each, count: 1 });
  }
  return [...kinds.values()].sort((a, b) => (a.severity === b.severity ? 0 : a.severity === "error" ? -1 : 1));
}

function reportPart(report) {
  const checked = Object.entries(report.checked).map(([name, number]) => fact(`${name} checked`, count(number)));
  const verdict = report.findings.length === 0 ? badge("no findings", "ok") : badge(counted(report.findings.length, "finding"), report.ok ? "warning" : "error");
  return h("div", null, facts(fact("Result", verdict), ...checked, fact("Took", duration(report.seconds))),
    report.findings.length > 0 && h("ul", { class: "findings" }, byKind(report.findings).map(findingItem)),
    notes(report.notes));
}

function progressPart(answer) {
  const share = answer.total ? answer.done / answer.total : 0;
  const bar = h("progress", { max: 1, "aria-label": "Progress of the check" });
  if (answer.total) bar.value = share;
  return h("div", { class: "progress" }, h("p", null, `Checks ${answer.phase || "the timeline"}`, h("span", { class: "note" }, answer.total ? ` ${count(answer.done)} of ${count(answer.total)}` : "")), bar);
}

/** The page of findings. */
export function findingsPage(ctx) {
  const result = h("div", { "aria-live": "polite" });
  const full = h("input", { type: "checkbox" });
  const button = h("button", { type: "button", class: "primary" }, "Verify");
  let timer = null;
  const show = (answer) => {
    button.disabled = answer.state === "running";
    if (answer.state === "running") timer = setTimeout(poll, POLL_MS);
    const parts = {
      none: () => empty("Files and indexes were not checked yet.", "Verify reads the timeline, lists the files and compares them with the metadata table; it changes nothing."),
      running: () => progressPart(answer), done: () => reportPart(answer.report),
      failed: () => failure({ message: answer.error || "The check failed.", hint: "The command line shows details: hoodie verify" })
    };
    put(result, parts[answer.state]());
  };
  const poll = async (params = {}) => {
    try {
      show(await ctx.get("verify", params));
    } catch (error) {
      if (error.name !== "AbortError") put(result, failure(error));
      button.disabled = false;
    }
  };
  button.addEventListener("click", () => { button.disabled = true; poll({ start: 1, full: full.checked ? 1 : 0 }); });
  const line = later(() => ctx.summary(), (summary) => command(`hoodie verify ${shellWord(summary.path)}`), 1);
  showPanels(ctx,
    panel("On the timeline", { note: "without a check of files" }, later(() => ctx.summary(), (summary) => (summary.findings.length ? h("ul", { class: "findings" }, byKind(summary.findings).map(findingItem)) : empty("Nothing is wrong on the timeline.")), 5)),
    panel("Files and indexes", {}, !ctx.isExport && h("div", { class: "tools" }, button, ctx.hasData && h("label", { class: "check" }, full, "Full: also read every data file")), line, result));
  poll();
  return { close: () => clearTimeout(timer) };
}
