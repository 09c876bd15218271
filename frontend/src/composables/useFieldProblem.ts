/** Whether a field holds what cannot be read, told to the form that it belongs to. */
import { onBeforeUnmount, readonly, ref } from 'vue'

/** `tell` hears of changes only; a field that is folded away or removed takes what could not be read with it. */
export function useFieldProblem(tell: (hasProblem: boolean) => void) {
  const hasProblem = ref(false)

  function setProblem(next: boolean): void {
    if (next === hasProblem.value) return
    hasProblem.value = next
    tell(next)
  }

  onBeforeUnmount(() => {
    setProblem(false)
  })

  return { hasProblem: readonly(hasProblem), setProblem }
}
