/** The width of an element as it is now, for drawings that fill it. */
import { onScopeDispose, ref, type Ref, watch } from 'vue'

export function useWidth(host: Ref<HTMLElement | null>): Ref<number> {
  const width = ref(0)
  const observer = new ResizeObserver(([entry]) => {
    if (entry !== undefined) width.value = entry.contentRect.width
  })
  watch(host, (element) => {
    observer.disconnect()
    if (element !== null) observer.observe(element)
  }, { immediate: true })
  onScopeDispose(() => {
    observer.disconnect()
  })
  return width
}
