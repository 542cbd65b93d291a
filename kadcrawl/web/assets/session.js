/** The session: a token in the fragment buys a cookie once. Orders carry a token of their own in a header. */

/** Returns {control, header} of the session, or null where there is none. */
export async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) {
    history.replaceState(null, "", location.pathname + location.search);
    const response = await fetch("/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (response.ok) return response.json();
  }
  return current();
}

/** Returns the session of the cookie, or null. */
export async function current() {
  const response = await fetch("/session");
  return response.ok ? response.json() : null;
}

/** Tells whether the session lives. A server that does not answer has not ended it. */
export async function lives() {
  try {
    return (await fetch("/session")).status !== 401;
  } catch {
    return true;
  }
}

/** Sends an order and returns {said} or {error}. */
export async function order(session, body) {
  return answer(
    fetch("/api/orders", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Kadcrawl-Token": session.header },
      body: JSON.stringify(body),
    }),
  );
}

/** Asks for the way of a URL. */
export const wayOf = (url) => answer(fetch(`/api/url?url=${encodeURIComponent(url)}`));

/** Asks why a URL may or may not be fetched. */
export const whyOf = (url) => answer(fetch(`/api/check?url=${encodeURIComponent(url)}`));

async function answer(asked) {
  try {
    const response = await asked;
    const type = response.headers.get("Content-Type") ?? "";
    if (type.includes("json")) return await response.json();
    return { error: `The peer answered with status ${response.status}. Try again.` };
  } catch {
    return { error: "The peer does not answer. Try again when the page has data again." };
  }
}
