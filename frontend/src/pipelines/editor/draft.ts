/** A pipeline while it is being put together: steps with keys of their own, so that they can move. */
import { isRecord } from '@/api/json'
import type { FieldIssue, IssueMap } from '@/ui/form/issues'

import { RESOURCE_PARAMS } from '../suggestions'
import type { Pipeline, PipelineProblem } from '../types'

export interface DraftStep {
  /** Stays the same while the step moves. */
  key: number
  operator: string
  /** Null: named after its operator. */
  name: string | null
  params: Readonly<Record<string, unknown>>
}

export interface PipelineDraft {
  name: string
  description: string
  format: NonNullable<Pipeline['format']> | null
  columns: Record<string, string>
  seed: number
  tokenizer: string | null
  steps: DraftStep[]
}

let lastKey = 0

export function newStep(operator: string, params: Readonly<Record<string, unknown>> = {}): DraftStep {
  lastKey += 1
  return { key: lastKey, operator, name: null, params }
}

export function emptyDraft(): PipelineDraft {
  return { name: '', description: '', format: null, columns: {}, seed: 0, tokenizer: null, steps: [] }
}

/** The platform names every step; a name that says no more than the operator is none. */
function ownName(name: string | null | undefined, operator: string): string | null {
  if (name === null || name === undefined || name === operator) return null
  return name.startsWith(`${operator} `) && /^\d+$/.test(name.slice(operator.length + 1)) ? null : name
}

export function draftOf(pipeline: Pipeline): PipelineDraft {
  return {
    name: pipeline.name,
    description: pipeline.description,
    format: pipeline.format ?? null,
    columns: { ...pipeline.columns },
    seed: pipeline.seed,
    tokenizer: pipeline.tokenizer ?? null,
    steps: pipeline.steps.map((step) => ({
      ...newStep(step.operator, step.params ?? {}),
      name: ownName(step.name, step.operator),
    })),
  }
}

/** `fallbackName` stands for a name that was not typed yet. */
export function toPipeline(draft: PipelineDraft, fallbackName: string): Pipeline {
  const name = draft.name.trim()
  return {
    name: name === '' ? fallbackName : name,
    description: draft.description.trim(),
    format: draft.format,
    columns: draft.columns,
    seed: draft.seed,
    tokenizer: draft.tokenizer,
    steps: draft.steps.map(({ operator, name: own, params }) => ({
      operator,
      ...(own === null ? {} : { name: own }),
      params: { ...params },
    })),
  }
}

/** The list with the element of one place at another; places beyond the list change nothing. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const next = [...list]
  if (from < 0 || from >= next.length || to < 0 || to >= next.length) return next
  const [taken] = next.splice(from, 1)
  if (taken !== undefined) next.splice(to, 0, taken)
  return next
}

/** Judges that steps name. */
export function judgesOf(steps: readonly { params?: Readonly<Record<string, unknown>> }[]): string[] {
  const names = steps.flatMap((step) =>
    typeof step.params?.scorer === 'string' && step.params.scorer !== '' ? [step.params.scorer] : [],
  )
  return [...new Set(names)]
}

/** Whether a preview would call something that costs money, so that it must be asked for. */
export function callsModels(
  steps: readonly { operator: string; params?: Readonly<Record<string, unknown>> }[],
): boolean {
  return steps.some((step) => step.operator === 'judge' || step.params?.source === 'endpoint')
}

/** Names of further inputs that steps ask for. */
export function resourcesNamed(steps: readonly { params?: Readonly<Record<string, unknown>> }[]): string[] {
  const names = steps.flatMap(({ params }) =>
    RESOURCE_PARAMS.flatMap((param): unknown[] => (Array.isArray(params?.[param]) ? params[param] : [])),
  )
  return [...new Set(names.filter((name): name is string => typeof name === 'string'))]
}

/** `steps.2.params.threshold`: a problem deeper in a parameter is told at the parameter. */
export function fieldOfProblem(field: string): string {
  const [area, index, part, name] = field.split('.')
  if (area !== 'steps' || index === undefined || !/^\d+$/.test(index)) return area ?? field
  return part === 'params' && name !== undefined ? `steps.${index}.params.${name}` : `steps.${index}`
}

/** Problems by the field that shows them. */
export function problemsByField(problems: readonly PipelineProblem[]): IssueMap {
  const found = new Map<string, FieldIssue[]>()
  for (const problem of problems) {
    const field = fieldOfProblem(problem.field)
    const issue: FieldIssue = {
      code: problem.code,
      field,
      message: problem.message,
      suggestion: null,
      severity: 'error',
    }
    found.set(field, [...(found.get(field) ?? []), issue])
  }
  return found
}

/** How many problems a step has, its fields' included. */
export function problemCount(issues: IssueMap, index: number): number {
  let count = 0
  for (const [field, list] of issues)
    if (field === `steps.${index}` || field.startsWith(`steps.${index}.`)) count += list.length
  return count
}

/** Steps from an address; null where it holds none that can be read. */
export function readSteps(text: unknown): DraftStep[] | null {
  if (typeof text !== 'string' || text === '') return null
  try {
    const value: unknown = JSON.parse(text)
    if (!Array.isArray(value) || value.length === 0) return null
    const steps = value.map((one: unknown) =>
      isRecord(one) && typeof one.operator === 'string' && (one.params === undefined || isRecord(one.params))
        ? newStep(one.operator, one.params ?? {})
        : null,
    )
    return steps.every((step) => step !== null) ? steps : null
  } catch (cause) {
    if (cause instanceof SyntaxError) return null
    throw cause
  }
}

export function writeSteps(steps: readonly { operator: string; params?: Readonly<Record<string, unknown>> }[]): string {
  return JSON.stringify(steps.map(({ operator, params }) => ({ operator, params: params ?? {} })))
}
