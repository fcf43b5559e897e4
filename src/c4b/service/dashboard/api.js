// Requests to the service. The token is kept in this tab only and never put into an address.

const KEY = "c4b-token";
const TIMEOUT = 20_000; // milliseconds

let token = null;
try {
  token = sessionStorage.getItem(KEY);
} catch {
  // storage may be forbidden: then the token lasts as long as the page
}

export function hasToken() {
  return token !== null;
}

export function keepToken(value) {
  token = value;
  try {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
  } catch {
    // as above
  }
}

// An error with its remedy. `status` 0: no answer.
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }

  get passing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

export function path(...parts) {
  return ["v1", "deployments", ...parts.map(encodeURIComponent)].join("/");
}

export async function get(address, signal) {
  return (await send("GET", address, AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]))).json();
}

// Without a time limit, because an audit reads the whole journal.
export async function post(address, body) {
  return (await send("POST", address, undefined, body)).json();
}

export async function blob(address) {
  return (await send("GET", address)).blob();
}

async function send(method, address, signal, value) {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const body = value === undefined ? undefined : JSON.stringify(value);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address, { method, headers, body, signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "the service does not answer; check that `c4b serve` runs and the network is up");
  }
  if (!response.ok) throw new Problem(response.status, await detailOf(response));
  return response;
}

async function detailOf(response) {
  try {
    const { detail } = await response.json();
    if (detail) return String(detail);
  } catch {
    // not from the service: a proxy's page
  }
  return `the answer was ${response.status} ${response.statusText}`.trim();
}
