/** Whether an error says that a page's code could not be fetched; browsers and Vite each have their own words. */
export function isChunkMissing(error: Error): boolean {
  return /dynamically imported module|Importing a module script|Unable to preload CSS/i.test(error.message)
}
