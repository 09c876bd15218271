/** Leads to a field of the launch form by the name that issues give it. */

/** The element of a field, else of what it is a part of: `params.rewards.0.weight` is told in `params.rewards`. */
export function findField(field: string, root: ParentNode = document): HTMLElement | null {
  const parts = field.split('.')
  const places = [...root.querySelectorAll<HTMLElement>('[data-field]')]
  for (let count = parts.length; count > 0; count--) {
    const name = parts.slice(0, count).join('.')
    const found = places.find((place) => place.dataset.field === name)
    if (found !== undefined) return found
  }
  return null
}

export function focusInside(field: HTMLElement | null): void {
  for (let fold = field?.closest('details'); fold != null; fold = fold.parentElement?.closest('details'))
    fold.open = true
  // The part that is led to may be the fold itself.
  const own = field?.querySelector<HTMLDetailsElement>(':scope > details')
  if (own != null) own.open = true
  field?.scrollIntoView({ block: 'center' })
  // Buttons beside a name (vary, reset) stand before what is filled in.
  const filledIn =
    field?.querySelector<HTMLElement>('input, textarea') ?? field?.querySelector<HTMLElement>('button, [tabindex]')
  filledIn?.focus()
}
