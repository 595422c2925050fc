// Answers of the server, or of the report that this page was exported to.

const exported = JSON.parse(document.getElementById("exported").textContent);
const FREE = ["limit", "days"];

/** The table of an exported report, or null. */
export const exportedTable = exported === null ? null : exported.table;

/** An error with a sentence for the reader and what to do. */
class ApiError extends Error {
  constructor(message, { status = 0, kind = "", hint = "" } = {}) { Object.assign(super(message), { status, kind, hint }); }
}

function searchText(params, without = []) {
  const kept = Object.entries(params).filter(([name, value]) => !without.includes(name) && value !== null && value !== undefined && value !== "" && value !== false);
  kept.sort(([a], [b]) => (a < b ? -1 : 1));
  return new URLSearchParams(kept.map(([name, value]) => [name, value === true ? "1" : String(value)])).toString();
}

function fromReport(path, params) {
  const wanted = searchText(params, FREE);
  const key = Object.keys(exported.answers).find((each) => {
    const [found, query = ""] = each.split("?");
    return found === path && searchText(Object.fromEntries(new URLSearchParams(query)), FREE) === wanted;
  });
  if (key === undefined) {
    throw new ApiError("This is not in this report.", { status: 404, kind: "NotExported", hint: "An exported report has the state of one moment. `hoodie ui PLACE` shows everything." });
  }
  const answer = exported.answers[key];
  return answer && Array.isArray(answer.rows) ? { ...answer, next: null } : answer;
}

/** Return the answer of an endpoint below `/api/`. Throws ApiError, or the reason of `signal`. */
export async function get(path, params = {}, signal = undefined) {
  if (exported !== null) return fromReport(path, params);
  const query = searchText(params);
  let answer;
  try {
    answer = await fetch(`/api/${path}${query ? `?${query}` : ""}`, { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The server does not answer.", { hint: "`hoodie ui` must still run in its terminal. Start it again and open the address that it prints." });
  }
  const body = await answer.json().catch((error) => { if (signal?.aborted) throw error; return null; });
  if (answer.ok && body !== null) return body;
  const hint = answer.status === 401 ? "Open the address with `?token=` that `hoodie ui` printed." : "";
  throw new ApiError((body && body.error) || `The server answered ${answer.status}.`, { status: answer.status, kind: (body && body.type) || "", hint });
}

/** Listen to the timeline of a table while the page is seen: a browser allows few connections. Return what stops it. */
export function listen(id, onTimeline, onTrouble) {
  if (exported !== null) return () => {};
  let source = null;
  const follow = (isOver) => {
    source?.close();
    source = isOver === true || document.hidden ? null : new EventSource(`/api/tables/${id}/live`);
    source?.addEventListener("timeline", (event) => onTimeline(JSON.parse(event.data)));
    source?.addEventListener("trouble", (event) => onTrouble(JSON.parse(event.data).error));
  };
  document.addEventListener("visibilitychange", follow);
  follow();
  return () => { document.removeEventListener("visibilitychange", follow); follow(true); };
}
