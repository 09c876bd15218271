/** Where the name of a unit stands in the dashboard's texts: a space would end a key. */
export function unitText(unit: string): string {
  return `form.unit.${unit.replaceAll(' ', '_')}`
}
