/** A list that is longer than a page takes: what is shown of it, and how much there is, so that the page can say so. */
export interface Cut<Item> {
  shown: Item[]
  /** As many as there are; null where all are shown. */
  total: number | null
}

export function cutTo<Item>(items: readonly Item[], most: number): Cut<Item> {
  return { shown: items.slice(0, most), total: items.length > most ? items.length : null }
}
