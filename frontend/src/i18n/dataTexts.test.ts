import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { zhByCause, zhByCode } from './apiErrors'
import { zhByDataProblem, zhByRowProblem, zhByUnusableRow } from './dataTexts'

const ROOT = join(process.cwd(), '..')
const FACTORY = 'factory/trellis_data'
/** Reading makes both: problems of rows, and of whole files. */
const ROW_SHAPES = [
  /\bRowProblem\([^()]*code="(\w+)"/g,
  /\bUnreadable\("(\w+)"/g,
  /\bShapeError\(\s*"(\w+)"/g,
  /\bMisfit\([^()]*(?:\([^()]*\)[^()]*)*"(\w+)"\)/g,
  /^\s+return "(?!hub_)(\w+_\w+)", f?"/gm,
  /\bcode = "(\w+)" if .* else "\w+"/g,
  /\bcode = "\w+" if .* else "(\w+)"/g,
  /^\s+code: str = "(\w+)"/gm,
]
const PROBLEM_SHAPES = [
  /\b(?:Store|Operator|Pipeline)Problem\(\s*"(\w+)"/g,
  /^\s+return "(hub_\w+)", f?"/gm,
  /\b(?:UnreadableFile|SourceUnavailable|TaskFailure)\(\s*(?:code=)?"(\w+)"/g,
  /\b_?[Pp]roblem\([^()]*(?:code=)?"(\w+_\w+)",/g,
  /"(\w+)" if [^\n]* else "param_invalid"/g,
]

/** What training cannot read, and what its program says beyond that. */
const UNUSABLE_SHAPES = [
  /\bBadRow\(.*"(\w+)"\)(?: from error)?$/gm,
  /code: str = "(\w+)"/g,
  /\b_unusable\(.*"(\w+)"\)$/gm,
]
const CANNOT_SHOW_SHAPES = [/\bCannotShow\(\s*"(\w+)"/g]

function codesIn(folders: readonly string[], shapes: readonly RegExp[]): string[] {
  const texts = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.py'))
      .map((name) => readFileSync(join(ROOT, folder, name), 'utf8')),
  )
  return [
    ...new Set(
      texts.flatMap((text) => shapes.flatMap((shape) => [...text.matchAll(shape)].map(([, code]) => code ?? ''))),
    ),
  ]
}

describe('what is wrong with data', () => {
  it('has a Chinese text for every reason why a row goes to quarantine', () => {
    const codes = codesIn([`${FACTORY}/reading`], ROW_SHAPES)

    expect(codes).toEqual(
      expect.arrayContaining([
        'not_json',
        'type_conflict',
        'too_long',
        'not_csv',
        'cell_count',
        'too_deep',
        'too_many_columns',
        'row_damaged',
        'row_invalid',
      ]),
    )
    expect(codes.filter((code) => zhByRowProblem[code] === undefined)).toEqual([])
  })

  it('has a Chinese text for every reason why training cannot use a row, or no row at all', () => {
    const codes = codesIn(
      ['recipes/trellis_recipes/data', `${FACTORY}/formats`, 'verl/trellis_train/data'],
      UNUSABLE_SHAPES,
    )
    const whole = codesIn(['verl/trellis_train/data'], CANNOT_SHOW_SHAPES)

    expect(codes).toEqual(
      expect.arrayContaining(['missing', 'wrong_value', 'no_answer', 'bad_tool_call', 'template_failed']),
    )
    expect(codes.filter((code) => zhByUnusableRow[code] === undefined)).toEqual([])
    expect(whole).toEqual(expect.arrayContaining(['format_not_trainable', 'model_without_end']))
    expect(whole.filter((code) => ({ ...zhByCode, ...zhByDataProblem })[code] === undefined)).toEqual([])
  })

  it('has a Chinese text for every problem of files, versions and pipelines, and every cause of a failed task', () => {
    const codes = codesIn([FACTORY, 'workers/trellis_workers/data', 'backend/trellis_api/datasets'], PROBLEM_SHAPES)
    const known = { ...zhByCode, ...zhByCause, ...zhByDataProblem }

    expect(codes).toEqual(
      expect.arrayContaining([
        'version_unknown',
        'operator_unknown',
        'no_input',
        'no_row_readable',
        'disk_full',
        'worker_died',
        'param_unknown',
      ]),
    )
    expect(codes.filter((code) => known[code] === undefined)).toEqual([])
  })
})
