/** Colors of peers: eight that differ in lightness too, for the color-blind. style.css has them. */
import { useEffect, useState } from "./vendor/htm-preact.js";

export const COLORS = 8;

const given = new Map();

/** Returns the number of a peer's color. A peer keeps the color that it got when the page first saw it. */
export function colorOf(id) {
  let number = given.get(id);
  if (number === undefined) given.set(id, (number = given.size % COLORS));
  return number;
}

/** Returns the value of a color of the page, for a canvas. */
export const valueOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Returns whether a media query holds now, and renders anew when that changes. */
export function useMedia(query) {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const changed = () => setMatches(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [query]);
  return matches;
}
