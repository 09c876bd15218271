/** Names what can be focused inside a slider or a pagination: the library puts a label on the box around it, where nobody hears it. */
import type { Directive } from 'vue'

function name(root: HTMLElement, { value }: { value: string }): void {
  for (const inner of root.querySelectorAll('[role=slider], input')) inner.setAttribute('aria-label', value)
}

export const vInnerLabel: Directive<HTMLElement, string> = { mounted: name, updated: name }
