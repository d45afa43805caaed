// The colours of numbers: viridis in nine steps, as bright as the number is large, also to readers who do not tell red
// from green.
export const STOPS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
const RGB = STOPS.map((text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16)));

/** Red, green and blue of a share between 0 and 1. */
export function shade(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RGB.length - 1);
  const k = Math.min(Math.floor(at), RGB.length - 2);
  return RGB[k].map((low, i) => Math.round(low + (at - k) * (RGB[k + 1][i] - low)));
}
