// Flows and streams that write to the table: their place and how old it is.
import { h, put } from "./dom.js";
import { duration, when } from "./format.js";
import { badge, empty, grid, instantLink, later, notes, panel, showPanels } from "./parts.js";

const OLD_SECONDS = 86400;

function flowsPart(answer) {
  if (answer.rows.length === 0) return empty("No flow writes to this table.", "Commits of `hoodie ingest`, of streams and of HoodieStreamer store a place, and appear here. A flow is started by:", "hoodie ingest job.toml");
  const list = grid("Flows", answer.rows, [
    { title: "Flow", head: true, cell: (row) => row.flow },
    { title: "Kind", cell: (row) => badge(row.kind) },
    { title: "Newest commit", cell: (row) => when(row.completed_at) },
    { title: "Age", cell: (row) => h("span", { class: row.age_seconds > OLD_SECONDS ? "old" : null }, duration(row.age_seconds)) },
    { title: "Place", kind: "mono wrap", cell: (row) => row.place || "–" },
    { title: "Instant", cell: (row) => instantLink(row.instant) },
  ]);
  return h("div", null, list, notes(answer.notes));
}

/** The page of flows. */
export function flowsPage(ctx) {
  const host = h("div");
  const show = () => put(host, later(() => ctx.get("flows"), flowsPart, 4));
  show();
  showPanels(ctx, panel("Flows and streams", { wide: true, note: "the newest commit with a place of each" }, host));
  return { live: show };
}
