/** The page's state in its address, so that a link shows the same models, settings and prompt. No answers, no secrets. */
import type { LocationQuery, LocationQueryRaw } from 'vue-router'

import { DEFAULTS, FORMATS, MAX_COLUMNS, MAX_TOP_K, PENALTY, type Settings, THINKINGS } from './types'

export interface Shared {
  models: string[]
  settings: Settings
  prompt: string
  /** Models are asked without their names. */
  isBlind: boolean
}

function single(value: LocationQuery[string] | undefined): string | null {
  return (Array.isArray(value) ? value[0] : value) ?? null
}

/** A number within its bounds; what is none, or lies outside, is the default. */
function numberOf(value: string | null, { or, min, max }: { or: number; min: number; max: number }): number {
  const found = value === null || value.trim() === '' ? NaN : Number(value)
  return found >= min && found <= max ? found : or
}

export function readAddress(query: LocationQuery): Shared {
  const named = query.m === undefined ? [] : Array.isArray(query.m) ? query.m : [query.m]
  const seed = single(query.seed)
  return {
    models: named.filter((name): name is string => name !== null && name !== '').slice(0, MAX_COLUMNS),
    settings: {
      system: single(query.system) ?? DEFAULTS.system,
      temperature: numberOf(single(query.t), { or: DEFAULTS.temperature, min: 0, max: 2 }),
      topP: numberOf(single(query.p), { or: DEFAULTS.topP, min: 0.01, max: 1 }),
      maxTokens: Math.round(numberOf(single(query.n), { or: DEFAULTS.maxTokens, min: 1, max: 131_072 })),
      seed:
        seed === 'none'
          ? null
          : Math.round(numberOf(seed, { or: DEFAULTS.seed ?? 0, min: 0, max: Number.MAX_SAFE_INTEGER })),
      format: FORMATS.find((each) => each === single(query.format)) ?? DEFAULTS.format,
      schema: single(query.schema) ?? DEFAULTS.schema,
      tools: single(query.tools) ?? DEFAULTS.tools,
      thinking: THINKINGS.find((each) => each === single(query.think)) ?? DEFAULTS.thinking,
      stop: single(query.stop) ?? DEFAULTS.stop,
      topK: Math.round(numberOf(single(query.k), { or: 0, min: 1, max: MAX_TOP_K })) || null,
      minP: numberOf(single(query.minp), { or: DEFAULTS.minP, min: 0, max: 1 }),
      presencePenalty: numberOf(single(query.pp), { or: DEFAULTS.presencePenalty, ...PENALTY }),
      frequencyPenalty: numberOf(single(query.fp), { or: DEFAULTS.frequencyPenalty, ...PENALTY }),
    },
    prompt: single(query.prompt) ?? '',
    isBlind: single(query.blind) === '1',
  }
}

/** Only what differs from the defaults. */
export function writeAddress({ models, settings, prompt, isBlind }: Shared): LocationQueryRaw {
  return {
    // In their order on the page the names would say which is which.
    m: models.length === 0 ? undefined : isBlind ? [...models].sort() : [...models],
    system: settings.system || undefined,
    t: settings.temperature === DEFAULTS.temperature ? undefined : String(settings.temperature),
    p: settings.topP === DEFAULTS.topP ? undefined : String(settings.topP),
    n: settings.maxTokens === DEFAULTS.maxTokens ? undefined : String(settings.maxTokens),
    seed: settings.seed === DEFAULTS.seed ? undefined : settings.seed === null ? 'none' : String(settings.seed),
    format: settings.format === DEFAULTS.format ? undefined : settings.format,
    schema: settings.schema || undefined,
    tools: settings.tools || undefined,
    think: settings.thinking === DEFAULTS.thinking ? undefined : settings.thinking,
    stop: settings.stop || undefined,
    k: settings.topK === null ? undefined : String(settings.topK),
    minp: settings.minP === DEFAULTS.minP ? undefined : String(settings.minP),
    pp: settings.presencePenalty === DEFAULTS.presencePenalty ? undefined : String(settings.presencePenalty),
    fp: settings.frequencyPenalty === DEFAULTS.frequencyPenalty ? undefined : String(settings.frequencyPenalty),
    prompt: prompt || undefined,
    blind: isBlind ? '1' : undefined,
  }
}
