/** The text of a model card without what only hubs and checks read. */

const FRONT_MATTER = /^---\n[\s\S]*?\n---\n/
const MARKS = /^<!--[^\n]*-->\n?/gm

export function readableCard(card: string): string {
  return card.replace(/\r\n/g, '\n').replace(FRONT_MATTER, '').replace(MARKS, '').trim()
}

export function modelArchive(model: string): string {
  return `/api/v1/models/${encodeURIComponent(model)}/download`
}

export function modelFile(model: string, name: string): string {
  const path = name.split('/').map(encodeURIComponent).join('/')
  return `/api/v1/models/${encodeURIComponent(model)}/files/${path}`
}

export function checkpointArchive(job: string, step: number): string {
  return `/api/v1/jobs/${encodeURIComponent(job)}/checkpoints/${String(step)}/download`
}
