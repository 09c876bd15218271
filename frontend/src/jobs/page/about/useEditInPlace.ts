/** A text that is changed where it stands, in the input with the ref `input`; what is typed is told without spaces around it. */
import type { InputInst } from 'naive-ui'
import { nextTick, ref, useTemplateRef } from 'vue'

export function useEditInPlace(current: () => string, change: (typed: string) => void) {
  const isEditing = ref(false)
  const typed = ref('')
  const input = useTemplateRef<InputInst>('input')

  async function open(): Promise<void> {
    typed.value = current()
    isEditing.value = true
    await nextTick()
    input.value?.select()
  }

  function save(): void {
    if (!isEditing.value) return
    isEditing.value = false
    const text = typed.value.trim()
    if (text !== current()) change(text)
  }

  return { isEditing, typed, open, save }
}
