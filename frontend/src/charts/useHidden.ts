/** Which shapes of a chart its reader has switched off. */
import { ref } from 'vue'

export function useHidden() {
  const hidden = ref<ReadonlySet<string>>(new Set())

  function toggle(id: string): void {
    const next = new Set(hidden.value)
    if (!next.delete(id)) next.add(id)
    hidden.value = next
  }

  return { hidden, toggle }
}
