/** Lets files be dropped anywhere on the page; true while some hover over the window. */
import { onMounted, onScopeDispose, ref } from 'vue'

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

  const listeners = { dragenter: onEnter, dragleave: onLeave, dragover: onOver, drop: onDrop } as const
  onMounted(() => {
    for (const [name, listener] of Object.entries(listeners)) window.addEventListener(name, listener as EventListener)
    // A drop that a drop zone took ends the hovering too, but does not reach the window.
    window.addEventListener('drop', reset, { capture: true })
  })
  onScopeDispose(() => {
    for (const [name, listener] of Object.entries(listeners)) window.removeEventListener(name, listener as EventListener)
    window.removeEventListener('drop', reset, { capture: true })
  })

  return { isOver }
}
