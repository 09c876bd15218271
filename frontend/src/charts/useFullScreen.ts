/** A chart over the whole screen, and back. */
import { onScopeDispose, type Ref, ref } from 'vue'

export function useFullScreen(figure: Ref<HTMLElement | null>) {
  const isFull = ref(false)

  async function toggleFull(): Promise<void> {
    if (document.fullscreenElement !== null) await document.exitFullscreen()
    else await figure.value?.requestFullscreen()
  }

  function onFullChange(): void {
    isFull.value = document.fullscreenElement === figure.value && figure.value !== null
  }
  document.addEventListener('fullscreenchange', onFullChange)
  onScopeDispose(() => {
    document.removeEventListener('fullscreenchange', onFullChange)
  })

  return { isFull, toggleFull }
}
