/** Lets files be dropped anywhere on the page; true while some hover over the window. */
import { useEventListener } from '@vueuse/core'
import { ref } from 'vue'

export function useFileDrop(onFiles: (files: File[]) => void) {
  const isOver = ref(false)
  // Entering a child comes before leaving its parent, so the difference tells whether we are inside.
  let depth = 0

  function hasFile(event: DragEvent): boolean {
    return event.dataTransfer?.types.includes('Files') ?? false
  }

  function onEnter(event: DragEvent): void {
    if (!hasFile(event)) return
    depth += 1
    isOver.value = true
  }

  function onLeave(event: DragEvent): void {
    if (!hasFile(event)) return
    depth -= 1
    if (depth <= 0) reset()
  }

  function reset(): void {
    depth = 0
    isOver.value = false
  }

  function onOver(event: DragEvent): void {
    if (hasFile(event)) event.preventDefault()
  }

  function onDrop(event: DragEvent): void {
    if (!hasFile(event)) return
    event.preventDefault()
    reset()
    const files = [...(event.dataTransfer?.files ?? [])]
    if (files.length > 0) onFiles(files)
  }

  useEventListener(window, 'dragenter', onEnter)
  useEventListener(window, 'dragleave', onLeave)
  useEventListener(window, 'dragover', onOver)
  useEventListener(window, 'drop', onDrop)
  // A drop that a drop zone took ends the hovering too, but does not reach the window.
  useEventListener(window, 'drop', reset, { capture: true })

  return { isOver }
}
