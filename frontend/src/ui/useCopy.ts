/** Copies text; `isCopied` is true for a moment after. */
import { onScopeDispose, ref } from 'vue'

const SHOWN_MS = 2000

/** The clipboard API needs HTTPS or localhost; a hidden field works everywhere. */
function copyBySelection(text: string): void {
  const field = document.createElement('textarea')
  field.value = text
  field.setAttribute('readonly', '')
  field.style.position = 'fixed'
  field.style.opacity = '0'
  document.body.append(field)
  field.select()
  document.execCommand('copy')
  field.remove()
}

export function useCopy() {
  const isCopied = ref(false)
  let timer: ReturnType<typeof setTimeout> | undefined
  onScopeDispose(() => {
    clearTimeout(timer)
  })

  async function copy(text: string): Promise<void> {
    if (window.isSecureContext) await navigator.clipboard.writeText(text)
    else copyBySelection(text)
    isCopied.value = true
    clearTimeout(timer)
    timer = setTimeout(() => (isCopied.value = false), SHOWN_MS)
  }

  return { isCopied, copy }
}
