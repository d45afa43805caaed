// The colours of numbers: as bright as the number is large, also to readers who do not tell red from green. The first
// scale is viridis in nine steps; the second one, in warm colours, is for what lies in a picture of the first.
export const SCALES = [
  ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"],
  ["#4a0d12", "#7a1f16", "#a83a18", "#cf5c1f", "#e8853a", "#f3ab61", "#f9cf93", "#fdeec8"],
];
const RGB = SCALES.map((stops) => stops.map((text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16))));

/** Red, green and blue of a share between 0 and 1. */
export function shade(share, scale = 0) {
  const stops = RGB[scale];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const k = Math.min(Math.floor(at), stops.length - 2);
  return stops[k].map((low, i) => Math.round(low + (at - k) * (stops[k + 1][i] - low)));
}
