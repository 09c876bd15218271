/** Hubs that models and datasets come from and go to. */
export const HUBS = ['huggingface', 'modelscope'] as const
export type Hub = (typeof HUBS)[number]

/** What each calls its newest state: read where none is named. */
const NEWEST: Record<Hub, string> = { huggingface: 'main', modelscope: 'master' }

export function newestOf(hub: Hub): string {
  return NEWEST[hub]
}
