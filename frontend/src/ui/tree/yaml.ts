/** Plain data as YAML: block style, strings quoted only where they would be read as something else. */
import { isRecord } from '@/api/json'

const PLAIN = /^[A-Za-z_./][\w./@ -]*$/
/** Words that YAML 1.1 or 1.2 reads as something other than text. */
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n|~|\.nan|[-+]?\.inf)$/i

function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? 'null'
  const isPlain = PLAIN.test(value) && !RESERVED.test(value) && !value.endsWith(' ')
  // JSON strings are YAML's double-quoted scalars.
  return isPlain ? value : JSON.stringify(value)
}

function lines(value: unknown, indent: string): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      const [first = '', ...rest] = isNested(item) ? lines(item, `${indent}  `) : [`${indent}  ${inline(item)}`]
      return [`${indent}- ${first.trimStart()}`, ...rest]
    })
  }
  if (!isRecord(value)) return [`${indent}${scalar(value)}`]
  return Object.entries(value).flatMap(([key, item]) => {
    const name = `${indent}${scalar(key)}:`
    return isNested(item) ? [name, ...lines(item, `${indent}  `)] : [`${name} ${inline(item)}`]
  })
}

/** Whether a value needs lines of its own. */
function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

function inline(value: unknown): string {
  if (Array.isArray(value)) return '[]'
  return isRecord(value) ? '{}' : scalar(value)
}

export function toYaml(value: unknown): string {
  return `${(isNested(value) ? lines(value, '') : [inline(value)]).join('\n')}\n`
}
