/** What is said of tools in a list. */
import { isRecord } from '@/api/json'

import type { Tool } from '../types'

/** Tools of which name or description holds every word. */
export function searchTools(tools: readonly Tool[], needle: string): readonly Tool[] {
  const words = needle
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  if (words.length === 0) return tools
  return tools.filter(({ name, description }) => {
    const text = `${name} ${description}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

export interface ArgumentLine {
  name: string
  type: string
  description: string
  isRequired: boolean
}

/** The arguments of a tool from its JSON Schema. */
export function argumentLines({ parameters }: Pick<Tool, 'parameters'>): ArgumentLine[] {
  const properties = isRecord(parameters.properties) ? parameters.properties : {}
  const required = Array.isArray(parameters.required) ? parameters.required : []
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    type: typeName(schema),
    description: isRecord(schema) && typeof schema.description === 'string' ? schema.description : '',
    isRequired: required.includes(name),
  }))
}

function typeName(schema: unknown): string {
  if (!isRecord(schema)) return 'any'
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map(typeName).join(' | ')
  if (Array.isArray(schema.type)) return schema.type.join(' | ')
  if (schema.type === 'array') return `${typeName(schema.items)}[]`
  return typeof schema.type === 'string' ? schema.type : 'any'
}
