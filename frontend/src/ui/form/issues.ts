/** Errors and warnings, sorted to the fields that they concern. */
import type { ApiError } from '@/api/errors'
import type { components } from '@/api/schema'

type Issue = components['schemas']['Issue']

export interface FieldIssue extends Issue {
  severity: 'error' | 'warning'
}

export type IssueMap = ReadonlyMap<string, readonly FieldIssue[]>

export function groupIssues(errors: readonly Issue[], warnings: readonly Issue[]): IssueMap {
  const grouped = new Map<string, FieldIssue[]>()
  const add = (issue: Issue, severity: FieldIssue['severity']) => {
    const known = grouped.get(issue.field)
    if (known === undefined) grouped.set(issue.field, [{ ...issue, severity }])
    else known.push({ ...issue, severity })
  }
  for (const issue of errors) add(issue, 'error')
  for (const issue of warnings) add(issue, 'warning')
  return grouped
}

function isIssue(value: unknown): value is Issue {
  return (
    typeof value === 'object' &&
    value !== null &&
    'field' in value &&
    'message' in value &&
    typeof value.field === 'string'
  )
}

/** Fields of error codes that concern one field without naming it. */
const FIELD_OF_CODE: Readonly<Record<string, string>> = {
  unknown_model: 'model',
  model_not_ready: 'model',
  unknown_dataset: 'dataset',
  unsuitable_dataset: 'dataset',
  too_many_gpus: 'resources.gpus',
  recipe_not_found: 'recipe',
}

/** The issues that a refused request names; empty where it was refused for another reason. */
export function issuesOfError(error: ApiError): Issue[] {
  const items: unknown = error.details.items ?? error.details.errors
  if (Array.isArray(items)) return items.filter(isIssue)
  const field = FIELD_OF_CODE[error.code]
  return field === undefined ? [] : [{ code: error.code, field, message: error.message, suggestion: null }]
}

/** Issues whose field is not on the page. */
export function homelessIssues(issues: IssueMap, isShown: (field: string) => boolean): FieldIssue[] {
  return [...issues].flatMap(([field, list]) => (isShown(field) ? [] : list))
}
