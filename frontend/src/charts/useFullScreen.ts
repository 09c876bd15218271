/** A chart over the whole screen, and back. */
import { useEventListener } from '@vueuse/core'
import { type Ref, ref } from 'vue'

export function useFullScreen(figure: Ref<HTMLElement | null>) {
  const isFull = ref(false)

  async function toggleFull(): Promise<void> {
    if (document.fullscreenElement !== null) await document.exitFullscreen()
    else await figure.value?.requestFullscreen()
  }

  function onFullChange(): void {
    isFull.value = document.fullscreenElement === figure.value && figure.value !== null
  }
  useEventListener(document, 'fullscreenchange', onFullChange)

  return { isFull, toggleFull }
}
