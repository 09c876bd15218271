/** The two palettes: every colour of the dashboard, charts included, comes from here. */

export interface Palette {
  canvas: string
  surface: string
  raised: string
  sunken: string
  line: string
  lineStrong: string
  ink: string
  inkMuted: string
  inkFaint: string
  accent: string
  accentHover: string
  accentPressed: string
  accentSoft: string
  onAccent: string
  queued: string
  launching: string
  running: string
  stopping: string
  stopped: string
  succeeded: string
  failed: string
  crashed: string
  dangerSoft: string
  warningSoft: string
  infoSoft: string
  shadow: string
  /** Line colours of charts, in the order in which series take them: neighbours differ also without red and green, and none is the green of success. */
  series: readonly string[]
}

export const light: Palette = {
  canvas: '#f4f5f1',
  surface: '#ffffff',
  raised: '#ffffff',
  sunken: '#ebede7',
  line: '#dde0d8',
  lineStrong: '#bfc5ba',
  ink: '#19201b',
  inkMuted: '#525c54',
  inkFaint: '#667068',
  accent: '#1f6e46',
  accentHover: '#185a39',
  accentPressed: '#124a2e',
  accentSoft: '#e1efe6',
  onAccent: '#ffffff',
  queued: '#74600f',
  launching: '#1b6a9e',
  running: '#1b6a9e',
  stopping: '#96570b',
  stopped: '#5b645d',
  succeeded: '#1f6e46',
  failed: '#b23422',
  crashed: '#87367e',
  dangerSoft: '#fbeae6',
  warningSoft: '#faf0dc',
  infoSoft: '#e5f0f7',
  shadow: '0 1px 2px rgb(25 32 27 / 6%), 0 4px 16px rgb(25 32 27 / 5%)',
  series: ['#1b6a9e', '#b8651b', '#87367e', '#8a7a12', '#2a8c8c', '#4f7f12', '#5a62b5', '#b23422'],
}

export const dark: Palette = {
  canvas: '#0f1311',
  surface: '#161b18',
  raised: '#1d2420',
  sunken: '#0b0e0c',
  line: '#29312c',
  lineStrong: '#404a43',
  ink: '#e6ebe7',
  inkMuted: '#a6b0a9',
  inkFaint: '#879189',
  accent: '#74c795',
  accentHover: '#8ed6aa',
  accentPressed: '#5fb582',
  accentSoft: '#1b3125',
  onAccent: '#0b1a11',
  queued: '#d8b95c',
  launching: '#70b7e6',
  running: '#70b7e6',
  stopping: '#e5a562',
  stopped: '#9aa49c',
  succeeded: '#74c795',
  failed: '#f28b74',
  crashed: '#d594cd',
  dangerSoft: '#371c17',
  warningSoft: '#332812',
  infoSoft: '#15293a',
  shadow: '0 1px 2px rgb(0 0 0 / 40%), 0 4px 16px rgb(0 0 0 / 28%)',
  series: ['#70b7e6', '#e5a562', '#d594cd', '#d8c75c', '#5cc4c0', '#a9cf5a', '#9aa3ec', '#f28b74'],
}
