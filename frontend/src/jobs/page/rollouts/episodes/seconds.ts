/** How long something took, also where that is a blink: "0.42 ms" rather than "0 s". */
export function secondsText(seconds: number, write: (value: number, digits: number) => string): string {
  return seconds < 1 ? `${write(seconds * 1000, 3)} ms` : `${write(seconds, 3)} s`
}
