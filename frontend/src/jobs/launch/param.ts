/** A recipe's parameter as forms show it; the catalogue lists parameters in a short form of their JSON Schema. */
import type { Param } from '@/ui/schema/schema'

import type { Parameter } from '../types'
import { canBeEmpty } from './draft'

/** The same as `readParams` makes of the recipe's `params_schema`. */
export function paramOf(parameter: Parameter): Param {
  const { name, type, title, help } = parameter
  const common = {
    name,
    title,
    help,
    unit: parameter.unit ?? null,
    isRequired: false,
    isNullable: canBeEmpty(parameter),
    isAutomatic: parameter.auto != null,
    isAdvanced: parameter.advanced ?? false,
    source: type === 'environment' || type === 'workflow' ? type : null,
    examples: [],
    default: parameter.default,
  }
  switch (type) {
    case 'int':
    case 'float':
      return {
        ...common,
        kind: type === 'int' ? 'integer' : 'number',
        minimum: parameter.minimum ?? null,
        maximum: parameter.maximum ?? null,
        above: parameter.exclusive_minimum ?? null,
        below: null,
      }
    case 'bool':
      return { ...common, kind: 'boolean' }
    case 'choice':
      return { ...common, kind: 'choice', choices: parameter.choices ?? [] }
    case 'rewards':
      return { ...common, kind: 'json' }
    default:
      return { ...common, kind: 'text', isMultiline: false, maxLength: null, pattern: null }
  }
}
